"""A full store: what it evicts, what it keeps, what it refuses, and that memory comes back.

Each test has a node of its own, since it fills it.
"""

from collections.abc import Callable, Iterator

import pytest

import kvstrata
from kvstrata import LocalStore, PoolConfig
from tests.contract.contents import content, wait_until

MIB = 1 << 20
Start = Callable[..., LocalStore]


@pytest.fixture(params=[1, 4], ids=["one_shard", "four_shards"])
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    """Start a node of this much memory, with these settings for `default`."""
    started: list[LocalStore] = []

    def start(memory: str, **settings: object) -> LocalStore:
        pools = {"default": PoolConfig.model_validate(settings)}
        started.append(kvstrata.local(memory, shards=request.param, pools=pools))
        return started[-1]

    yield start
    for store in started:
        store.close()


def counters(store: LocalStore) -> dict[str, int]:
    pools: dict[str, dict[str, int]] = store.admin("statistics")["pools"]
    return pools["default"]


def fill(store: LocalStore, size: int) -> list[str]:
    """Put values until there is no space; their keys."""
    keys: list[str] = []
    while True:
        key = f"{size}-{len(keys)}"
        try:
            store.put(key, content(size, len(keys)))
        except kvstrata.NoSpaceError:
            return keys
        keys.append(key)


@pytest.mark.parametrize("size", [700, 70_000, MIB, 3 * MIB + 5])
def test_without_eviction_a_full_store_refuses_and_space_comes_back(
    start: Start, size: int
) -> None:
    mib = 16 if size < 1_000 else 32
    store = start(f"{mib}MiB", eviction="none")
    keys = fill(store, size)
    assert len(keys) * size > 0.6 * mib * MIB
    assert not store.exists(f"{size}-{len(keys)}")
    for seed, key in enumerate(keys):
        assert store.get(key) == content(size, seed)
    assert counters(store)["evictions"] == 0
    assert all(store.delete_many(keys))
    again = fill(store, size)
    assert len(again) >= 0.95 * len(keys)


def test_overwriting_in_a_full_store_needs_room_for_both(start: Start) -> None:
    store = start("32MiB", eviction="none")
    keys = fill(store, MIB)
    with pytest.raises(kvstrata.NoSpaceError):
        store.put(keys[0], content(8 * MIB))
    assert store.get(keys[0]) == content(MIB, 0)
    store.delete_many(keys[1:])
    assert store.put(keys[0], content(8 * MIB)).outcome == "replaced"
    assert store.get(keys[0]) == content(8 * MIB)


def test_lru_keeps_what_was_touched(start: Start) -> None:
    store = start("64MiB", eviction="lru")
    hot = {f"hot-{i}": content(300_000, i) for i in range(20)}
    store.put_many(hot)
    for i in range(400):
        store.put(f"cold-{i}", content(300_000, i))
        if i % 20 == 0:
            assert store.get_many(hot) == list(hot.values()), f"after {i} cold values"
    assert counters(store)["evictions"] > 150
    assert not store.exists("cold-0")


def test_s3fifo_keeps_what_is_used_again_from_a_scan_of_what_is_not(start: Start) -> None:
    store = start("64MiB", eviction="s3fifo")
    hot = {f"hot-{i}": content(300_000, i) for i in range(20)}
    store.put_many(hot)
    for _ in range(3):
        store.get_many(hot)
    for i in range(400):
        store.put(f"cold-{i}", content(300_000, i))
    survived = sum(store.exists_many(hot))
    assert survived >= 18
    assert counters(store)["evictions"] > 150


@pytest.mark.parametrize("eviction", ["lru", "s3fifo"])
def test_a_value_nearly_as_large_as_the_memory(start: Start, eviction: str) -> None:
    store = start("64MiB", eviction=eviction)
    store.put_many({f"{i}": content(100_000, i) for i in range(500)})
    store.put_many({f"s{i}": content(100, i) for i in range(5_000)})
    value = content(55 * MIB, 1)
    store.put("large", value)
    assert store.get("large") == value
    store.put("large", value[1:])
    assert store.get("large") == value[1:]
    with pytest.raises(kvstrata.TooLargeError):
        store.put("larger", bytes(65 * MIB))
    store.put("small", b"value")
    assert store.get("small") == b"value"


def test_small_then_large_then_small_again(start: Start) -> None:
    """Cells of 72 bytes fill the memory; large values find room; and the other way round."""
    store = start("16MiB")
    count = 230_000

    def put_small(generation: int) -> None:
        for begin in range(0, count, 10_000):
            numbers = range(begin, begin + 10_000)
            store.put_many([(b"%032d" % i, b"%08d%08d" % (i, generation)) for i in numbers])
        keys = [b"%032d" % i for i in range(count // 2, count)]
        found = {value for value in store.get_many(keys) if value is not None}
        assert len(found) > 0.4 * count
        assert all(value[8:] == b"%08d" % generation for value in found)
        assert store.get(keys[-1]) == b"%08d%08d" % (count - 1, generation)

    put_small(1)
    for i in range(40):
        store.put(f"large-{i}", content(MIB, i))
        assert store.get(f"large-{i}") == content(MIB, i), i
    large = store.get_many(f"large-{i}" for i in range(40))
    assert all(value in (None, content(MIB, i)) for i, value in enumerate(large))
    assert sum(value is not None for value in large) >= 6
    put_small(2)


def test_all_sizes_mixed_turn_the_memory_over_many_times(start: Start) -> None:
    store = start("32MiB")
    sizes = [16, 100, 1_000, 5_000, 9_000, 40_000, 300_000, 700_000, 2 * MIB]
    for i in range(1_500):
        key, size = f"{i % 400}", sizes[i * 7 % len(sizes)]
        store.put(key, content(size, i))
        assert store.get(key) == content(size, i), (i, size)
        if i % 5 == 0:
            store.delete(f"{(i + 200) % 400}")
    store.delete_many(f"{i}" for i in range(400))
    assert list(store.scan()) == []

    def live() -> int:
        shards = store.admin("statistics")["shards"]
        return sum(shard["cell_bytes"] + shard["extent_bytes"] for shard in shards)

    wait_until(lambda: live() == 0, "all memory is free")


def test_expired_objects_give_their_memory_back_unasked(start: Start) -> None:
    store = start("32MiB", eviction="none")
    keys = fill(store, MIB)
    store.expire_many(keys, 0.01)

    def has_room() -> bool:
        try:
            store.put("new", content(20 * MIB))
        except kvstrata.NoSpaceError:
            return False
        return True

    wait_until(has_room, "expired objects make room")
    wait_until(lambda: counters(store)["expirations"] == len(keys), "all shards look")


def put_mebibytes(store: LocalStore, mebibytes: int, name: str, size: int) -> dict[str, bytes]:
    """Put so much in values of that size."""
    pairs = {f"{name}-{i}": content(size, i) for i in range(mebibytes * MIB // size)}
    store.put_many(pairs)
    return pairs


@pytest.mark.parametrize("eviction", ["lru", "s3fifo"])
@pytest.mark.parametrize("size", [5_000, 300_000])
def test_what_is_retained_softly_goes_last(start: Start, eviction: str, size: int) -> None:
    store = start("32MiB", eviction=eviction)
    kept = put_mebibytes(store, 8, "kept", size)
    retention = store.retain_many(kept, 600)
    assert set(retention.outcomes) == {"retained"}
    put_mebibytes(store, 64, "other", size)
    assert counters(store)["evictions"] > 0
    assert store.get_many(kept) == list(kept.values())
    assert counters(store)["retained_evictions"] == 0
    retention.release()
    wait_until(lambda: counters(store)["retained_objects"] == 0, "the release is done")
    put_mebibytes(store, 128, "more", size)
    assert not any(store.exists_many(kept))


def test_what_is_retained_softly_goes_where_nothing_else_is_left(start: Start) -> None:
    store = start("64MiB")
    for i in range(150):
        store.put(f"{i}", content(MIB, i))
        store.retain_many([f"{i}"], 600)
    assert counters(store)["retained_evictions"] > 60
    assert store.get("149") == content(MIB, 149)


@pytest.mark.parametrize("eviction", ["lru", "s3fifo"])
def test_what_is_retained_hard_stays_and_others_find_the_store_busy(
    start: Start, eviction: str
) -> None:
    store = start("64MiB", eviction=eviction, retained_max="64MiB")
    kept = {f"kept-{i}": content(MIB, i) for i in range(45)}
    small = {f"small-{i}": content(100, i) for i in range(5_000)}
    store.put_many(kept | small)
    there = [key for key, found in zip(kept, store.exists_many(kept), strict=True) if found]
    retention = store.retain_many([*there, *small], 600, hard=True)
    assert set(retention.outcomes) == {"retained"}
    with pytest.raises((kvstrata.BusyError, kvstrata.TimeoutError)):
        store.put("large", content(30 * MIB), timeout=1)
    for i in range(200):
        store.put(f"other-{i}", content(300_000, i))
    assert store.get_many(there) == [kept[key] for key in there]
    assert store.get_many(small) == list(small.values())
    assert counters(store)["retained_evictions"] == 0
    assert retention.release()
    store.put("large", content(30 * MIB))
    assert store.get("large") == content(30 * MIB)


def test_a_hard_retention_ends_with_its_time(start: Start) -> None:
    store = start("64MiB", retained_max="64MiB")
    kept = [f"{i}" for i in range(45)]
    store.put_many((key, content(MIB)) for key in kept)
    store.retain_many(kept, 2, hard=True)
    store.put("large", content(30 * MIB))  # Waits for that.
    wait_until(lambda: counters(store)["retained_bytes_hard"] == 0, "all shards look")
