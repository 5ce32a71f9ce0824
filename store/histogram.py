"""Histograms of durations by powers of two, as the core keeps them.

Bucket i counts what took less than 2**i microseconds and no less than the bucket before it; the
last one counts all the rest.
"""

from collections.abc import Iterable, Sequence


def quantile_us(counts: Sequence[int], share: float) -> float:
    """The bound in microseconds that this share of a histogram kept."""
    wanted = share * sum(counts)
    total = 0
    for power, count in enumerate(counts):
        total += count
        if total >= wanted:
            return float(2**power)
    return float(2 ** (len(counts) - 1))


def merged(histograms: Iterable[Sequence[int]]) -> list[int]:
    """The histogram of several together; all have one number of buckets."""
    return [sum(counts) for counts in zip(*histograms, strict=True)]
