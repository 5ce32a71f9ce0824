"""`info` and `top`."""

from typing import Annotated

import typer

from kvstrata.cluster.commands.options import MEASURE, NODE, Json, Url, examples


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command(rich_help_panel=NODE, epilog=examples("kvstrata info", "kvstrata info --json"))(
        info
    )
    lines = ("kvstrata top", "kvstrata top --interval 5s", "kvstrata top --once --json")
    app.command(rich_help_panel=MEASURE, epilog=examples(*lines))(top)


def info(url: Url = None, json: Json = False) -> None:
    """Show what a node is and holds.

    Memory and pools are shown to who may administer the node: an admin secret of the pool default,
    where that has secrets.
    """
    from kvstrata.cluster import node_view

    node_view.info(url, as_json=json)


def top(
    interval: Annotated[str, typer.Option(metavar="TIME", help="Time between two looks.")] = "1s",
    once: Annotated[
        bool, typer.Option("--once", help="Show one interval and end; also where piped.")
    ] = False,
    url: Url = None,
    json: Json = False,
) -> None:
    """Watch a node at work: rates, hits, memory, latencies.

    Leave with q or Ctrl-C.
    """
    from kvstrata.cluster import node_view

    node_view.top(url, interval, once=once, as_json=json)
