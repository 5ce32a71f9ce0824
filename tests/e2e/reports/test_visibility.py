"""When a value is there and when it is not, with several writers and connections at once."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.nodes import AttackedNode, attacked_node, pool, wait_until
from tests.e2e.reference_client import RawConnection
from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Entry, Request

CHUNK = 512 * 1024


@pytest.fixture(params=[1, 3])
def node(request: pytest.FixtureRequest) -> Iterator[AttackedNode]:
    with attacked_node(pool(), shard_count=request.param) as running:
        yield running


@pytest.mark.parametrize("size", [100, 3 * CHUNK + 1])
@pytest.mark.parametrize("flags", [0, wire.IF_ABSENT])
def test_same_key_concurrent_put_never_aborts(node: AttackedNode, size: int, flags: int) -> None:
    """All writers saw the key missing; one wins, each learns what came of its value."""
    writers = 6
    barrier = threading.Barrier(writers)

    def write(mark: int) -> int:
        with RawConnection(node.port) as client:
            reply = client.call(wire.EXISTS, wire.keys_only([b"k"]))
            assert reply.statuses == [1]
            barrier.wait(timeout=20)
            return client.put(b"k", bytes([mark]) * size, flags=flags).status

    with ThreadPoolExecutor(writers) as threads:
        statuses = list(threads.map(write, range(writers)))
    with RawConnection(node.port) as client:
        value = client.get(b"k")
    assert value is not None
    assert value == value[:1] * size  # Of one writer, whole.
    if flags:
        assert sorted(statuses) == [0] + [2] * (writers - 1)
        assert statuses[value[0]] == 0
    else:
        assert set(statuses) == {0}


def test_a_put_that_stored_nothing_says_so(node: AttackedNode) -> None:
    with RawConnection(node.port) as client:
        client.put(b"k", b"kept")
        outcome = client.put(b"k", b"not stored", flags=wire.IF_ABSENT)
        assert outcome.status == 2
        assert outcome.fields["result"] == 3
        assert client.get(b"k") == b"kept"


def test_absence_is_not_emptiness(node: AttackedNode) -> None:
    with RawConnection(node.port) as client:
        client.put(b"empty", b"")
        assert client.get(b"empty") == b""
        assert client.get(b"absent") is None
        for opcode, entries in (
            (wire.GET, [wire.get_entry(b"empty", 0), wire.get_entry(b"absent", 0)]),
            (wire.GET_RANGE, [Entry(b"empty"), Entry(b"absent")]),
            (wire.STAT, wire.keys_only([b"empty", b"absent"])),
            (wire.EXISTS, wire.keys_only([b"empty", b"absent"])),
        ):
            assert client.call(opcode, entries).statuses == [0, 1]


def test_read_your_ack_across_connections(node: AttackedNode) -> None:
    """What one connection was told is stored, any other finds, at once, on whichever shard."""
    with RawConnection(node.port) as writer, RawConnection(node.port) as reader:
        for index in range(300):
            key = b"k%d" % index
            value = bytes([index % 256]) * (index * 97)
            assert reader.get(key) is None
            assert writer.put(key, value).status == 0
            assert reader.get(key) == value
            assert writer.call(wire.DELETE, wire.keys_only([key])).statuses == [0]
            assert reader.call(wire.EXISTS, wire.keys_only([key])).statuses == [1]


@pytest.mark.parametrize("size", [1_000, 2 * CHUNK])
def test_a_writer_gone_mid_put_leaves_the_key_writable(node: AttackedNode, size: int) -> None:
    value = b"x" * size
    request = Request(wire.PUT, 1, [wire.put_entry(b"k", value, CHUNK)], size).encode()
    with RawConnection(node.port) as other:
        with RawConnection(node.port) as writer:
            writer.send(request + value[: size // 2])
            # While it is under way the key is free for others, and nothing of it is seen.
            assert other.get(b"k") is None
            assert other.put(b"k", b"other").status == 0
        wait_until(lambda: node.counters()["reserved_bytes"] == 0, what="the space is free")
        assert other.get(b"k") == b"other"
        assert other.call(wire.DELETE, wire.keys_only([b"k"])).statuses == [0]
        assert other.put(b"k", value, flags=wire.IF_ABSENT).status == 0


def test_clients_of_one_name_and_host_do_not_collide(node: AttackedNode) -> None:
    with RawConnection(node.port) as one, RawConnection(node.port) as two:
        assert one.hello.attributes()[20] == two.hello.attributes()[20]
        assert one.put(b"k", b"1").status == two.put(b"k", b"2").status == 0
    with attacked_node() as other, RawConnection(other.port) as client:
        assert client.hello.attributes()[20] != one.hello.attributes()[20]
