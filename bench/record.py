"""What a bar came to: a comparison with its limit, kept as a JSON line and shown in a table."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from bench.peers.setup import ROOT

RESULTS = ROOT / "bench" / "results"


@dataclass(frozen=True)
class Plan:
    """How long to measure. `key_count` is for the bars about many keys."""

    round_count: int
    seconds: float
    key_count: int
    seed: int = 1


# The short form keeps all bars together under 15 minutes; the long one is what a claim rests on.
SHORT = Plan(round_count=9, seconds=0.3, key_count=2_000_000)
FULL = Plan(round_count=15, seconds=1.0, key_count=10_000_000)


@dataclass(frozen=True)
class Comparison:
    """One figure per round of ours, one of the peer's, and the limit of their ratio.

    Without a peer the limit is one of our own figure. `notes` holds what is quoted beside it.
    """

    bar: str
    work: str
    unit: str
    ours: tuple[float, ...]
    limit: float
    peer_name: str = ""
    peer: tuple[float, ...] = ()
    at_least: bool = False
    notes: Mapping[str, float] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The ratio of the medians, or our median where there is no peer."""
        return median(self.ours) / median(self.peer) if self.peer else median(self.ours)

    @property
    def passed(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def write(comparisons: Iterable[Comparison], plan: Plan, load_average: float) -> Path:
    """Append one JSON line per comparison to bench/results/, and return the file.

    `load_average` is that of the minute before measuring: how idle the machine was.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "bars.jsonl"
    surroundings = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": _commit(),
        "machine": _machine(),
        "load_average": load_average,
        "plan": asdict(plan),
    }
    with path.open("a", encoding="utf-8") as file:
        for comparison in comparisons:
            result = {"value": comparison.value, "passed": comparison.passed}
            print(json.dumps({**asdict(comparison), **result, **surroundings}), file=file)
    return path


def table(comparisons: Iterable[Comparison]) -> str:
    """The comparisons as text, one a line: medians, ratio, limit, verdict and notes."""
    head = ("bar", "work", "ours", "peer", "unit", "ratio", "limit", "", "beside it")
    rows = [head, *(_row(comparison) for comparison in comparisons)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def _row(comparison: Comparison) -> tuple[str, ...]:
    peer = f"{_short(median(comparison.peer))} {comparison.peer_name}" if comparison.peer else "-"
    return (
        comparison.bar,
        comparison.work,
        _short(median(comparison.ours)),
        peer,
        comparison.unit,
        f"{comparison.value:.2f}",
        f"{'>=' if comparison.at_least else '<='} {comparison.limit:.2f}",
        "pass" if comparison.passed else "FAIL",
        ", ".join(f"{name} {_short(value)}" for name, value in comparison.notes.items()),
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    described = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "unknown"


def _machine() -> dict[str, object]:
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "processor": models[0] if models else platform.machine(),
        "core_count": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
