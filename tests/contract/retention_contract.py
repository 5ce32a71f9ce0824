"""Retaining objects: outcomes, what ends a retention, rights, bounds."""

import time

import pytest

import kvstrata
from kvstrata import Store
from kvstrata.store import limits
from tests.contract.contents import content, wait_until
from tests.contract.opener import Opener

MIB = 1 << 20


class RetentionContract:
    def test_one_outcome_a_key(self, store: Store) -> None:
        store.put_many({"a": b"1", "c": b""})
        retention = store.retain_many(["a", "b", "c", "a"], 30)
        assert retention.outcomes == ["retained", "absent", "retained", "retained"]
        assert store.get_many(["a", "b", "c"]) == [b"1", None, b""]
        assert retention.release()

    def test_nothing_to_retain(self, store: Store) -> None:
        for keys in ([], ["absent"]):
            retention = store.retain_many(keys, 30)
            assert retention.outcomes == ["absent"] * len(keys)
            assert not retention.extend(30)
            assert not retention.release()

    def test_thousands_of_keys_over_several_capsules(self, opener: Opener) -> None:
        pool = opener.make_pool()
        store = opener.open(pool)
        keys = [f"key-{i}" for i in range(2_000)]
        store.put_many((key, b"value") for key in keys)
        retention = store.retain_many(keys, 30)
        assert retention.outcomes == ["retained"] * len(keys)
        assert counter(opener, pool, "retained_objects") == len(keys)
        assert retention.extend(60)
        assert retention.release()
        wait_until(lambda: counter(opener, pool, "retained_objects") == 0, "the release is done")

    def test_a_release_is_done_once(self, store: Store) -> None:
        store.put("a", b"1")
        retention = store.retain_many(["a"], 30)
        assert retention.release()
        assert not retention.release()
        assert not retention.extend(30)

    def test_a_ttl_ends_it_unless_it_is_extended(self, opener: Opener) -> None:
        pool = opener.make_pool()
        store = opener.open(pool)
        store.put_many({"a": b"1", "b": b"2"})
        ending = store.retain_many(["a"], 0.2)
        lasting = store.retain_many(["b"], 0.2)
        assert lasting.extend(60)
        assert lasting.extend(0.01)  # It never gets shorter.
        wait_until(lambda: counter(opener, pool, "retained_objects") == 1, "one of them ends")
        assert not ending.extend(30)
        assert not ending.release()
        assert lasting.release()

    def test_several_retentions_of_one_object_end_apart(self, opener: Opener) -> None:
        pool = opener.make_pool()
        store = opener.open(pool)
        store.put("a", content(MIB))
        one, two = store.retain_many(["a"], 30), store.retain_many(["a"], 30)
        assert one.release()
        time.sleep(0.25)  # Longer than the node may take to notice an end.
        assert counter(opener, pool, "retained_objects") == 1
        assert counter(opener, pool, "retained_bytes") > MIB
        assert two.release()
        wait_until(lambda: counter(opener, pool, "retained_objects") == 0, "the last has ended")

    def test_it_ends_with_its_object(self, opener: Opener) -> None:
        pool = opener.make_pool()
        store = opener.open(pool)

        def retained() -> int:
            return counter(opener, pool, "retained_objects")

        for end in (
            lambda: store.delete("a"),
            lambda: store.put("a", content(10, 2)),
            lambda: store.put("a", content(MIB)),
            lambda: store.append("a", b"more", 10),
        ):
            store.put("a", content(10))
            retention = store.retain_many(["a"], 30)
            assert retained() == 1
            end()
            assert retained() == 0
            assert retention.release()
        store.put("a", content(10))
        store.retain_many(["a"], 30)
        assert store.expire("a", 3600)  # The object stays the same.
        assert retained() == 1
        assert store.expire("a", 0.01)
        wait_until(lambda: retained() == 0, "the object expires, retained or not")

    def test_hard_needs_the_admin_right(self, opener: Opener) -> None:
        pool = opener.make_pool(read="r", write="w")
        opener.open(pool, "w").put("a", b"1")
        for secret in ("r", "w"):
            store = opener.open(pool, secret)
            with pytest.raises(kvstrata.DeniedError, match="retain_many"):
                store.retain_many(["a", "absent"], 30, hard=True)
            assert store.retain_many(["a"], 30).release()
        assert counter(opener, pool, "retained_bytes_hard") == 0
        assert opener.open(pool).retain_many(["a"], 30, hard=True).outcomes == ["retained"]
        assert counter(opener, pool, "retained_bytes_hard") > 0

    def test_a_hard_one_beyond_the_quota_is_refused_in_words(self, opener: Opener) -> None:
        pool = opener.make_pool(quota="16MiB", retained_max="3MiB")
        store = opener.open(pool)
        store.put_many({f"{i}": content(MIB - 65_536, i) for i in range(5)})
        store.put("large", content(4 * MIB))
        with pytest.raises(kvstrata.TooLargeError, match=r"'large'.*larger than .*retained_max"):
            store.retain_many(["0", "large"], 30, hard=True)
        with pytest.raises(kvstrata.BusyError, match=r"of 5 keys.*retained_max.*release some"):
            store.retain_many([f"{i}" for i in range(5)], 30, hard=True)
        wait_until(lambda: counter(opener, pool, "retained_objects") == 0, "all was given back")
        assert store.retain_many(["0", "1"], 30, hard=True).outcomes == ["retained"] * 2
        opener.node.admin("pool_change", {"name": pool, "settings": {"retained_max": "8MiB"}})
        assert store.retain_many(["2", "3"], 30, hard=True).outcomes == ["retained"] * 2

    def test_softly_beyond_the_bound_is_an_outcome(self, opener: Opener) -> None:
        pool = opener.make_pool()
        store = opener.open(pool)
        store.put("a", b"1")
        most = limits.RETENTION_CLAIM_COUNT_MAX
        first = store.retain_many(["a"] * most, 30)
        assert set(first.outcomes) == {"retained"}
        second = store.retain_many(["a", "absent"], 30)
        assert second.outcomes == ["busy", "absent"]
        assert counter(opener, pool, "retain_refusals") > 0
        assert first.release()
        assert store.retain_many(["a"], 30).outcomes == ["retained"]

    @pytest.mark.parametrize("ttl", [0, -1, 3600.5, float("inf"), float("nan"), "long", None])
    def test_times_are_checked_in_words(self, store: Store, ttl: float) -> None:
        with pytest.raises(kvstrata.UsageError, match="at most 3600 seconds, not"):
            store.retain_many(["a"], ttl)
        store.put("a", b"1")
        retention = store.retain_many(["a"], 3600)
        with pytest.raises(kvstrata.UsageError, match="at most 3600 seconds, not"):
            retention.extend(ttl)

    def test_a_key_in_place_of_keys_is_refused(self, store: Store) -> None:
        with pytest.raises(kvstrata.UsageError, match="a list of keys is wanted"):
            store.retain_many("key", 30)

    def test_misses_and_hits_are_what_they_were(self, opener: Opener) -> None:
        pool = opener.make_pool()
        store = opener.open(pool)
        store.put("a", b"1")
        before = {
            name: counter(opener, pool, name) for name in ("gets", "misses_absent", "get_hits")
        }
        store.retain_many(["a", "absent"], 30).release()
        assert before == {name: counter(opener, pool, name) for name in before}

    def test_a_pools_retentions_are_its_own(self, opener: Opener) -> None:
        one, two = opener(), opener()
        for store in (one, two):
            store.put("a", b"1")
        retention = one.retain_many(["a"], 30)
        assert two.retain_many(["a"], 30).release()
        assert retention.release()


def counter(opener: Opener, pool: str, name: str) -> int:
    pools: dict[str, dict[str, int]] = opener.node.admin("statistics")["pools"]
    return pools[pool][name]
