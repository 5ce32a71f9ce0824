"""How commands show what they found: tables for people, JSON for machines."""

import json
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

# Tables that are piped somewhere must not be cut to the 80 columns that rich then assumes.
_PIPED_WIDTH = 200


def console(*, stderr: bool = False) -> Console:
    """Where to print; coloured on a terminal only, and ":key:" stays what it is."""
    plain = Console(stderr=stderr, highlight=False, emoji=False)
    if plain.is_terminal:
        return plain
    return Console(stderr=stderr, highlight=False, emoji=False, width=_PIPED_WIDTH)


def print_json(value: object) -> None:
    """One JSON document on one line."""
    print(json.dumps(value, default=str))


def table(*columns: str, rows: Iterable[Iterable[object]], title: str | None = None) -> Table:
    """A table; columns whose name begins with ">" are aligned to the right."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in columns:
        made.add_column(name.lstrip(">"), justify="right" if name.startswith(">") else "left")
    for row in rows:
        made.add_row(*(show(cell) for cell in row))
    return made


def facts(pairs: Iterable[tuple[str, object]]) -> Table:
    """Names and values below each other."""
    made = Table(show_header=False, box=None, pad_edge=False)
    made.add_column(style="bold")
    made.add_column()
    for name, value in pairs:
        made.add_row(name, show(value))
    return made


def show(value: object) -> Text:
    """A cell: text without markup, so that a key such as "[red]" stays what it is."""
    if isinstance(value, Text):
        return value
    return Text("-" if value is None else str(value))
