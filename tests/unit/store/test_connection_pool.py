"""Connections among threads, over time, and over a fork."""

import os
import threading

import pytest

from kvstrata.store import connection_pool, url
from kvstrata.store.connection_pool import ConnectionPool
from kvstrata.store.errors import BusyError, UsageError
from tests.unit.store.fake_kernel import CLOSED, FakeNode

TARGET = url.Target()


@pytest.fixture
def pool(node: FakeNode) -> ConnectionPool:
    return ConnectionPool(TARGET)


def test_the_last_used_is_used_next(pool: ConnectionPool, node: FakeNode) -> None:
    first, second = pool.acquire(0, 1), pool.acquire(0, 1)
    assert len(node.connections) == 2
    pool.release(first)
    pool.release(second)
    assert pool.acquire(0, 1) is second


def test_a_bounded_number_is_waited_for(
    pool: ConnectionPool, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "_CONNECTION_COUNT_MAX", 2)
    first, _second = pool.acquire(0, 1), pool.acquire(0, 1)
    with pytest.raises(BusyError, match="were in use until the timeout"):
        pool.acquire(0, 0.01)
    taken: list[object] = []
    thread = threading.Thread(target=lambda: taken.append(pool.acquire(0, 10)))
    thread.start()
    pool.release(first)
    thread.join(10)
    assert taken == [first]
    assert len(node.connections) == 2


def test_a_discarded_one_makes_room(pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "_CONNECTION_COUNT_MAX", 1)
    lane = pool.acquire(0, 1)
    pool.discard(lane)
    assert pool.acquire(0, 1) is not lane


def test_one_that_its_thread_dropped_makes_room(
    pool: ConnectionPool, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "_CONNECTION_COUNT_MAX", 1)
    pool.acquire(0, 1)
    assert pool.acquire(0, 0.01).connection.status == 0
    assert len(node.connections) == 2


def test_one_that_broke_while_idle_is_replaced(
    pool: ConnectionPool, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "_TRUSTED_S", -1.0)
    node.connections[0].status = CLOSED
    pool.acquire(0, 1)
    assert [connection.status for connection in node.connections] == [CLOSED, 0]


def test_long_idle_ones_are_closed(
    pool: ConnectionPool, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes = [pool.acquire(0, 1) for _ in range(3)]
    for lane in lanes:
        pool.release(lane)
    lanes[0].used_at -= 100
    lanes[1].used_at -= 100
    last = pool.acquire(0, 1)
    last.used_at += 100  # As if so much time had passed that it is time to look.
    pool.release(last)
    assert [connection.status for connection in node.connections] == [CLOSED, CLOSED, 0]


def test_connections_go_to_the_shard_of_the_key(node: FakeNode) -> None:
    node.shard_count = 4
    pool = ConnectionPool(TARGET)
    key = b"some key"
    shard = pool.shard_of(key)
    assert 0 <= shard < 4
    lane = pool.acquire(shard, 1)
    pool.release(lane)
    assert pool.acquire(shard, 1) is lane
    assert lane.shard == shard
    assert pool.shard_of(b"{some tag}1") == pool.shard_of(b"{some tag}2")


def test_a_full_pool_lends_one_of_another_shard(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.shard_count = 2
    monkeypatch.setattr(connection_pool, "_CONNECTION_COUNT_MAX", 1)
    pool = ConnectionPool(TARGET)
    assert pool.acquire(1, 0.01).shard == 0


def test_one_in_use_is_closed_when_it_comes_back_to_a_closed_pool(
    pool: ConnectionPool, node: FakeNode
) -> None:
    lane = pool.acquire(0, 1)
    pool.close()
    assert node.connections[0].status == 0
    pool.release(lane)
    assert node.connections[0].status == CLOSED
    with pytest.raises(UsageError, match="closed"):
        pool.acquire(0, 1)


def test_a_child_abandons_what_its_parent_uses(pool: ConnectionPool, node: FakeNode) -> None:
    _in_use, idle = pool.acquire(0, 1), pool.acquire(0, 1)
    pool.release(idle)
    child = os.fork()
    if child == 0:
        try:
            inherited = [connection.abandoned for connection in node.connections]
            pool.acquire(0, 1)
            os._exit(0 if inherited == [True, True] and len(node.connections) == 3 else 1)
        finally:  # Whatever happens, the child must not go on with the tests.
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert not any(connection.abandoned for connection in node.connections)


def test_many_threads_never_share_one(pool: ConnectionPool) -> None:
    in_use: set[object] = set()
    clashes: list[object] = []

    def work() -> None:
        for _ in range(200):
            lane = pool.acquire(0, 10)
            if lane in in_use:
                clashes.append(lane)
            in_use.add(lane)
            in_use.discard(lane)
            pool.release(lane)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not clashes
