"""Sizes and durations as people write them: "2GiB", "1.5 MB", "250ms", "1h"."""

import re
from typing import Final

_SIZE_UNITS: Final = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_DURATION_UNITS: Final = {
    "": 1.0,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_SIZE_MAX: Final = 2**64 - 1
_DIGITS: Final = 30  # More are a mistake, and no float or conversion is to overflow.
_QUANTITY: Final = re.compile(rf"\s*(\d{{1,{_DIGITS}}}(?:\.\d{{1,{_DIGITS}}})?)\s*([A-Za-z]*)\s*")


def parse_size(value: object) -> int:
    """Bytes of an int or of a text such as "2GiB" (1024) or "2GB" (1000).

    Raises:
        ValueError: it is neither, not a whole number of bytes, or 2**64 and more.
    """
    amount, unit = _split(value, "a size such as 268435456 or '256MiB'")
    factor = _SIZE_UNITS.get(unit.upper())
    if factor is None:
        raise ValueError(f"unknown unit {unit!r} in size {value!r}: use B, KiB, MiB, GiB, TiB")
    size = amount * factor
    if size != int(size):
        raise ValueError(f"size {value!r} is not a whole number of bytes")
    if size > _SIZE_MAX:
        raise ValueError(f"size {value!r} is more than 64 bits count: at most 16777215TiB")
    return int(size)


def parse_duration(value: object) -> float:
    """Seconds of a number or of a text such as "250ms", "5s" or "2h".

    Raises:
        ValueError: it is neither.
    """
    amount, unit = _split(value, "a duration such as 5 or '5s'")
    factor = _DURATION_UNITS.get(unit)
    if factor is None:
        raise ValueError(f"unknown unit {unit!r} in duration {value!r}: use us, ms, s, min, h, d")
    return float(amount * factor)


def format_size(size: int) -> str:
    """The size with the largest unit that leaves at least 1: "256 MiB", "1.5 GiB", "17 B"."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        factor = _SIZE_UNITS[unit.upper()]
        if size >= factor:
            return f"{size / factor:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} B"


def format_duration(seconds: float) -> str:
    """The duration in the largest unit that it is a whole number of: "100 us", "90 s", "1 h"."""
    for unit in ("d", "h", "min", "s", "ms", "us"):
        amount = round(seconds / _DURATION_UNITS[unit], 6)
        if amount >= 1 and amount.is_integer():
            return f"{amount:.0f} {unit}"
    return f"{seconds:g} s"


def _split(value: object, wanted: str) -> tuple[float | int, str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value < 10**_DIGITS:
            raise ValueError(f"{value!r} is not {wanted}")
        return value, ""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not {wanted}")
    number, unit = match.groups()
    return (float(number) if "." in number else int(number)), unit
