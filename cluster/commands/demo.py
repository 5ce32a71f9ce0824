"""`demo`."""

import typer

from kvstrata.cluster.commands.options import NODE, Json, examples


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(rich_help_panel=NODE, epilog=examples("kvstrata demo"))(demo)


def demo(json: Json = False) -> None:
    """Start a store, use it on real data, show what happened.

    Takes some seconds. The data are Python's own library files, and tensors of the shapes of real
    models' KV caches. Every byte that comes back is compared. Ends with status 1 if anything was
    not as it should be.
    """
    from kvstrata.cluster import demo_view

    raise typer.Exit(demo_view.show(as_json=json))
