"""RESP2 and RESP3 in plain Python, written from the protocol alone: what tells replies apart.

A reply keeps its exact bytes beside what they mean, so that both can be compared.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

LINES: Final = b"+-:_,#("
BULKS: Final = b"$=!"
AGGREGATES: Final = b"*~>%|"


class BrokenReplyError(Exception):
    """The bytes are no reply of either version."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply: its kind is the byte it begins with.

    `text` is the line of a simple kind, or a bulk's bytes; `items` are an aggregate's replies, a
    map's keys and values in turn. Both are None for what is absent (`$-1`, `*-1`).
    """

    kind: str
    raw: bytes
    text: bytes | None = None
    items: tuple["Reply", ...] | None = None

    @property
    def is_error(self) -> bool:
        return self.kind in "-!"

    @property
    def is_nil(self) -> bool:
        return self.kind == "_" or (self.text is None and self.items is None)

    @property
    def integer(self) -> int:
        assert self.kind == ":"
        assert self.text is not None
        return int(self.text)

    def shape(self) -> str:
        """The kinds alone; for errors, with their text."""
        if self.is_error:
            return self.raw.decode("latin-1")
        if self.is_nil:
            return "nil"
        if self.items is None:
            return self.kind
        return self.kind + "(" + " ".join(item.shape() for item in self.items) + ")"


def encode_command(arguments: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(arguments) + b"".join(
        b"$%d\r\n%b\r\n" % (len(argument), argument) for argument in arguments
    )


class ReplyReader:
    """Reads replies one by one; `receive` returns further bytes, none at the end of the stream."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._bytes = b""
        self._at = 0

    def read(self) -> Reply:
        """Return the next reply.

        Raises:
            EOFError: the stream ended before or within it.
            BrokenReplyError: it begins with no known byte, or a length is no number.
        """
        self._bytes = self._bytes[self._at :]
        self._at = 0
        return self._reply()

    def has_rest(self) -> bool:
        """Tell whether bytes of a further reply have come already."""
        return self._at < len(self._bytes)

    def _reply(self) -> Reply:
        begin = self._at
        line = self._line()
        kind, rest = line[:1], line[1:]
        text: bytes | None = None
        items: tuple[Reply, ...] | None = None
        if kind and kind in LINES:
            text = None if kind == b"_" else rest
        elif kind and kind in BULKS:
            text = self._bulk(self._length(rest))
        elif kind and kind in AGGREGATES:
            count = self._length(rest) * (2 if kind in b"%|" else 1)
            items = tuple(self._reply() for _ in range(count)) if count >= 0 else None
        else:
            raise BrokenReplyError(f"a reply begins with {line!r}")
        raw = self._bytes[begin : self._at]
        return Reply(kind.decode(), raw, text, items)

    def _length(self, digits: bytes) -> int:
        if digits != b"-1" and not digits.isdigit():
            raise BrokenReplyError(f"{digits!r} is no length")
        return int(digits)

    def _line(self) -> bytes:
        while (end := self._bytes.find(b"\r\n", self._at)) < 0:
            self._fill()
        line = self._bytes[self._at : end]
        self._at = end + 2
        return line

    def _bulk(self, length: int) -> bytes | None:
        if length < 0:
            return None
        end = self._at + length
        while len(self._bytes) < end + 2:
            self._fill()
        if self._bytes[end : end + 2] != b"\r\n":
            raise BrokenReplyError(f"a bulk of {length} bytes does not end where it should")
        text = self._bytes[self._at : end]
        self._at = end + 2
        return text

    def _fill(self) -> None:
        received = self._receive()
        if not received:
            raise EOFError
        self._bytes += received
