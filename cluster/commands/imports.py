"""`import`."""

from pathlib import Path
from typing import Annotated

import typer

from kvstrata.cluster.commands.options import OBJECTS, Json, Url, examples


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    lines = (
        "kvstrata import valkey://127.0.0.1:6379",
        "kvstrata import valkey://user:password@10.0.0.7:6379/0 --url kvstrata://team:secret@host",
        "kvstrata import valkey://127.0.0.1 --match 'session:*' --if-absent --json",
    )
    app.command("import", rich_help_panel=OBJECTS, epilog=examples(*lines))(import_strings)


def import_strings(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="valkey://user:password@host:6379/0", show_default=False
        ),
    ],
    url: Url = None,
    match: Annotated[
        str, typer.Option(metavar="PATTERN", help="Only keys of it, such as session:*.")
    ] = "",
    if_absent: Annotated[
        bool, typer.Option("--if-absent", help="Leave keys that the pool has as they are.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="How far it has come. [dim]Else kvstrata-import-....json in this folder.[/]",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Copy a running Valkey's strings, with their time to live, into a pool.

    Cut off, it goes on where it was when the same command is given again; its state is removed at
    the end. A value that changes after it was copied is not copied again. Keys of other types, and
    those that a pool cannot hold, are counted and named. Of a cluster, give each server in turn.
    Ends with status 5 if the pool refused a value.
    """
    from kvstrata.cluster import import_view
    from kvstrata.cluster.valkey_import import Plan

    plan = Plan(source, url, match, if_absent, state)
    raise typer.Exit(import_view.run(plan, as_json=json))
