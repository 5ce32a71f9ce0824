"""The blocking store against a node that fails on demand."""

import math
from typing import TYPE_CHECKING

import pytest

import kvstrata
from kvstrata.store.errors import (
    BatchError,
    BusyError,
    CorruptError,
    DeniedError,
    ImmutableError,
    InternalError,
    MismatchError,
    TimeoutError,
    TooLargeError,
    TooSmallError,
    UnavailableError,
    UsageError,
)
from kvstrata.store.results import Outcome
from kvstrata.store.statuses import TOO_LARGE
from tests.unit.store.fake_kernel import BUSY, CLOSED, FOREVER, TIMED_OUT, FakeNode, Put

if TYPE_CHECKING:
    from collections.abc import Callable

URL = "kvstrata://pool:secret@host:1"


@pytest.fixture
def store(node: FakeNode) -> kvstrata.Store:
    return kvstrata.connect(URL)


def test_a_value_round_trips(store: kvstrata.Store) -> None:
    result = store.put("key", b"value")
    assert result == (Outcome.CREATED, 5, 1)
    assert store.get(b"key") == b"value"
    assert store.put("key", bytearray(b"other value")).outcome is Outcome.REPLACED
    assert store.stat("key") == kvstrata.ObjectStat(11, 2, None, 1, "dram", None, None)
    assert store.delete("key")
    assert not store.exists("key")


def test_absence_is_not_emptiness(store: kvstrata.Store) -> None:
    store.put("empty", b"")
    assert store.get("empty") == b""
    assert store.get("absent") is None
    assert store.get_into("absent", bytearray(1)) is None
    assert store.stat("absent") is None
    assert store.get_range("absent", 0, 1) is None


def test_if_absent_tells_about_the_one_that_was_there(store: kvstrata.Store) -> None:
    store.put("key", b"value")
    assert store.put("key", b"x", if_absent=True) == (Outcome.EXISTED, 5, 1)
    assert store.get("key") == b"value"


def test_get_into_and_ranges(store: kvstrata.Store) -> None:
    store.put("key", b"0123456789")
    buffer = bytearray(12)
    assert store.get_into("key", buffer) == 10
    assert buffer == b"0123456789\0\0"
    assert store.get_range("key", 3, 4) == b"3456"
    part = bytearray(4)
    assert store.get_range_into("key", 8, part) == (2, 10, 1)
    assert part == b"89\0\0"


def test_too_small_a_buffer_tells_the_true_size(store: kvstrata.Store) -> None:
    store.put("key", b"0123456789")
    with pytest.raises(TooSmallError, match="10 bytes, the buffer 3") as caught:
        store.get_into("key", bytearray(3))
    assert caught.value.size == 10


def test_append_is_conditional(store: kvstrata.Store) -> None:
    assert store.append("key", b"abc", at=0) == 3
    assert store.append("key", b"de", at=3) == 5
    with pytest.raises(MismatchError, match="ends at 5") as caught:
        store.append("key", b"f", at=3)
    assert caught.value.length == 5


def test_batches_keep_the_order(store: kvstrata.Store) -> None:
    assert store.put_many({"a": b"1", "c": b"3"}) == [Outcome.CREATED] * 2
    assert store.put_many([(b"a", b"x"), (b"b", b"2")], if_absent=True) == [
        Outcome.EXISTED,
        Outcome.CREATED,
    ]
    assert store.get_many(["c", "absent", "a"]) == [b"3", None, b"1"]
    buffers = [bytearray(2), bytearray(1)]
    assert store.get_many_into(["a", "absent"], buffers) == [1, None]
    assert buffers[0] == b"1\0"
    assert store.exists_many(["a", "absent"]) == [True, False]
    assert store.prefix_length(["a", "b", "absent", "c"]) == 2
    assert store.expire_many(["a", "absent"], 5) == [True, False]
    assert store.delete_many(["a", "absent"]) == [True, False]
    assert store.get_many([]) == []


def test_a_batch_that_failed_in_part_has_all_outcomes(store: kvstrata.Store) -> None:
    store.put_many({"a": b"1", "b": b"22"})
    with pytest.raises(BatchError, match="first at index 1") as caught:
        store.get_many_into(["a", "b", "absent"], [bytearray(1), bytearray(1), bytearray(1)])
    size, error, missing = caught.value.outcomes
    assert (size, missing) == (1, None)
    assert isinstance(error, TooSmallError)
    assert error.size == 2
    assert str(error) == (
        "get of 'b': the value has 2 bytes, the buffer 1: give a buffer of 2 bytes"
    )
    assert list(caught.value.failures) == [1]


def test_a_batch_of_values_too_large_tells_each_size(
    store: kvstrata.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Put, "perform_one", lambda *_: TOO_LARGE)
    with pytest.raises(BatchError, match="2 of the put_many of 2 keys") as caught:
        store.put_many({"a": b"1", "b": b"22"})
    first, second = caught.value.failures.values()
    assert str(first).startswith("put of 1 bytes under 'a': larger than")
    assert isinstance(second, TooLargeError)
    assert second.size == 2


def test_a_batch_that_failed_whole_is_that_failure(store: kvstrata.Store, node: FakeNode) -> None:
    node.faults.append(9)
    with pytest.raises(DeniedError, match="get_many of 2 keys"):
        store.get_many(["a", "b"])


def test_scan_goes_on_to_the_end(store: kvstrata.Store) -> None:
    store.put_many({f"key{i}": b"x" * i for i in range(5)})
    store.put("other", b"")
    assert sorted(store.scan("key")) == [(f"key{i}".encode(), i) for i in range(5)]


def test_ttl_is_told_in_milliseconds(store: kvstrata.Store, node: FakeNode) -> None:
    for ttl in (None, 1.5, 1e-9, math.inf):
        store.put("key", b"", ttl=ttl)
    sent = [r.operation.ttl_ms for r in node.requests if isinstance(r.operation, Put)]
    assert sent == [0, 1500, 1, FOREVER]
    for wrong in (0, -1, math.nan, 1e11):
        with pytest.raises(UsageError, match="above 0 seconds and at most 10000000000, not"):
            store.put("key", b"", ttl=wrong)


def test_busy_is_tried_again(store: kvstrata.Store, node: FakeNode) -> None:
    node.faults.extend([BUSY] * 3)
    assert store.put("key", b"value").size == 5
    assert len(node.requests) == 4


def test_busy_ends_with_the_timeout(store: kvstrata.Store, node: FakeNode) -> None:
    node.faults.extend([BUSY] * 1000)
    with pytest.raises(BusyError, match="over a budget"):
        store.get("key", timeout=0.05)
    assert 1 < len(node.requests) < 30


def test_only_the_busy_keys_of_a_batch_are_tried_again(
    store: kvstrata.Store, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy_once = {b"b"}
    whole = Put.perform_one

    def perform_one(self: Put, node: FakeNode, index: int, key: bytes, /) -> int:
        if key in busy_once:
            busy_once.remove(key)
            return BUSY
        return whole(self, node, index, key)

    monkeypatch.setattr(Put, "perform_one", perform_one)
    assert store.put_many({"a": b"1", "b": b"2", "c": b"3"}) == [Outcome.CREATED] * 3
    assert [r.operation.keys for r in node.requests] == [[b"a", b"b", b"c"], [b"b"]]


def test_a_read_survives_a_broken_connection(store: kvstrata.Store, node: FakeNode) -> None:
    store.put("key", b"value")
    node.faults.append(CLOSED)
    assert store.get("key") == b"value"
    assert len(node.connections) == 2


def test_a_batch_of_reads_survives_a_broken_connection(
    store: kvstrata.Store, node: FakeNode
) -> None:
    store.put("key", b"value")
    node.faults.append(CLOSED)
    assert store.get_many(["key", "absent"]) == [b"value", None]


def test_a_read_gives_up_where_connections_keep_breaking(
    store: kvstrata.Store, node: FakeNode
) -> None:
    node.faults.extend([CLOSED] * 10)
    with pytest.raises(UnavailableError, match="broke before the outcome"):
        store.get("key")
    assert len(node.requests) == 4


@pytest.mark.parametrize("change", ["put", "append", "delete", "put_many"])
def test_a_change_is_not_sent_twice(store: kvstrata.Store, node: FakeNode, change: str) -> None:
    calls: dict[str, Callable[[], object]] = {
        "put": lambda: store.put("key", b""),
        "append": lambda: store.append("key", b"", at=0),
        "delete": lambda: store.delete("key"),
        "put_many": lambda: store.put_many({"key": b""}),
    }
    node.faults.append(CLOSED)
    with pytest.raises(UnavailableError):
        calls[change]()
    assert len(node.requests) == 1


def test_a_change_that_was_not_sent_is_tried_again(store: kvstrata.Store, node: FakeNode) -> None:
    node.faults.extend(["unsent", "unsent"])
    assert store.put("key", b"value").outcome is Outcome.CREATED


def test_a_timeout_is_told_and_ends_the_connection(store: kvstrata.Store, node: FakeNode) -> None:
    node.faults.append(TIMED_OUT)
    with pytest.raises(TimeoutError, match="no answer within the timeout"):
        store.get("key", timeout=0.25)
    assert node.requests[0].timeout_ms == 250
    assert node.requests[0].connection.status == CLOSED
    assert store.get("key") is None


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (5, ImmutableError),
        (8, TooLargeError),
        (11, CorruptError),
        (16, InternalError),
        (77, InternalError),
    ],
)
def test_statuses_become_errors(
    store: kvstrata.Store, node: FakeNode, status: int, kind: type[kvstrata.Error]
) -> None:
    for call in (lambda: store.get("key"), lambda: store.put("key", b"")):
        node.faults.append(status)
        with pytest.raises(kind, match="b'key'"):
            call()


def test_refused_at_the_door(node: FakeNode) -> None:
    node.refusals.extend([9, TIMED_OUT, CLOSED])
    with pytest.raises(DeniedError, match="connecting to kvstrata://pool@host:1"):
        kvstrata.connect(URL)
    with pytest.raises(TimeoutError, match="connecting to kvstrata://pool@host:1: no answer"):
        kvstrata.connect(URL)
    with pytest.raises(UnavailableError, match="cannot connect to kvstrata://pool@host:1"):
        kvstrata.connect(URL)


def test_arguments_go_before_the_url(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVSTRATA_URL", "kvstrata://there:1?timeout=1&transport=unix")
    store = kvstrata.connect(
        pool="kv", secret="hunter2", timeout=2, verify=False, spin=7, transport="tcp"
    )
    assert repr(store) == "<Store kvstrata://kv@there:1>"
    store.get("key")
    options = node.connections[0].options
    assert (options["pool"], options["secret"], options["verify"]) == ("kv", "hunter2", False)
    assert options["spin_us"] == 7
    assert store.transport == ("tcp", "it was asked for")
    assert node.requests[0].timeout_ms == 2000
    with pytest.raises(UsageError, match="transport=rdma is not in this version"):
        kvstrata.connect(transport="rdma")


@pytest.mark.parametrize("timeout", [0, -1, math.nan, 1e9, "5"])
def test_a_timeout_has_bounds(store: kvstrata.Store, timeout: float) -> None:
    with pytest.raises(UsageError, match="a timeout is above 0"):
        store.get("key", timeout=timeout)


def test_keys_that_cannot_be(store: kvstrata.Store) -> None:
    with pytest.raises(UsageError, match="a key is bytes or str, not int: 5"):
        store.get(5)  # type: ignore[arg-type]
    with pytest.raises(TooLargeError, match="at most 4096 bytes, not 4097"):
        store.exists(b"k" * 4097)
    with pytest.raises(UsageError, match="a list of keys"):
        store.get_many("key")


def test_a_closed_store_says_so(store: kvstrata.Store, node: FakeNode) -> None:
    with store:
        pass
    assert [connection.status for connection in node.connections] == [CLOSED]
    with pytest.raises(UsageError, match="closed"):
        store.get("key")
