"""What goes in comes out: sizes, keys, absence, buffers, ranges."""

import mmap
import random
from typing import Any

import pytest

import kvstrata
from kvstrata import Store
from kvstrata.store import limits
from tests.contract.contents import content, sizes_near_boundaries
from tests.contract.opener import Opener

CHUNK = limits.CHUNK_BYTES
POISON = 0xA5


class ValueContract:
    @pytest.mark.parametrize("verify", [True, False], ids=["verify", "trust"])
    def test_values_of_every_size_come_back(self, opener: Opener, verify: bool) -> None:
        store = opener(verify=verify)
        buffer = bytearray(4 * CHUNK)
        for seed, size in enumerate(sizes_near_boundaries(seed=1)):
            value, key = content(size, seed), f"{size}"
            assert store.put(key, value)[:2] == ("created", size)
            assert store.get(key) == value, size
            assert store.get_into(key, buffer) == size
            assert buffer[:size] == value, size

    def test_a_value_of_64_mib_and_a_byte(self, store: Store) -> None:
        value = content((64 << 20) + 1)
        store.put("large", value)
        buffer = bytearray(len(value))
        assert store.get_into("large", buffer) == len(value)
        assert buffer == value
        assert store.get_range("large", 64 << 20, 10) == value[64 << 20 :]
        status = store.stat("large")
        assert status is not None
        assert (status.size, status.chunk_count) == (len(value), 129)

    @pytest.mark.parametrize(
        "key",
        [b"", b"\0", b"\xff" * 3, bytes(range(256)), b"\r\n {tag} ", "schlüssel", b"k" * 4096],
        ids=["empty", "nul", "not_utf8", "all_bytes", "spaces", "text", "longest"],
    )
    def test_any_bytes_are_a_key(self, store: Store, key: bytes | str) -> None:
        raw = key.encode() if isinstance(key, str) else key
        store.put(key, b"value")
        assert store.get(raw) == b"value"
        assert [info.key for info in store.scan(raw)] == [raw]
        assert store.exists(key)
        assert store.delete(key)
        assert store.get(key) is None

    def test_the_longest_key_takes_any_size_of_value(self, store: Store) -> None:
        key = b"k" * limits.KEY_BYTES_MAX
        for size in (0, 1, 4000, 4057, 4058, 4096, 8192, CHUNK + 1, 200 * CHUNK // 64):
            store.put(key, content(size))
            assert store.get(key) == content(size), size

    def test_a_key_of_4097_bytes_is_refused_in_words(self, store: Store) -> None:
        for call in (store.get, store.exists, store.delete, store.stat):
            with pytest.raises(kvstrata.TooLargeError, match="at most 4096 bytes, not 4097"):
                call(b"k" * 4097)
        with pytest.raises(kvstrata.TooLargeError, match="4096"):
            store.put(b"k" * 4097, b"")

    def test_keys_differ_in_any_byte(self, store: Store) -> None:
        keys = [b"a", b"a\0", b"\0a", b"A", b"", b"aa"]
        for index, key in enumerate(keys):
            store.put(key, bytes([index]))
        assert store.get_many(keys) == [bytes([index]) for index in range(len(keys))]

    def test_absence_is_not_emptiness(self, store: Store) -> None:
        buffer = bytearray([POISON]) * 8
        assert store.get("k") is None
        assert store.get_into("k", buffer) is None
        assert store.get_range("k", 0, 1) is None
        assert store.get_range_into("k", 0, buffer) is None
        assert store.stat("k") is None
        assert not store.exists("k")
        assert not store.delete("k")
        assert not store.expire("k", 10)
        store.put("k", b"")
        assert store.get("k") == b""
        assert store.get_into("k", buffer) == 0
        assert store.get_into("k", bytearray()) == 0
        assert store.get_range("k", 0, 1) == b""
        result = store.get_range_into("k", 0, buffer)
        assert result is not None
        assert result[:2] == (0, 0)
        assert store.exists("k")
        assert buffer == bytearray([POISON]) * 8

    @pytest.mark.parametrize("size", [1, 100, 8192, CHUNK, 2 * CHUNK + 1])
    def test_too_small_a_buffer_tells_the_size_and_stays_as_it_was(
        self, store: Store, size: int
    ) -> None:
        store.put("k", content(size))
        for capacity in {0, size // 2, size - 1}:
            buffer = bytearray([POISON]) * capacity
            with pytest.raises(kvstrata.TooSmallError, match=f"buffer of {size} bytes") as caught:
                store.get_into("k", buffer)
            assert caught.value.size == size
            assert buffer == bytearray([POISON]) * capacity
        buffer = bytearray([POISON]) * (caught.value.size + 3)
        assert store.get_into("k", buffer) == size
        assert buffer == content(size) + bytes([POISON]) * 3

    @pytest.mark.parametrize("size", [0, 1, 5000, 8192, 70_000, CHUNK, CHUNK + 1, 3 * CHUNK - 7])
    def test_ranges_everywhere(self, store: Store, size: int) -> None:
        value = content(size, 5)
        store.put("k", value)
        choose = random.Random(size)
        edges = {0, 1, 4095, 8192, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, size, size + 1}
        offsets = {*edges, max(0, size - 1), *(choose.randint(0, size) for _ in range(5)), 2**62}
        for offset in offsets:
            for length in {0, 1, CHUNK - 1, CHUNK + 1, choose.randint(0, size), 2**40}:
                expected = value[offset : offset + length]
                assert store.get_range("k", offset, length) == expected, (offset, length)
            buffer = bytearray([POISON]) * 1000
            result = store.get_range_into("k", offset, buffer)
            expected = value[offset : offset + 1000]
            assert result is not None
            assert result[:2] == (len(expected), size)
            assert buffer == expected + bytes([POISON]) * (1000 - len(expected))

    def test_impossible_ranges_are_refused_in_words(self, store: Store) -> None:
        store.put("k", b"abc")
        ranges: list[tuple[Any, Any]] = [
            (-1, 2),
            (0, -1),
            (2**64, 1),
            (0, 2**64),
            ("0", 1),
            (0, 0.5),
        ]
        for offset, length in ranges:
            with pytest.raises(kvstrata.UsageError, match=f"not {offset!r} and {length!r}"):
                store.get_range("k", offset, length)
        with pytest.raises(kvstrata.UsageError, match=f"not {2**64} and 4"):
            store.get_range_into("k", 2**64, bytearray(4))

    def test_a_key_without_an_utf8_form_is_refused_in_words(self, store: Store) -> None:
        for call in (store.get, store.exists, store.stat, lambda key: store.put(key, b"")):
            with pytest.raises(kvstrata.UsageError, match="no UTF-8 form"):
                call("\ud800")
        with pytest.raises(kvstrata.UsageError, match="no UTF-8 form"):
            store.get_into("\ud800", bytearray(4))

    def test_values_come_from_and_go_into_any_contiguous_memory(self, store: Store) -> None:
        value = content(10_000)
        with mmap.mmap(-1, len(value)) as mapped:
            mapped[:] = value
            for source in (value, bytearray(value), memoryview(value), mapped):
                store.put("k", source)
                assert store.get("k") == value
        two_dimensional = memoryview(bytearray(value)).cast("B", [100, 100])
        store.put("k", two_dimensional)
        with mmap.mmap(-1, len(value)) as mapped:
            assert store.get_into("k", mapped) == len(value)
            assert mapped[:] == value
        part = bytearray([POISON]) * 20_000
        assert store.get_into("k", memoryview(part)[5_000:15_000]) == len(value)
        assert part == bytes([POISON]) * 5_000 + value + bytes([POISON]) * 5_000

    def test_memory_that_will_not_do_is_refused_in_words(self, store: Store) -> None:
        store.put("k", b"abcd")
        with pytest.raises(kvstrata.UsageError, match="not contiguous"):
            store.put("k", memoryview(b"abcdefgh")[::2])
        with pytest.raises(kvstrata.UsageError, match="read-only"):
            store.get_into("k", b"abcd")
        with pytest.raises(kvstrata.UsageError, match="type str has no bytes"):
            store.put("k", "text")  # type: ignore[arg-type]
        with pytest.raises(kvstrata.UsageError, match="bytes or str, not int"):
            store.get(7)  # type: ignore[arg-type]
        assert store.get("k") == b"abcd"
