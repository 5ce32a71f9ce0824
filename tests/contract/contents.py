"""Values whose every byte is known from a few numbers, cheap to make and to compare."""

import random
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kvstrata.store import limits

# A prime, so that no two chunks or pages of a value are alike.
_PERIOD: Final = 65_521
_PATTERN: Final = random.Random(18_400).randbytes(_PERIOD) * (2 + (96 << 20) // _PERIOD)
_HEAD: Final = struct.Struct("<QQ")

SIZES_BASE: Final = (
    0,
    limits.PAGE_BYTES,
    limits.RECORD_BYTES_INLINE_MAX,
    64 * 1024,  # Up to here a small value travels to another shard whole.
    limits.CHUNK_BYTES,
    3 * limits.CHUNK_BYTES,
    limits.SEGMENT_BYTES_MIN,
)


def content(size: int, seed: int = 0) -> bytes:
    """`size` bytes; other seeds give other bytes almost everywhere."""
    start = seed * 7919 % _PERIOD
    return _PATTERN[start : start + size]


def described(size: int, seed: int) -> bytes:
    """A value that says in its first 16 bytes what all its bytes are."""
    return _HEAD.pack(size, seed) + content(size - _HEAD.size, seed)


def check_described(value: bytes | bytearray | memoryview) -> int:
    """Compare every byte of a `described` value; returns its seed."""
    size, seed = _HEAD.unpack_from(value)
    assert size == len(value), f"a value of {size} bytes arrived as {len(value)}"
    assert value == described(size, seed), f"torn or foreign bytes in the value of seed {seed}"
    return int(seed)


def sizes_near_boundaries(seed: int) -> list[int]:
    """Every boundary with its neighbours, and random sizes around it."""
    choose = random.Random(seed)
    # A record holds header, key and checksum beside the value, so its own bound lies lower.
    near = {max(0, base + offset) for base in SIZES_BASE for offset in (-65, -33, -1, 0, 1)}
    near |= {max(0, base + choose.randint(-200, 200)) for base in SIZES_BASE for _ in range(4)}
    return sorted(near)


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 10.0) -> None:
    """Look again and again, for a bounded time.

    Raises:
        AssertionError: it has not come true.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.002)


def overwrite(path: Path, offset: int) -> None:
    """Turn one byte of a file into another."""
    with open(path, "r+b") as file:
        file.seek(offset)
        before = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([before ^ 1]))
