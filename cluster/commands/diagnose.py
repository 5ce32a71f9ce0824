"""`doctor`."""

import typer

from kvstrata.cluster.commands.options import MEASURE, Json, examples


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(rich_help_panel=MEASURE, epilog=examples("kvstrata doctor"))(doctor)


def doctor(json: Json = False) -> None:
    """Tell what this machine has, what it lacks, what that costs, what to do.

    Ends with status 1 if a store does not work here at all.
    """
    from kvstrata.cluster import doctor_view

    raise typer.Exit(doctor_view.examine(as_json=json))
