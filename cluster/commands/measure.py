"""`bench`."""

from typing import Annotated

import typer

from kvstrata.cluster.commands.options import MEASURE, Json, examples


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    lines = (
        "kvstrata bench",
        "kvstrata bench --operation put --size 1MiB --connections 4 --depth 4 --seconds 10",
        "kvstrata bench kvstrata://10.0.0.7 --operation mixed --key-count 1000000 --json",
    )
    app.command(rich_help_panel=MEASURE, epilog=examples(*lines))(bench)


def bench(
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="Else KVSTRATA_URL, else this machine."),
    ] = None,
    operation: Annotated[
        str, typer.Option(metavar="NAME", help="get, put, exists, or mixed: a put for nine gets.")
    ] = "get",
    size: Annotated[str, typer.Option(metavar="SIZE", help="Of the values that are put.")] = "1KiB",
    connections: Annotated[int, typer.Option(min=1, max=10_000, help="Connections.")] = 8,
    depth: Annotated[
        int, typer.Option(min=1, max=1024, help="Commands in flight on each connection.")
    ] = 8,
    count: Annotated[
        int | None, typer.Option(min=1, help="Commands in all.", show_default=False)
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.1, help="Or: for so long. [dim]5[/]", show_default=False),
    ] = None,
    key_count: Annotated[int, typer.Option(min=1, help="Different keys.")] = 10_000,
    key_prefix: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="Use the keys P000000000000 onwards, which must exist. [dim]Else it puts keys of"
            " its own first, and removes them.[/]",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Load a node and measure: operations and bytes per second, latencies.

    The load comes from one native thread, so that the node is measured. Keys are drawn at random.
    """
    from kvstrata.cluster import load

    load.run(
        url,
        operation,
        size=size,
        connections=connections,
        depth=depth,
        count=count,
        seconds=seconds,
        key_count=key_count,
        key_prefix=key_prefix,
        as_json=json,
    )
