"""What writes do to what was there: outcomes, appends, deletes, life times."""

import math
from typing import Any

import pytest

import kvstrata
from kvstrata import Store
from kvstrata.store import limits
from tests.contract.contents import content, wait_until
from tests.contract.opener import Opener

CHUNK = limits.CHUNK_BYTES


class WriteContract:
    def test_put_tells_what_it_did(self, store: Store) -> None:
        created = store.put("k", b"one")
        assert (created.outcome, created.size) == ("created", 3)
        replaced = store.put("k", b"three")
        assert (replaced.outcome, replaced.size) == ("replaced", 5)
        assert replaced.version > created.version
        existed = store.put("k", b"x" * CHUNK * 2, if_absent=True)
        assert existed == ("existed", 5, replaced.version)
        assert store.get("k") == b"three"
        store.delete("k")
        assert store.put("k", b"", if_absent=True).outcome == "created"
        assert store.get("k") == b""

    @pytest.mark.parametrize("before", [0, 100, 10_000, 2 * CHUNK])
    @pytest.mark.parametrize("after", [0, 99, 9_000, CHUNK + 1])
    def test_replacing_leaves_nothing_of_the_old_value(
        self, store: Store, before: int, after: int
    ) -> None:
        store.put("k", content(before, 1))
        store.put("k", content(after, 2))
        assert store.get("k") == content(after, 2)
        status = store.stat("k")
        assert status is not None
        assert status.size == after

    def test_stat_tells_what_is_known(self, store: Store) -> None:
        result = store.put("k", content(CHUNK + 1), ttl=1000)
        status = store.stat("k")
        assert status is not None
        assert (status.size, status.version) == (CHUNK + 1, result.version)
        assert (status.chunk_count, status.tier) == (2, "dram")
        assert status.ttl is not None
        assert 990 < status.ttl <= 1000
        assert (status.dtype, status.shape) == (None, None)

    @pytest.mark.parametrize(
        "parts",
        [
            [0, 0, 1, 0],
            [10, 20, 30],
            [8_000, 100, 100, 100],
            [100, 8_100, 1],
            [CHUNK - 1, 1, 1],
            [CHUNK, CHUNK, CHUNK],
            [CHUNK + 1, CHUNK - 2, 2, CHUNK],
            [1, 3 * CHUNK, 5],
            [70_000, 2 * CHUNK, 70_000],
        ],
    )
    def test_appends_of_every_shape(self, store: Store, parts: list[int]) -> None:
        whole = b""
        for seed, size in enumerate(parts):
            part = content(size, seed)
            assert store.append("k", part, len(whole)) == len(whole) + size
            whole += part
            assert store.get("k") == whole
            assert (
                store.get_range("k", max(0, len(whole) - size - 2), 7)
                == (whole[max(0, len(whole) - size - 2) :][:7])
            )

    def test_append_goes_only_where_the_object_ends(self, store: Store) -> None:
        for at, length in ((3, 0), (1, 0)):
            with pytest.raises(kvstrata.MismatchError) as caught:
                store.append("k", b"more", at)
            assert caught.value.length == length
        assert not store.exists("k")
        store.put("k", content(CHUNK + 5))
        for at in (0, CHUNK, CHUNK + 4, CHUNK + 6, 10 * CHUNK):
            with pytest.raises(kvstrata.MismatchError, match=f"ends at {CHUNK + 5}") as caught:
                store.append("k", b"more", at)
            assert caught.value.length == CHUNK + 5
        assert store.get("k") == content(CHUNK + 5)
        impossible: list[Any] = [2**64, 0.5, "0"]
        for each in impossible:
            with pytest.raises(kvstrata.UsageError, match=f"below .*, not {each!r}"):
                store.append("k", b"", each)
        with pytest.raises(kvstrata.UsageError, match="not -1"):
            store.append("k", b"more", -1)

    def test_append_keeps_the_time_to_live(self, store: Store) -> None:
        for size in (10, CHUNK + 1):
            store.put("k", content(size), ttl=500)
            store.append("k", b"more", size)
            status = store.stat("k")
            assert status is not None
            assert status.ttl is not None
            assert 490 < status.ttl <= 500

    def test_immutable_objects_are_not_overwritten_but_grow(self, opener: Opener) -> None:
        store = opener(kind="immutable")
        assert store.put("k", b"first").outcome == "created"
        with pytest.raises(kvstrata.ImmutableError, match="immutable: put only if absent"):
            store.put("k", b"second")
        with pytest.raises(kvstrata.ImmutableError):
            store.put("k", content(3 * CHUNK))
        assert store.put("k", b"second", if_absent=True).outcome == "existed"
        assert store.append("k", b"+more", 5) == 10
        assert store.get("k") == b"first+more"
        assert store.delete("k")
        assert store.put("k", b"second").outcome == "created"

    def test_delete_of_every_size(self, store: Store) -> None:
        for size in (0, 50, 8192, 3 * CHUNK):
            store.put("k", content(size))
            assert store.delete("k")
            assert not store.delete("k")
            assert store.get("k") is None

    def test_what_has_a_time_to_live_goes(self, store: Store) -> None:
        keys = {f"k{size}": content(size) for size in (0, 10, 8192, CHUNK + 1)}
        store.put_many(keys, ttl=0.05)
        store.put("other", b"stays")
        wait_until(lambda: not any(store.exists_many(keys)), "objects expire")
        assert store.get_many(keys) == [None] * len(keys)
        assert store.prefix_length(keys) == 0
        assert [info.key for info in store.scan()] == [b"other"]
        assert [store.put(key, b"").outcome for key in keys] == ["created"] * len(keys)

    def test_a_reader_finds_nothing_or_the_value_while_it_expires(self, store: Store) -> None:
        value = content(3 * CHUNK)
        store.put("k", value, ttl=0.1)
        found = []

        def gone() -> bool:
            found.append(store.get("k"))
            return found[-1] is None

        wait_until(gone, "the object expires")
        assert set(found) <= {value, None}
        assert found.count(None) == 1

    # 8137 to 8153 bytes: the record just fits a cell without the eight bytes of an expiry.
    @pytest.mark.parametrize("size", [0, 100, *range(8_080, 8_193, 8), CHUNK, 2 * CHUNK + 1])
    def test_a_time_to_live_can_be_given_and_taken_later(self, store: Store, size: int) -> None:
        value = content(size)
        store.put("k", value)
        for seconds, most in ((100.0, 100.0), (50.0, 50.0), (None, None), (7.0, 7.0)):
            assert store.expire("k", seconds)
            status = store.stat("k")
            assert status is not None
            assert (status.ttl is None) == (most is None)
            if most is not None and status.ttl is not None:
                assert most - 5 < status.ttl <= most
            assert store.get("k") == value
        store.expire("k", 0.001)
        wait_until(lambda: store.get("k") is None, "the object expires")

    def test_overwriting_ends_the_old_time_to_live(self, store: Store) -> None:
        store.put("k", b"old", ttl=100)
        store.put("k", b"new")
        status = store.stat("k")
        assert status is not None
        assert status.ttl is None

    def test_a_pool_has_a_default_time_to_live(self, opener: Opener) -> None:
        store = opener(ttl=300)
        for ttl, expected in ((None, 300), (20, 20), (math.inf, None)):
            store.put("k", b"v", ttl=ttl)
            status = store.stat("k")
            assert status is not None
            assert status.ttl == (expected and pytest.approx(expected, abs=5))

    @pytest.mark.parametrize("ttl", [0, -1, math.nan, 1e300, 2**63, "5", b"5"])
    def test_a_time_to_live_is_above_zero(self, store: Store, ttl: float) -> None:
        with pytest.raises(kvstrata.UsageError, match="above 0 seconds"):
            store.put("k", b"", ttl=ttl)
        with pytest.raises(kvstrata.UsageError, match="above 0 seconds"):
            store.expire("k", ttl)
