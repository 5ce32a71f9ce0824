"""Amounts of memory as Valkey's CONFIG takes them and INFO shows them."""

import re
from typing import Final

_UNITS: Final = {
    "": 1,
    "b": 1,
    "k": 10**3,
    "kb": 2**10,
    "m": 10**6,
    "mb": 2**20,
    "g": 10**9,
    "gb": 2**30,
}
_AMOUNT: Final = re.compile(r"([0-9]{1,20})([a-z]*)")
_BYTES_MAX: Final = 2**64 - 1


def parse_memory(text: str) -> int | None:
    """Bytes of "100mb" (2**20 each) or "100m" (10**6); None if the text is no amount of memory."""
    found = _AMOUNT.fullmatch(text.lower())
    if found is None or found[2] not in _UNITS:
        return None
    amount = int(found[1]) * _UNITS[found[2]]
    return amount if amount <= _BYTES_MAX else None


def show_memory(amount: int) -> str:
    """The amount for people, as Valkey writes it: 1.23M, 17B."""
    for power, letter in enumerate("BKMGT"):
        if amount < 1024 ** (power + 1) or letter == "T":
            return f"{amount / 1024**power:.2f}{letter}" if power else f"{amount}B"
    raise AssertionError
