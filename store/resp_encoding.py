"""Replies to Valkey clients as bytes of RESP2 or RESP3. Knows nothing of commands.

Version 2 has arrays for maps and sets, and bulks for texts with a format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

Reply = Union[
    None, bytes, str, int, Sequence["Reply"], Mapping[Any, "Reply"], "Set", "Simple", "Verbatim"
]


@dataclass(frozen=True, slots=True)
class Simple:
    """A simple string."""

    text: str


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A text for people, as INFO's; RESP3 tells them from other bulks."""

    text: str


@dataclass(frozen=True, slots=True)
class Set:
    """A set."""

    items: Sequence[Reply]


OK = Simple("OK")


def encode(value: Reply, version: int) -> bytes:
    """Return the bytes of a reply in version 2 or 3 of RESP.

    Raises:
        TypeError: the value has no form in RESP.
    """
    match value:
        case None:
            return b"$-1\r\n" if version == 2 else b"_\r\n"
        case str():
            return encode(value.encode(errors="surrogateescape"), version)
        case bytes():
            return b"$%d\r\n%b\r\n" % (len(value), value)
        case int():
            return b":%d\r\n" % value
        case Mapping():
            head = b"*%d\r\n" % (2 * len(value)) if version == 2 else b"%%%d\r\n" % len(value)
            return head + b"".join(
                encode(key, version) + encode(inner, version) for key, inner in value.items()
            )
        case Set(items):
            head = b"%b%d\r\n" % (b"*" if version == 2 else b"~", len(items))
            return head + b"".join(encode(each, version) for each in items)
        case Sequence():
            return b"*%d\r\n" % len(value) + b"".join(encode(each, version) for each in value)
        case Simple(text):
            return b"+%b\r\n" % text.encode("ascii")
        case Verbatim(text):
            return _verbatim(text.encode(errors="surrogateescape"), version)
    raise TypeError(f"no form in RESP for {value!r}")


def encode_error(words: str) -> bytes:
    """Return an error whose first word is its code; what would end its line becomes a space."""
    line = words.replace("\r", " ").replace("\n", " ")
    return b"-%b\r\n" % line.encode(errors="surrogateescape")


def _verbatim(text: bytes, version: int) -> bytes:
    if version == 2:
        return b"$%d\r\n%b\r\n" % (len(text), text)
    return b"=%d\r\ntxt:%b\r\n" % (len(text) + len(b"txt:"), text)
