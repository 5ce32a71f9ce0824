"""The native connection as Python uses it, against a real node in this process."""

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from kvstrata import _kernel
from kvstrata.store import limits

OK, NOT_FOUND, TOO_SMALL = 0, 1, 3
EXISTS, PREFIX_LENGTH = 16, 17
TIMEOUT_MS = 10_000
SIZES = (0, 1, 4_096, 65_536, 65_537, 524_288, 524_289, 3_000_000)


@pytest.fixture(scope="module")
def node() -> Iterator[_kernel.Node]:
    options = _kernel.NodeOptions(
        host="127.0.0.1",
        port=0,
        shard_count=1,
        memory_bytes=128 << 20,
        populate_full=False,
        huge_pages="off",
        spin_us=0,
        uring=_kernel.uring_is_usable(),
        credits=16,
        connection_count_max=100,
        connection_bytes_max=16 << 20,
        buffer_bytes_max=64 << 20,
        minimum_rate=1 << 20,
        stall_ms_max=5_000,
    )
    pool = _kernel.PoolOptions(
        "default",
        immutable=False,
        eviction="lru",
        quota_bytes=0,
        ttl_ms_default=0,
        retained_bytes_max=0,
        secrets=[],
        open_rights=7,
    )
    node = _kernel.Node(options, [pool])
    node.start()
    yield node
    node.stop(1_000)


def connect(port: int, spin_us: int = 0, timeout_ms: int = 5_000) -> _kernel.Connection:
    return _kernel.Connection(
        "127.0.0.1",
        port,
        pool="default",
        secret="",
        client_name="test",
        credits=16,
        shard=None,
        verify=True,
        spin_us=spin_us,
        timeout_ms=timeout_ms,
    )


@pytest.fixture(params=[0, 50], ids=["sleeping", "spinning"])
def connection(node: _kernel.Node, request: pytest.FixtureRequest) -> Iterator[_kernel.Connection]:
    connection = connect(node.port, spin_us=request.param)
    assert connection.status == OK, connection.message
    yield connection
    connection.close()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port whose listener accepts and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("size", SIZES)
def test_every_way_to_read_returns_what_was_put(connection: _kernel.Connection, size: int) -> None:
    value = os.urandom(size)
    put = _kernel.Put(b"key", value)
    exact, roomy = bytearray(size), bytearray(size + 100)
    reads = [
        _kernel.Get(b"key", exact),
        _kernel.Get(b"key", roomy),
        _kernel.Get(b"key"),
        _kernel.Get(b"key", allocate=bytearray),
    ]
    connection.execute_one(put, TIMEOUT_MS)
    assert (put.status, put.value_length) == (OK, size)
    connection.execute(reads, TIMEOUT_MS)
    assert [read.status for read in reads] == [OK] * 4
    assert [read.length for read in reads] == [size] * 4
    assert exact == value
    assert roomy == value + bytes(100)
    assert reads[2].value == value
    assert reads[3].value == value
    part = _kernel.Get(b"key", offset=size // 3, length=1_000)
    connection.execute_one(part, TIMEOUT_MS)
    assert part.value == value[size // 3 :][:1_000]
    if size:
        short = _kernel.Get(b"key", bytearray(size - 1))
        connection.execute_one(short, TIMEOUT_MS)
        assert (short.status, short.value_length) == (TOO_SMALL, size)


def test_a_batch_larger_than_any_capsule_keeps_its_order(connection: _kernel.Connection) -> None:
    keys = [b"batch-%d" % number for number in range(3_000)]
    values = [os.urandom(number % 5_000) for number in range(3_000)]
    put = _kernel.PutMany(keys, values)
    connection.execute_one(put, TIMEOUT_MS)
    assert put.statuses == [OK] * 3_000
    buffers = [bytearray(len(value)) for value in values]
    fresh, into = _kernel.GetMany([*keys, b"absent"]), _kernel.GetMany(keys, buffers)
    exists = _kernel.KeysOnly(EXISTS, [keys[0], b"absent", keys[1]])
    prefix = _kernel.KeysOnly(PREFIX_LENGTH, [*keys[:2_000], b"absent", *keys[2_000:]])
    connection.execute([fresh, into, exists, prefix], TIMEOUT_MS)
    assert fresh.values == [*values, None]
    assert fresh.statuses[-1] == NOT_FOUND
    assert buffers == values
    assert into.lengths == [len(value) for value in values]
    assert exists.statuses == [OK, NOT_FOUND, OK]
    assert prefix.prefix_length == 2_000


def test_a_scan_meets_every_key_with_its_size(connection: _kernel.Connection) -> None:
    sizes = {b"scan-%d" % number: number for number in range(300)}
    put = _kernel.PutMany(list(sizes), [bytes(size) for size in sizes.values()])
    connection.execute_one(put, TIMEOUT_MS)
    found: dict[bytes, int] = {}
    cursor = 0
    while True:
        page = _kernel.Scan(b"scan-", cursor, 50)
        connection.execute_one(page, TIMEOUT_MS)
        assert page.status == OK
        found.update(page.keys)
        cursor = page.cursor
        if cursor == 0:
            break
    assert found == sizes


def test_appends_and_attributes(connection: _kernel.Connection) -> None:
    attributes = bytes.fromhex("00020300") + b"f32"
    key = os.urandom(8)
    first = _kernel.Put(key, b"abc", attributes=attributes)
    connection.execute_one(first, TIMEOUT_MS)
    more = _kernel.Put(key, bytes(600_000), append_at=3)
    connection.execute_one(more, TIMEOUT_MS)
    assert (more.status, more.value_length) == (OK, 600_003)
    read, stat = _kernel.Get(key), _kernel.Stat(key)
    connection.execute([read, stat], TIMEOUT_MS)
    assert read.value == b"abc" + bytes(600_000)
    assert read.attributes == stat.attributes == attributes
    assert (stat.value_length, stat.chunk_count) == (600_003, 2)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: _kernel.Get(b"k", b"read-only"), BufferError, "must be writable"),
        (lambda: _kernel.Put(b"k", memoryview(b"abcdef")[::2]), BufferError, "contiguous"),
        (
            lambda: _kernel.Get(bytes(limits.KEY_BYTES_MAX + 1)),
            ValueError,
            "4097 bytes is too",
        ),
        (lambda: _kernel.Get(7), TypeError, "bytes or str, not 'int'"),  # type: ignore[arg-type]
        (lambda: _kernel.GetMany(b"k"), TypeError, "not 'bytes'"),  # type: ignore[arg-type]
        (lambda: _kernel.GetMany([b"k"], []), ValueError, "1 keys, but 0 buffers"),
        (lambda: _kernel.KeysOnly(1, [b"k"]), ValueError, "opcode 1 is not one of"),
    ],
)
def test_arguments_that_cannot_work_are_named(
    make: Callable[[], object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make()


def test_an_operation_is_executed_once(connection: _kernel.Connection) -> None:
    read = _kernel.Get(b"absent")
    connection.execute_one(read, TIMEOUT_MS)
    with pytest.raises(ValueError, match="executed once"):
        connection.execute_one(read, TIMEOUT_MS)


def test_a_failed_allocation_is_the_callers_and_harms_nobody(
    connection: _kernel.Connection,
) -> None:
    def refuse(size: int) -> bytearray:
        raise LookupError(size)

    connection.execute_one(_kernel.Put(b"key", bytes(100_000)), TIMEOUT_MS)
    with pytest.raises(LookupError, match="100000"):
        connection.execute_one(_kernel.Get(b"key", allocate=refuse), TIMEOUT_MS)
    with pytest.raises(BufferError, match="3 bytes for a value of 100000"):
        connection.execute_one(_kernel.Get(b"key", allocate=lambda _: bytearray(3)), TIMEOUT_MS)
    read = _kernel.Get(b"key")
    connection.execute_one(read, TIMEOUT_MS)
    assert read.value == bytes(100_000)


def test_an_event_loop_drives_many_at_once(connection: _kernel.Connection) -> None:
    big = os.urandom(4_000_000)
    connection.execute_one(_kernel.Put(b"big", big), TIMEOUT_MS)
    reads = [_kernel.Get(b"big", bytearray(len(big))) for _ in range(3)]
    operations: list[_kernel.Operation] = [*reads, _kernel.Put(b"other", big)]
    operations += [_kernel.Get(b"absent") for _ in range(100)]
    for operation in operations:
        connection.submit(operation)
    ended: list[_kernel.Operation] = []
    give_up = time.monotonic() + 10
    while len(ended) < len(operations) and time.monotonic() < give_up:
        wanted = [connection.fileno()]
        select.select(wanted, wanted if connection.wants_write else [], [], 1)
        ended += connection.progress()
    assert {id(each) for each in ended} == {id(each) for each in operations}
    assert connection.in_flight == 0
    assert [read.length for read in reads] == [len(big)] * 3


def test_closing_ends_what_is_in_flight_and_gives_buffers_back(
    connection: _kernel.Connection,
) -> None:
    buffer = bytearray(100)
    read = _kernel.Get(b"absent", buffer)
    connection.submit(read)
    connection.close()
    assert (read.done, read.status, read.unsent) == (True, _kernel.CLOSED, True)
    buffer.extend(b"resizable again, as nobody holds it")
    late = _kernel.Get(b"absent")
    connection.execute_one(late, TIMEOUT_MS)
    assert (late.status, late.unsent) == (_kernel.CLOSED, True)


def test_refused_and_silent_peers_are_told_apart(silent_port: int) -> None:
    silent = connect(silent_port, timeout_ms=50)
    assert silent.status == _kernel.TIMED_OUT
    assert "did not answer the hello" in silent.message
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    refused = connect(port)
    assert refused.status == _kernel.CLOSED
    assert f"connection refused by 127.0.0.1:{port}" in refused.message


def test_one_thread_at_a_time(node: _kernel.Node) -> None:
    connection = connect(node.port)
    inside, leave = threading.Event(), threading.Event()

    def wait(size: int) -> bytearray:
        inside.set()
        assert leave.wait(5)
        return bytearray(size)

    connection.execute_one(_kernel.Put(b"key", b"value"), TIMEOUT_MS)
    read = _kernel.Get(b"key", allocate=wait)
    thread = threading.Thread(target=connection.execute_one, args=(read, TIMEOUT_MS))
    thread.start()
    assert inside.wait(5)
    with pytest.raises(RuntimeError, match="in use by another thread"):
        connection.execute_one(_kernel.Get(b"key"), TIMEOUT_MS)
    leave.set()
    thread.join(5)
    assert read.value == b"value"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # The node's threads stay here.
def test_a_child_that_abandons_leaves_the_parents_connection_alone(
    connection: _kernel.Connection,
) -> None:
    child = os.fork()
    if child == 0:
        connection.abandon()
        read = _kernel.Get(b"absent")
        connection.execute_one(read, TIMEOUT_MS)
        os._exit(0 if read.status == _kernel.CLOSED else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    read = _kernel.Get(b"absent")
    connection.execute_one(read, TIMEOUT_MS)
    assert read.status == NOT_FOUND


@pytest.mark.slow
def test_ctrl_c_ends_a_call_that_waits(node: _kernel.Node) -> None:
    # An administrative command that nobody answers.
    connection = connect(node.port)
    interrupt = (threading.main_thread().ident, signal.SIGINT)
    threading.Timer(0.1, signal.pthread_kill, interrupt).start()
    begin = time.monotonic()
    call = _kernel.Admin("nothing", b"")
    with pytest.raises(KeyboardInterrupt):
        connection.execute_one(call, TIMEOUT_MS)
    assert time.monotonic() - begin < 2
    assert (call.done, call.status) == (True, _kernel.CLOSED)
    assert connection.status == _kernel.CLOSED


def test_a_call_that_waits_too_long_times_out(node: _kernel.Node) -> None:
    connection = connect(node.port)
    call = _kernel.Admin("nothing", b"")
    begin = time.monotonic()
    connection.execute_one(call, 150)
    assert 0.14 < time.monotonic() - begin < 2
    assert call.status in (_kernel.TIMED_OUT, 10)
