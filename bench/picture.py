"""Draws how much of its limit each bar uses; knows only finished comparisons."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench.record import Comparison


def draw(comparisons: Sequence[Comparison], path: Path) -> None:
    """Write a PNG: one line per comparison, passing left of 1, failing right of it."""
    used = [_limit_used(comparison) for comparison in comparisons]
    colours = ["tab:green" if comparison.passed else "tab:red" for comparison in comparisons]
    labels = [f"{comparison.bar}: {comparison.work}" for comparison in comparisons]
    figure = Figure(figsize=(11, 1.5 + 0.28 * len(comparisons)), layout="constrained")
    axes = figure.add_subplot()
    places = range(len(comparisons))
    axes.barh(places, used, color=colours)
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xlim(0, max(1.25, *used))
    axes.set_xlabel("share of the limit used (less is better; 1 is the limit)")
    axes.set_title("KVStrata beside its peers")
    figure.savefig(path, dpi=120)


def _limit_used(comparison: Comparison) -> float:
    if comparison.at_least:
        return comparison.limit / comparison.value
    if comparison.limit == 0:
        return 0.0 if comparison.value == 0 else 2.0
    return comparison.value / comparison.limit
