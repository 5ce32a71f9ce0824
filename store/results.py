"""What calls return: plain values, cheap to make."""

import enum
from dataclasses import dataclass
from typing import NamedTuple


class Outcome(enum.StrEnum):
    """What a put did."""

    CREATED = "created"
    REPLACED = "replaced"
    EXISTED = "existed"


class Retained(enum.StrEnum):
    """What became of a key that was to be retained.

    `busy`: the pool's retentions are at their bounds.
    """

    RETAINED = "retained"
    ABSENT = "absent"
    BUSY = "busy"


class PutResult(NamedTuple):
    """What a put did, and the object as it is now.

    Attributes:
        outcome: created, replaced, or existed (`if_absent`, and the key was there).
        size: bytes of the value under the key: with `existed`, of the one that was there.
        version: grows with each change of the key in a mutable pool.
    """

    outcome: Outcome
    size: int
    version: int


class KeyInfo(NamedTuple):
    """A key met in a scan, and the size of its value in bytes."""

    key: bytes
    size: int


class RangeResult(NamedTuple):
    """What a range read moved.

    Attributes:
        length: bytes written to the buffer; fewer than asked where the value ends.
        size: bytes of the whole value.
        version: of the object that was read.
    """

    length: int
    size: int
    version: int


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """What the node knows about one object.

    Attributes:
        size: bytes of the value.
        version: grows with each change of the key in a mutable pool.
        ttl: seconds until it expires; None: never.
        chunk_count: pieces that the value is kept in.
        tier: where it rests.
        dtype: of a tensor that was put as one, for example "bfloat16"; else None.
        shape: of the same tensor; else None.
    """

    size: int
    version: int
    ttl: float | None
    chunk_count: int
    tier: str
    dtype: str | None
    shape: tuple[int, ...] | None


class Transport(NamedTuple):
    """How bytes travel, and why so."""

    name: str
    reason: str
