"""The README's table of figures, written from the last run of the bars and from nothing else."""

import json
import re
from collections.abc import Sequence
from statistics import median
from typing import Any

from bench.peers.setup import ROOT
from bench.record import RESULTS

README = ROOT / "README.md"
MARKED = re.compile(r"(<!-- bars -->\n).*?(<!-- /bars -->)", re.DOTALL)


def rewrite() -> str:
    """Put the newest figure of each bar into the README. Returns what it is about, in a line.

    Raises:
        FileNotFoundError: no bar was measured here yet.
    """
    lines = (RESULTS / "bars.jsonl").read_text(encoding="utf-8").splitlines()
    newest = {(row["bar"], row["work"]): row for row in map(json.loads, lines)}
    rows = list(newest.values())
    last = rows[-1]
    source = f"Measured {last['time'][:10]} at commit {last['commit']}, {_machine(last)}."
    README.write_text(
        MARKED.sub(lambda found: found[1] + _table(rows) + f"\n{source}\n" + found[2], _text()),
        encoding="utf-8",
    )
    return source


def _text() -> str:
    return README.read_text(encoding="utf-8")


def _machine(row: dict[str, Any]) -> str:
    machine = row["machine"]
    return f"{machine['processor']}, {machine['core_count']} cores, Linux {machine['kernel']}"


def _table(rows: Sequence[dict[str, Any]]) -> str:
    head = "| work | ours | peer | ratio | bar | |\n|---|---|---|---|---|---|\n"
    return head + "".join(_row(row) for row in rows)


def _row(row: dict[str, Any]) -> str:
    ours = f"{median(row['ours']):,.4g} {row['unit']}" if row["ours"] else "-"
    peer = f"{median(row['peer']):,.4g} {row['peer_name']}" if row["peer"] else "-"
    bar = f"{'at least' if row['at_least'] else 'at most'} {row['limit']:g}"
    verdict = "holds" if row["passed"] else "**missed**"
    return f"| {row['work']} | {ours} | {peer} | {row['value']:.2f} | {bar} | {verdict} |\n"
