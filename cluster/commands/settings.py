"""`config check` and `config show`."""

from pathlib import Path
from typing import Annotated

import typer

from kvstrata.cluster.commands.options import SETTINGS, ConfigFile, Json, examples


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    group = typer.Typer(
        help="Check and show settings.", no_args_is_help=True, rich_markup_mode="rich"
    )
    group.command(epilog=examples("kvstrata config check node.toml"))(check)
    lines = ("kvstrata config show --origin", "kvstrata config show --config node.toml --json")
    group.command(epilog=examples(*lines))(show)
    app.add_typer(group, name="config", rich_help_panel=SETTINGS)


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML.", show_default=False)],
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Judge it as serve --insecure does.")
    ] = False,
    json: Json = False,
) -> None:
    """Check a file of settings as serve does, with the environment over it.

    Ends with status 2 on a mistake.
    """
    from kvstrata.cluster import settings_view

    settings_view.check(file, insecure=insecure, as_json=json)


def show(
    config: ConfigFile = None,
    origin: Annotated[
        bool, typer.Option("--origin", help="Say where each value came from.")
    ] = False,
    json: Json = False,
) -> None:
    """Show every setting as it applies here. Secrets are masked."""
    from kvstrata.cluster import settings_view

    settings_view.show(config, origin=origin, as_json=json)
