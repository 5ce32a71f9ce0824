"""A full store goes on: eviction makes room, in time, and nothing stays pinned."""

from collections.abc import Iterator

import pytest

from tests.e2e.nodes import MIB, AttackedNode, attacked_node, pool, wait_until
from tests.e2e.reference_client import RawConnection, client_hello
from tests.unit.transport import reference_decoder as wire

CHUNK = 512 * 1024
MEMORY = 32 * MIB


@pytest.fixture(params=[("lru", 1), ("s3fifo", 1), ("lru", 2)])
def node(request: pytest.FixtureRequest) -> Iterator[AttackedNode]:
    policy, shard_count = request.param
    with attacked_node(
        pool(eviction=policy), shard_count=shard_count, memory_bytes=MEMORY
    ) as running:
        yield running


@pytest.mark.parametrize("size", [100, 20_000, CHUNK, 3 * MIB])
def test_eviction_makes_progress_when_full(node: AttackedNode, size: int) -> None:
    """Three times as much as there is room for, and no put fails."""
    count = 3 * MEMORY // max(size, 4_000)
    with RawConnection(node.port) as client:
        value = bytes(size)
        for first in range(0, count, 64):
            keys = [b"k%d" % index for index in range(first, min(first + 64, count))]
            entries = [wire.put_entry(key, value, CHUNK) for key in keys]
            reply = client.call(wire.PUT, entries, value * len(keys))
            assert set(reply.statuses) == {0}
        assert client.get(b"k%d" % (count - 1)) == value
        if count * size > 2 * MEMORY:
            assert node.counters()["default.evictions"] > 0


def test_sizes_that_change_do_not_strand_memory(node: AttackedNode) -> None:
    """Memory full of small objects becomes room for large ones, and the other way round."""
    with RawConnection(node.port) as client:
        for turn, size in enumerate((200, 2 * MIB, 3_000, CHUNK + 1, 64)):
            count = min(2 * MEMORY // size, 6_000)
            batch = max(1, min(256, 4 * MIB // size))
            for first in range(0, count, batch):
                keys = [b"%d-%d" % (turn, index) for index in range(first, first + batch)]
                entries = [wire.put_entry(key, bytes(size), CHUNK) for key in keys]
                reply = client.call(wire.PUT, entries, bytes(size) * batch)
                assert set(reply.statuses) == {0}, (size, first)


def test_background_eviction_before_puts_fail() -> None:
    """Some room is made ahead of need, so that a put seldom waits for it."""
    with attacked_node(memory_bytes=MEMORY) as node, RawConnection(node.port) as client:
        for index in range(2 * MEMORY // CHUNK):
            client.put(b"k%d" % index, bytes(CHUNK))
        wait_until(
            lambda: node.counters()["extent_bytes"] <= MEMORY - MEMORY // 64, what="head-room"
        )
        waits = node.counters()["memory_waits"]
        client.put(b"one more", bytes(CHUNK // 4))
        assert node.counters()["memory_waits"] == waits


def test_a_pool_that_may_not_evict_says_no_space() -> None:
    with (
        attacked_node(pool(), pool("kept", eviction="none"), memory_bytes=MEMORY) as node,
        RawConnection(node.port, client_hello("kept")) as client,
    ):
        statuses = [client.put(b"k%d" % index, bytes(MIB)).status for index in range(40)]
        assert set(statuses) == {0, 7}
        kept = statuses.count(0)
        assert kept >= 20
        assert all(client.get(b"k%d" % index) == bytes(MIB) for index in range(kept))
        assert client.call(wire.DELETE, wire.keys_only([b"k0", b"k1"])).statuses == [0, 0]
        assert client.put(b"again", bytes(MIB)).status == 0


def test_lookups_pin_nothing(node: AttackedNode) -> None:
    """What was looked up and never read can be evicted like everything else."""
    with RawConnection(node.port) as client:
        for index in range(20):
            client.put(b"old%d" % index, bytes(CHUNK))
            client.call(wire.EXISTS, wire.keys_only([b"old%d" % index]))
            client.call(wire.STAT, wire.keys_only([b"old%d" % index]))
        for index in range(3 * MEMORY // CHUNK):
            assert client.put(b"new%d" % index, bytes(CHUNK)).status == 0
        old = client.call(wire.EXISTS, wire.keys_only(b"old%d" % index for index in range(20)))
        assert 1 in old.statuses


def test_pins_end_with_their_connection(node: AttackedNode) -> None:
    """Readers that vanish mid-transfer do not keep memory from being used again."""
    with RawConnection(node.port) as writer:
        for index in range(4):
            writer.put(b"k%d" % index, bytes(4 * MIB))
        readers = [RawConnection(node.port) for _ in range(4)]
        for index, reader in enumerate(readers):
            reader.begin(wire.GET, [wire.get_entry(b"k%d" % index, 4 * MIB)])
            reader.receive(wire.HEADER_BYTES)
        writer.call(wire.DELETE, wire.keys_only(b"k%d" % index for index in range(4)))
        for reader in readers:
            reader.close()
        wait_until(lambda: node.counters()["extent_bytes"] == 0, what="all extents free")
