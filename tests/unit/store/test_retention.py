"""Retentions against a node that refuses, or breaks, on demand."""

import pytest

import kvstrata
from kvstrata.store.statuses import BUSY, TOO_LARGE
from tests.unit.store.fake_kernel import CLOSED, FakeNode, KeysOnly, Retain

URL = "kvstrata://pool:secret@host:1"


@pytest.fixture
def store(node: FakeNode) -> kvstrata.Store:
    store = kvstrata.connect(URL)
    store.put_many({"a": b"1", "b": b"2", "c": b"3"})
    node.requests.clear()
    return store


def operations(node: FakeNode) -> list[object]:
    return [request.operation for request in node.requests]


def test_one_handle_of_each_shard_is_kept(store: kvstrata.Store, node: FakeNode) -> None:
    retention = store.retain_many(["a", "b", "absent"], 1.5)
    assert retention.outcomes == ["retained", "retained", "absent"]
    assert retention.extend(2)
    retain, extend = operations(node)
    assert isinstance(retain, Retain)
    assert (retain.ttl_ms, retain.hard) == (1_500, False)
    assert isinstance(extend, KeysOnly)
    assert (extend.opcode, extend.ttl_ms, len(extend.keys)) == (66, 2_000, 1)


def test_a_block_releases_what_it_retained(store: kvstrata.Store, node: FakeNode) -> None:
    with store.retain_many(["a"], 30) as retention:
        assert node.retentions
        assert repr(retention) == "<Retention 1 of 1 keys>"
    assert not node.retentions
    assert repr(retention) == "<Retention released>"


def test_a_block_does_not_fail_for_a_node_that_has_gone(
    store: kvstrata.Store, node: FakeNode
) -> None:
    with store.retain_many(["a"], 30):
        node.faults.extend([CLOSED] * 10)
    node.faults.clear()
    retention = store.retain_many(["a"], 30)
    node.faults.extend([CLOSED] * 10)
    with pytest.raises(kvstrata.UnavailableError):
        retention.release()
    node.faults.clear()
    assert retention.release()


def test_a_retention_is_asked_for_again_where_the_connection_broke(
    store: kvstrata.Store, node: FakeNode
) -> None:
    node.faults.append(CLOSED)
    assert store.retain_many(["a"], 30).outcomes == ["retained"]
    assert len(operations(node)) == 2


def test_a_soft_refusal_is_an_outcome_and_not_tried_again(
    store: kvstrata.Store, node: FakeNode
) -> None:
    node.refused[b"b"] = BUSY
    retention = store.retain_many(["a", "b"], 30)
    assert retention.outcomes == ["retained", "busy"]
    assert len(operations(node)) == 1
    assert retention.release()


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (BUSY, kvstrata.BusyError, "hard retention of 'b', and of 1 others of 3 keys: .*raise"),
        (TOO_LARGE, kvstrata.TooLargeError, "hard retention of 'b': .* larger than .*raise that"),
    ],
)
def test_a_hard_refusal_gives_back_all(
    store: kvstrata.Store, node: FakeNode, status: int, kind: type[Exception], words: str
) -> None:
    node.refused.update({b"b": status, b"c": status})
    with pytest.raises(kind, match=words):
        store.retain_many(["a", "b", "c"], 30, hard=True)
    assert not node.retentions


async def test_the_asyncio_store_does_the_same(node: FakeNode) -> None:
    async with kvstrata.connect_async(URL) as store:
        await store.put_many({"a": b"1", "b": b"2"})
        async with await store.retain_many(["a", "absent"], 30) as retention:
            assert retention.outcomes == ["retained", "absent"]
            assert await retention.extend(60)
            assert node.retentions
        assert not node.retentions
        assert not await retention.release()
        node.refused[b"b"] = BUSY
        with pytest.raises(kvstrata.BusyError, match="hard retention of 'b'"):
            await store.retain_many(["a", "b"], 30, hard=True)
        assert not node.retentions
