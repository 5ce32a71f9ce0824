"""A value beyond 4 GiB, where lengths and offsets no longer fit 32 bits. Takes 13 GiB of memory."""

import os

import pytest

import kvstrata
from tests.contract.contents import content

SIZE = (4 << 30) + 4097
PIECE = 64 << 20
MEMORY_BYTES = 13 << 30


def part(offset: int, size: int) -> bytes:
    """What the value holds there: each 64 MiB of it differ from the others."""
    index, begin = divmod(offset, PIECE)
    first = content(PIECE, seed=index)[begin : begin + size]
    return first if len(first) == size else first + part(offset + len(first), size - len(first))


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_value_beyond_4_gib_goes_in_and_comes_out() -> None:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if free < MEMORY_BYTES:
        pytest.skip(f"{free >> 30} GiB of memory are free, {MEMORY_BYTES >> 30} are needed")
    value = bytearray(SIZE)
    for offset in range(0, SIZE, PIECE):
        value[offset : offset + PIECE] = part(offset, min(PIECE, SIZE - offset))
    with kvstrata.local(memory=SIZE + (512 << 20)) as store:
        assert store.put("large", value, timeout=300).size == SIZE
        buffer = bytearray(SIZE)
        assert store.get_into("large", buffer, timeout=300) == SIZE
        assert buffer == value
        for offset in (0, (4 << 30) - 100, 4 << 30, SIZE - 100):
            size = min(200, SIZE - offset)
            assert store.get_range("large", offset, size) == value[offset : offset + size]
        status = store.stat("large")
        assert status is not None
        assert status.size == SIZE
        del buffer[:]
        # No room for it twice, so it is replaced by evicting it.
        assert store.put("other", value, timeout=300).size == SIZE
        assert store.get_range("other", SIZE - 1, 1) == value[-1:]
        assert store.get("large", timeout=300) is None
