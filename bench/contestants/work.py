"""What a contestant is asked to do and what it answers: one JSON line each way.

Standard library only, since contestants run in the peers' environments too.
"""

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Self


class Operation(StrEnum):
    """The calls that are measured, and what goes before and after them."""

    LOAD = "load"  # Stores the keys that reading operations will ask for.
    TIDY = "tidy"  # Deletes what the last PUT stored.
    GET_INTO = "get_into"
    PUT = "put"
    EXISTS_MANY = "exists_many"
    PREFIX_LENGTH = "prefix_length"


@dataclass(frozen=True)
class Work:
    """One round of one operation by one thread, one call at a time.

    `key_count` keys hold values of `size_bytes`; batches take `batch_length` keys a call. The
    round ends after `seconds`, so all contestants are watched equally long.
    """

    operation: Operation
    size_bytes: int
    key_count: int
    seconds: float = 0.0
    batch_length: int = 1
    seed: int = 1

    def seeded(self, seed: int) -> Self:
        """The same work with its keys in another order."""
        return replace(self, seed=seed)

    def to_line(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Self:
        fields = json.loads(line)
        return cls(**{**fields, "operation": Operation(fields["operation"])})


@dataclass(frozen=True)
class Outcome:
    """What a round took: `call_count` calls, their latency in us, their sum in seconds."""

    call_count: int
    p50_us: float
    p99_us: float
    total_s: float

    def to_line(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Self:
        return cls(**json.loads(line))


def key_name(size_bytes: int, index: int) -> str:
    """A key of exactly 32 bytes."""
    return f"{size_bytes:08x}:{index:023d}"
