"""Many keys in a call, and all keys of a pool: one outcome a key, in order."""

import pytest

import kvstrata
from kvstrata import Store
from kvstrata.store import limits
from tests.contract.contents import content
from tests.contract.opener import Opener

CHUNK = limits.CHUNK_BYTES
MANY = 5_000


class BatchContract:
    def test_empty_lists(self, store: Store) -> None:
        assert store.put_many({}) == []
        assert store.get_many([]) == []
        assert store.get_many_into([], []) == []
        assert store.exists_many([]) == []
        assert store.delete_many([]) == []
        assert store.expire_many([], 5) == []
        assert store.prefix_length([]) == 0

    def test_five_thousand_keys(self, store: Store) -> None:
        pairs = {b"key-%d" % i: content(i % 300, i) for i in range(MANY)}
        keys = list(pairs)
        assert store.put_many(pairs) == ["created"] * MANY
        assert store.put_many(list(pairs.items())) == ["replaced"] * MANY
        assert store.get_many(keys) == list(pairs.values())
        assert store.exists_many(keys) == [True] * MANY
        assert store.prefix_length(keys) == MANY
        assert store.expire_many(keys, 1000) == [True] * MANY
        buffers = [bytearray(300) for _ in keys]
        assert store.get_many_into(keys, buffers) == [len(value) for value in pairs.values()]
        assert all(
            buffer.startswith(value) for buffer, value in zip(buffers, pairs.values(), strict=True)
        )
        gone = keys[::3]
        assert store.delete_many(gone) == [True] * len(gone)
        assert store.exists_many(keys) == [index % 3 != 0 for index in range(MANY)]
        assert store.prefix_length(keys[1:]) == 2

    def test_long_keys_do_not_fit_one_capsule(self, store: Store) -> None:
        keys = [b"%04d" % i + bytes(limits.KEY_BYTES_MAX - 4) for i in range(600)]
        store.put_many([(key, key[:4]) for key in keys])
        assert store.get_many(keys) == [key[:4] for key in keys]
        assert store.prefix_length([*keys, b"absent", keys[0]]) == 600
        assert sorted(info.key for info in store.scan()) == keys

    def test_values_of_all_sizes_in_one_batch(self, store: Store) -> None:
        sizes = [0, 10, 3 * CHUNK + 1, 8192, 0, CHUNK, 65_537, 1]
        pairs = {f"{i}": content(size, i) for i, size in enumerate(sizes)}
        store.put_many(pairs)
        assert store.get_many(pairs) == list(pairs.values())
        buffers = [bytearray(size) for size in sizes]
        assert store.get_many_into(pairs, buffers) == sizes
        assert buffers == list(pairs.values())

    def test_a_key_may_come_twice(self, store: Store) -> None:
        store.put("a", b"1")
        assert store.get_many(["a", "b", "a"]) == [b"1", None, b"1"]
        assert store.exists_many(["a", "a"]) == [True, True]
        assert store.prefix_length(["a", "a", "b"]) == 2
        assert store.put_many([("b", b"1"), ("b", b"2")]) == ["created", "replaced"]
        assert store.get("b") == b"2"
        assert store.put_many([("c", b"1"), ("c", b"2")], if_absent=True) == [
            "created",
            "existed",
        ]
        assert store.get("c") == b"1"
        assert store.delete_many(["a", "a"]) == [True, False]

    def test_one_outcome_a_key(self, store: Store) -> None:
        store.put_many({"a": b"1", "c": b""})
        assert store.get_many(["a", "b", "c"]) == [b"1", None, b""]
        assert store.exists_many("abc"[i] for i in range(3)) == [True, False, True]
        assert store.prefix_length(["a", "b", "c"]) == 1
        assert store.expire_many(["b", "c"], 100) == [False, True]
        outcomes = store.put_many({"a": b"2", "b": b"2"}, if_absent=True)
        assert outcomes == ["existed", "created"]
        assert store.delete_many(["c", "d", "b"]) == [True, False, True]

    def test_a_failure_of_one_key_leaves_the_others_done(self, opener: Opener) -> None:
        store = opener(kind="immutable")
        store.put("b", b"before")
        with pytest.raises(kvstrata.BatchError, match="1 of the put_many of 3 keys") as caught:
            store.put_many({"a": b"1", "b": content(CHUNK + 1), "c": b"3"})
        assert list(caught.value.failures) == [1]
        assert isinstance(caught.value.failures[1], kvstrata.ImmutableError)
        assert caught.value.outcomes[0] == "created"
        assert caught.value.outcomes[2] == "created"
        assert store.get_many(["a", "b", "c"]) == [b"1", b"before", b"3"]

    def test_a_buffer_too_small_fails_alone(self, store: Store) -> None:
        store.put_many({"a": b"123", "b": content(CHUNK), "c": b"456"})
        buffers = [bytearray(3), bytearray(b"\xa5" * 5), bytearray(3)]
        with pytest.raises(kvstrata.BatchError) as caught:
            store.get_many_into(["a", "b", "c"], buffers)
        failure = caught.value.failures[1]
        assert isinstance(failure, kvstrata.TooSmallError)
        assert f"get of 'b': the value has {CHUNK} bytes, the buffer 5" in str(failure)
        assert failure.size == CHUNK
        assert caught.value.outcomes[0] == 3
        assert buffers == [b"123", b"\xa5" * 5, b"456"]

    def test_a_key_in_place_of_a_list_is_refused_in_words(self, store: Store) -> None:
        with pytest.raises(kvstrata.UsageError, match="a list of keys is wanted"):
            store.get_many("key")
        with pytest.raises(kvstrata.UsageError, match="one buffer a key, not 1 for 2"):
            store.get_many_into(["a", "b"], [bytearray()])

    def test_scan_meets_every_key(self, store: Store) -> None:
        pairs = {f"{'even' if i % 2 == 0 else 'odd'}-{i}": content(i % 5) for i in range(3_000)}
        store.put_many(pairs)
        assert {(info.key.decode(), info.size) for info in store.scan()} == {
            (key, len(value)) for key, value in pairs.items()
        }
        odd = {info.key for info in store.scan("odd-")}
        assert odd == {key.encode() for key in pairs if key.startswith("odd")}
        assert list(store.scan("none")) == []

    def test_scan_meets_what_stays_while_others_come_and_go(self, store: Store) -> None:
        staying = {b"stay-%d" % i for i in range(2_000)}
        store.put_many([(key, b"") for key in staying])
        met = set()
        for index, info in enumerate(store.scan()):
            met.add(info.key)
            if index % 200 == 0:  # The index grows, and shrinks, under the scan.
                store.put_many([(b"new-%d-%d" % (index, i), b"") for i in range(500)])
                store.delete_many(b"new-%d-%d" % (index - 200, i) for i in range(500))
            assert index < 50_000, "a scan ends"
        assert staying <= met
