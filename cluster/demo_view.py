"""The command `demo`: shows what happened, step by step, in one table."""

import time
from dataclasses import asdict

from rich.text import Text

from kvstrata.cluster import demo
from kvstrata.cluster.demo import Step
from kvstrata.cluster.exit_codes import ExitCode
from kvstrata.cluster.output import console, print_json, table
from kvstrata.store.units import format_size


def show(*, as_json: bool) -> ExitCode:
    """Run the demo and print it. OK only if every check held."""
    started = time.perf_counter()
    screen = console()
    steps = []
    with screen.status("starting a store") as status:
        for step in demo.run():
            steps.append(step)
            status.update(step.name)
    seconds = time.perf_counter() - started
    failures = [words for step in steps for words in step.failures]
    if as_json:
        print_json({"steps": [asdict(step) for step in steps], "seconds": seconds})
    else:
        columns = ("operation", ">count", ">bytes", ">time", ">GB/s", ">checked", "result")
        screen.print(table(*columns, rows=map(_row, steps)))
        checks = sum(step.checks for step in steps)
        screen.print(f"\n{checks:,} checks in {seconds:.1f} s, {len(failures)} failed")
        for words in failures:
            screen.print(f"failed: {words}", markup=False)
    return ExitCode.FAULT if failures else ExitCode.OK


def _row(step: Step) -> tuple[object, ...]:
    speed = step.moved_bytes / step.seconds / 1e9 if step.moved_bytes and step.seconds else None
    return (
        step.name,
        f"{step.count:,}",
        format_size(step.moved_bytes) if step.moved_bytes else None,
        f"{step.seconds * 1e3:.1f} ms",
        None if speed is None else f"{speed:.2f}",
        step.checks,
        Text("failed", style="bold red") if step.failures else Text("right", style="green"),
    )
