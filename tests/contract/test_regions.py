"""Values straight to and from memory that the client shares: as through any other memory."""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import kvstrata
from kvstrata import LocalStore, Region, Store
from kvstrata.store import limits
from tests.contract.contents import content
from tests.contract.opener import SECRET, Opener
from tests.e2e.nodes import wait_until

CHUNK = limits.CHUNK_BYTES
SMALL = limits.IN_CAPSULE_BYTES
ROOM = 8 * CHUNK
POISON = 0xA5


@pytest.fixture(autouse=True)
def door() -> str:
    return "sync"


@pytest.fixture
def opener(node: LocalStore, door: str) -> Iterator[Opener]:
    made = Opener(node, door, "shm", None)  # type: ignore[arg-type]
    yield made
    made.close()


@pytest.fixture
def region(store: Store) -> Region:
    """One that the node knows, on the connection that "key" goes by."""
    made = store.allocate(ROOM)
    store.put("key", memoryview(made)[: 2 * SMALL])
    store.delete("key")
    return made


def copied_bytes(node: LocalStore) -> int:
    """What the node has copied between its arena and regions."""
    statistics = node.admin("statistics")
    return sum(shard["copied_bytes"] for shard in statistics["shards"])


def region_bytes(node: LocalStore) -> int:
    """What the node maps of its clients."""
    return int(node.admin("statistics")["memory"]["region_bytes"])


SIZES = sorted(
    {0, 1, 100, *(edge + step for edge in (SMALL, 8_192, CHUNK, 3 * CHUNK) for step in (-1, 0, 1))}
)


@pytest.mark.parametrize("size", SIZES)
def test_values_of_every_size_come_and_go(
    node: LocalStore, store: Store, region: Region, size: int
) -> None:
    value = content(size, seed=size)
    memory = memoryview(region)
    at = random.Random(size).randrange(ROOM - size)
    source = memory[at : at + size]
    source[:] = value
    before = copied_bytes(node)
    assert store.put("key", source).size == size
    assert store.get("key") == value
    memory[:] = bytes([POISON]) * ROOM
    assert store.get_into("key", memory[at:]) == size
    assert memory[at : at + size] == value
    assert memory[at + size :] == bytes([POISON]) * (ROOM - at - size)
    assert memory[:at] == bytes([POISON]) * at
    expected = 2 * size if size > SMALL else 0
    assert copied_bytes(node) - before == expected


def test_parts_of_values(store: Store, region: Region) -> None:
    value = content(3 * CHUNK + 17)
    store.put("key", value)
    memory = memoryview(region)
    rng = random.Random(1)
    for _ in range(40):
        offset, length = rng.randrange(len(value) + 10), rng.randrange(1, 2 * CHUNK)
        memory[: 2 * CHUNK + 1] = bytes([POISON]) * (2 * CHUNK + 1)
        result = store.get_range_into("key", offset, memory[:length])
        assert result is not None
        part = value[offset : offset + length]
        assert result[:2] == (len(part), len(value))
        assert memory[: len(part)] == part
        assert memory[len(part)] == POISON


def test_appends_from_a_region(store: Store, region: Region) -> None:
    memory = memoryview(region)
    value = b""
    for size in (10, SMALL + 1, CHUNK - 5, 2 * CHUNK, 7):
        part = content(size, seed=size)
        memory[:size] = part
        assert store.append("log", memory[:size], at=len(value)) == len(value) + size
        value += part
        assert store.get("log") == value


def test_batches_of_regions_and_other_memory(store: Store, region: Region) -> None:
    rng = random.Random(2)
    array = np.frombuffer(memoryview(region), "u1")
    values: dict[str, bytes] = {}
    sources: dict[str, Any] = {}
    at = 0
    for number in range(300):
        size = rng.choice([0, 3, SMALL, SMALL + 1, 20_000])
        key = f"{number}"
        values[key] = content(size, seed=number)
        if number % 3 == 0:
            sources[key] = values[key]
        else:
            array[at : at + size] = np.frombuffer(values[key], "u1")
            sources[key] = array[at : at + size]
            at += size
    store.put_many(sources)
    assert dict(zip(values, store.get_many(values), strict=True)) == values
    array[:] = POISON
    buffers = [array[number * 20_000 :][:20_000] for number in range(200)]
    buffers += [np.full(20_000, POISON, "u1") for _ in range(100)]
    assert store.get_many_into(values, buffers) == [len(value) for value in values.values()]
    for buffer, value in zip(buffers, values.values(), strict=True):
        assert buffer[: len(value)].tobytes() == value
        assert (buffer[len(value) :] == POISON).all()
    del array, buffers, buffer, sources


def test_a_value_that_does_not_fit_leaves_the_region_alone(store: Store, region: Region) -> None:
    store.put("key", content(3 * CHUNK))
    memory = memoryview(region)
    memory[:] = bytes([POISON]) * ROOM
    with pytest.raises(kvstrata.TooSmallError) as caught:
        store.get_into("key", memory[: 3 * CHUNK - 1])
    assert caught.value.size == 3 * CHUNK
    assert memory == bytes([POISON]) * ROOM


def test_later_puts_of_a_batch_win_however_they_travel(store: Store, region: Region) -> None:
    memory = memoryview(region)
    memory[: 4 * CHUNK] = content(4 * CHUNK)
    for _ in range(30):
        store.put_many([("key", memory[: 4 * CHUNK]), ("key", b"small"), ("other", memory[:CHUNK])])
        assert store.get("key") == b"small"
        store.put_many([("key", b"small"), ("key", memory[: 3 * CHUNK]), ("key", memory[:CHUNK])])
        assert store.get("key") == bytes(memory[:CHUNK])


def test_puts_of_one_key_from_several_threads_are_never_mixed(store: Store) -> None:
    async def write(number: int) -> None:
        def work() -> None:
            with store.allocate(4 * CHUNK) as region:
                memory = memoryview(region)
                memory[:] = bytes([number]) * (4 * CHUNK)
                for _ in range(25):
                    store.put("key", memory)
                    seen = store.get("key")
                    assert seen is not None
                    assert seen == seen[:1] * (4 * CHUNK)
                memory.release()

        await asyncio.to_thread(work)

    async def all_at_once() -> None:
        await asyncio.gather(*(write(number) for number in range(1, 4)))

    asyncio.run(all_at_once())


def test_a_closed_region_is_reached_no_more(node: LocalStore, store: Store) -> None:
    idle = region_bytes(node)
    region = store.allocate(ROOM)
    view = memoryview(region)
    store.put("key", view)
    store.put("key", view)
    assert region_bytes(node) == idle + ROOM
    with pytest.raises(BufferError, match="in use: 1 views"):
        region.close()
    view.release()
    region.close()
    assert region.closed
    wait_until(lambda: region_bytes(node) == idle, 1)
    with pytest.raises(BufferError, match="closed"):
        memoryview(region)
    with pytest.raises(kvstrata.UsageError):
        store.get_into("key", region)
    region.close()


def test_a_region_that_is_dropped_is_closed(node: LocalStore, store: Store) -> None:
    idle = region_bytes(node)
    array = np.frombuffer(memoryview(store.allocate(ROOM)), "u4")
    array[:] = 7
    store.put("key", array)
    store.put("key", array)
    assert region_bytes(node) == idle + ROOM
    del array
    store.exists("key")  # The next word to the node.
    wait_until(lambda: region_bytes(node) == idle, 1)


def test_regions_of_a_closed_store_are_memory_still(
    node: LocalStore, store: Store, opener: Opener
) -> None:
    region = store.allocate(ROOM)
    memory = memoryview(region)
    store.close()
    memory[:100] = b"a" * 100
    other = opener()
    before = copied_bytes(node)
    other.put("key", memory[: 3 * SMALL])  # Of another store: memory as any.
    other.put("key", memory[: 3 * SMALL])
    assert copied_bytes(node) == before
    assert other.get("key") == bytes(memory[: 3 * SMALL])


@pytest.mark.parametrize("size", [0, -1, 2**63, 1.5, "1"])
def test_sizes_that_no_region_has(store: Store, size: int) -> None:
    with pytest.raises(kvstrata.UsageError, match="whole number of bytes"):
        store.allocate(size)


def test_over_tcp_a_region_is_memory_as_any(node: LocalStore) -> None:
    before = copied_bytes(node)
    with kvstrata.connect(node.node_url, transport="tcp") as store:
        with store.allocate(ROOM) as region, memoryview(region) as memory:
            memory[:CHUNK] = content(CHUNK)
            store.put("tcp", memory[:CHUNK])
            assert store.get_into("tcp", memory[CHUNK:]) == CHUNK
            assert memory[CHUNK : 2 * CHUNK] == content(CHUNK)
        assert copied_bytes(node) == before
        store.delete("tcp")


def test_asyncio(node: LocalStore, opener: Opener) -> None:
    pool = opener.make_pool()

    async def talk() -> None:
        async with kvstrata.connect_async(
            node.node_url, pool=pool, secret=SECRET, transport="shm"
        ) as store:
            region = store.allocate(ROOM)
            array = np.frombuffer(memoryview(region), "u1")
            array[:] = np.frombuffer(content(ROOM), "u1")
            keys = [f"{number}" for number in range(8)]
            sources = [array[number * CHUNK :][:CHUNK] for number in range(8)]
            for _ in range(3):
                await asyncio.gather(*map(store.put, keys, sources))
            array[:] = 0
            for _ in range(3):
                sizes = await asyncio.gather(*map(store.get_into, keys, sources))
                assert sizes == [CHUNK] * 8
            assert array.tobytes() == content(ROOM)
            del array, sources
            region.close()
            assert await store.get("3") == content(ROOM)[3 * CHUNK : 4 * CHUNK]

    idle = region_bytes(node)
    asyncio.run(talk())
    wait_until(lambda: region_bytes(node) == idle, 1)
