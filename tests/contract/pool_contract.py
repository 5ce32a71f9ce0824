"""What a pool allows, and to whom: isolation, rights, secrets, quotas."""

import pytest

import kvstrata
from kvstrata import Store
from kvstrata.store import limits
from tests.contract.contents import content, wait_until
from tests.contract.opener import SECRET, Opener

MIB = 1 << 20


class PoolContract:
    def test_pools_see_nothing_of_one_another(self, opener: Opener) -> None:
        one, two = opener(), opener()
        one.put("k", b"one")
        assert two.get("k") is None
        assert list(two.scan()) == []
        two.put("k", b"two")
        assert not two.delete("other")
        assert one.get("k") == b"one"
        assert two.delete("k")
        assert one.get("k") == b"one"

    def test_a_secret_opens_its_own_pool_only(self, opener: Opener) -> None:
        pool = opener.make_pool(admin="mine")
        for secret in ("", SECRET, "min", "mine!", "x" * limits.SECRET_BYTES_MAX):
            with pytest.raises(kvstrata.DeniedError) as caught:
                opener.open(pool, secret)
            assert "mine" not in str(caught.value)
        with pytest.raises(kvstrata.DeniedError):
            opener.open("no-such-pool", "mine")
        opener.open(pool, "mine").put("k", b"")

    def test_a_reader_cannot_write(self, opener: Opener) -> None:
        pool = opener.make_pool(read="r", write="w")
        reader, writer = opener.open(pool, "r"), opener.open(pool, "w")
        writer.put("k", b"value")
        assert reader.get("k") == b"value"
        assert reader.exists("k")
        assert [info.key for info in reader.scan()] == [b"k"]
        with pytest.raises(kvstrata.DeniedError):
            reader.put("k", b"other")
        with pytest.raises(kvstrata.DeniedError):
            reader.put("k", content(3 * MIB))
        with pytest.raises(kvstrata.DeniedError):
            reader.append("k", b"other", 5)
        with pytest.raises(kvstrata.DeniedError):
            reader.delete("k")
        with pytest.raises(kvstrata.DeniedError):
            reader.expire("k", 1)
        with pytest.raises(kvstrata.DeniedError):
            reader.put_many({"a": b"", "b": b""})
        assert reader.get("k") == b"value"

    def test_only_an_administrator_of_the_node_changes_pools(self, opener: Opener) -> None:
        pool = opener.make_pool(write="w")
        for secret in ("w", SECRET):  # The second administers its pool, not the node.
            with pytest.raises(kvstrata.DeniedError):
                opener.open(pool, secret).admin("pool_drop", {"name": pool})
        opener.open(pool, "w").put("k", b"still here")

    def test_two_secrets_at_once_let_one_be_rotated(self, opener: Opener) -> None:
        pool = opener.make_pool(write=["old"])
        old = opener.open(pool, "old")
        old.put("k", b"value")
        change = {"name": pool, "settings": {"write": ["old", "new"]}}
        opener.node.admin("pool_change", change)
        assert opener.open(pool, "old").get("k") == b"value"
        assert opener.open(pool, "new").get("k") == b"value"
        opener.node.admin("pool_change", {"name": pool, "settings": {"write": ["new"]}})
        with pytest.raises(kvstrata.DeniedError):
            opener.open(pool, "old")
        assert opener.open(pool, "new").get("k") == b"value"

    def test_a_kind_never_changes(self, opener: Opener) -> None:
        pool = opener.make_pool()
        with pytest.raises(kvstrata.UsageError, match="kind never changes"):
            opener.node.admin("pool_change", {"name": pool, "settings": {"kind": "immutable"}})

    def test_a_quota_without_eviction_is_kept_by_refusal(self, opener: Opener) -> None:
        store = opener(quota="8MiB", eviction="none")
        stored = fill(store, MIB)
        assert 6 <= stored <= 8
        assert store.get_many(f"{i}" for i in range(stored)) == [
            content(MIB, i) for i in range(stored)
        ]
        store.delete("0")
        assert store.put("again", content(MIB)).outcome == "created"
        with pytest.raises(kvstrata.NoSpaceError, match="may not evict"):
            store.put("one-more", content(MIB))

    @pytest.mark.parametrize("eviction", ["lru", "s3fifo"])
    def test_a_quota_with_eviction_is_kept_by_evicting(self, opener: Opener, eviction: str) -> None:
        pool = opener.make_pool(quota="8MiB", eviction=eviction)
        store = opener.open(pool)
        for i in range(40):
            store.put(f"{i}", content(MIB, i))
        here = [i for i, found in enumerate(store.exists_many(f"{i}" for i in range(40))) if found]
        assert 5 <= len(here) <= 8
        assert 39 in here
        assert all(store.get(f"{i}") == content(MIB, i) for i in here)
        counters = opener.node.admin("statistics")["pools"][pool]
        assert counters["bytes"] <= 8 * MIB
        assert counters["evictions"] == 40 - len(here)

    def test_an_append_needs_room_for_what_it_adds(self, opener: Opener) -> None:
        for eviction in ("none", "lru"):
            store = opener(quota="8MiB", eviction=eviction)
            length = 0
            for seed in range(6):
                length = store.append("k", content(MIB, seed), length)
            assert store.get("k") == b"".join(content(MIB, seed) for seed in range(6))

    def test_larger_than_the_quota_or_the_node_is_refused_in_words(self, opener: Opener) -> None:
        store = opener(quota="4MiB")
        store.put("k", b"stays")
        with pytest.raises(kvstrata.TooLargeError, match="larger than"):
            store.put("large", bytes(5 * MIB))
        assert store.get("k") == b"stays"

    def test_a_dropped_pool_gives_its_memory_back(self, opener: Opener) -> None:
        store = opener()
        # Counted a few times a second only, and the pools of tests before may not be gone yet.
        wait_until(lambda: live_bytes(opener) < MIB, "the node is empty", 20)
        store.put_many({f"{i}": content(MIB, i) for i in range(20)})
        store.put_many({f"s{i}": content(100, i) for i in range(2_000)})
        wait_until(lambda: live_bytes(opener) > 20 * MIB, "the gauges follow")
        opener.drop_last()
        wait_until(lambda: live_bytes(opener) < MIB, "the pool's memory is free", 20)
        with pytest.raises(kvstrata.DeniedError):
            store.get("0")


def fill(store: Store, size: int) -> int:
    """Put values until there is no space; how many were stored."""
    for count in range(100_000):
        try:
            store.put(f"{count}", content(size, count))
        except kvstrata.NoSpaceError:
            return count
    raise AssertionError("the store never fills")


def live_bytes(opener: Opener) -> int:
    shards = opener.node.admin("statistics")["shards"]
    return sum(shard["cell_bytes"] + shard["extent_bytes"] for shard in shards)
