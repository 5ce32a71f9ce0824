"""How often each command ran, for how long, and how it failed: summed over the shards."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvstrata.store.histogram import merged, quantile_us
from kvstrata.store.resp_commands.table import COMMANDS

PERCENTILES = (50.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class CommandStatistics:
    """One command's counters.

    Attributes:
        calls: those that ran; `failed` of them answered an error.
        rejected: refused before they ran.
        buckets: how long they took, as `histogram` tells it.
    """

    calls: int
    nanoseconds: int
    failed: int
    rejected: int
    buckets: Sequence[int]


def by_command(shards: Sequence[Mapping[str, Any]]) -> dict[str, CommandStatistics]:
    """The counters of every command that was called, in the order of the table."""
    found: dict[str, CommandStatistics] = {}
    for command in COMMANDS:
        each = [
            s["resp_commands"][command.name] for s in shards if command.name in s["resp_commands"]
        ]
        if each:
            found[command.name] = CommandStatistics(
                calls=sum(one["calls"] for one in each),
                nanoseconds=sum(one["nanoseconds"] for one in each),
                failed=sum(one["failed"] for one in each),
                rejected=sum(one["rejected"] for one in each),
                buckets=merged(one["buckets"] for one in each),
            )
    return found


def error_counts(shards: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """How many errors were answered, by code."""
    total: Counter[str] = Counter()
    for shard in shards:
        total.update(shard["errors"])
    return total


def cumulative(buckets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Bound in microseconds, and how many took no longer; only where the number grows."""
    total = 0
    for power, count in enumerate(buckets):
        if count:
            total += count
            yield 2**power, total


def percentiles(buckets: Sequence[int]) -> str:
    """As INFO shows them: bounds that hold to a factor of two."""
    return ",".join(f"p{share:g}={quantile_us(buckets, share / 100):.3f}" for share in PERCENTILES)
