"""What `import` shows: a bar while it runs, then what became of the keys."""

from dataclasses import asdict
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from kvstrata.cluster import valkey_import
from kvstrata.cluster.exit_codes import ExitCode
from kvstrata.cluster.import_state import Group
from kvstrata.cluster.output import console, facts, print_json
from kvstrata.cluster.valkey_import import Plan, Progress
from kvstrata.store.units import format_size


def run(plan: Plan, *, as_json: bool) -> ExitCode:
    """Copy, with a bar on a terminal; REFUSED if the pool did not take every string."""
    screen = console(stderr=True)
    bar = Bar(
        TextColumn("importing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("keys, {task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=None, rate="")
        told_anew = False

        def show(progress: Progress) -> None:
            nonlocal told_anew
            if progress.state.anew and not told_anew:
                told_anew = True
                screen.print(f"beginning anew, as {progress.state.anew}", markup=False)
            met = progress.state.counts.met  # Some keys are met twice, and some are new.
            total = max(progress.key_count, met)
            bar.update(task, completed=met, total=total, rate=_rate(progress))

        progress = valkey_import.run(plan, show)
    if as_json:
        print_json(_document(progress))
    else:
        console().print(facts(_words(progress)))
    return ExitCode.REFUSED if progress.state.counts.failed else ExitCode.OK


def _rate(progress: Progress) -> str:
    seconds = max(progress.seconds, 1e-3)
    size = format_size(round(progress.copied_bytes / seconds))
    return f"{progress.copied / seconds:,.0f} copied/s, {size}/s"


def _document(progress: Progress) -> dict[str, Any]:
    route, counts = progress.state.route, progress.state.counts
    return {
        "source": route.source,
        "target": route.target,
        **asdict(counts),
        "seconds": progress.seconds,
        "copied_in_this_run": progress.copied,
        "copied_bytes_in_this_run": progress.copied_bytes,
    }


def _words(progress: Progress) -> list[tuple[str, object]]:
    route, counts = progress.state.route, progress.state.counts
    rows: list[tuple[str, object]] = [
        ("from", route.source),
        ("to", route.target),
        ("copied", f"{counts.copied:,} values, {format_size(counts.copied_bytes)}"),
        ("rate", _rate(progress)),
    ]
    if counts.kept:
        rows.append(("kept", f"{counts.kept:,} that the pool had already"))
    if counts.gone:
        rows.append(("gone", f"{counts.gone:,} before they could be read"))
    rows += [(f"skipped: {reason}", _named(group)) for reason, group in counts.skipped.items()]
    rows += [(f"failed: {reason}", _named(group)) for reason, group in counts.failed.items()]
    return rows


def _named(group: Group) -> str:
    more = "" if group.count == len(group.first_keys) else ", ..."
    return f"{group.count:,}: {', '.join(group.first_keys)}{more}"
