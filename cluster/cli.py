"""The `kvstrata` command: puts the commands together, and tells errors in one line.

Each command ends with a status of `exit_codes.ExitCode`. With KVSTRATA_LOG__LEVEL=debug an error
shows its traceback.
"""

import contextlib
import sys
import traceback
from typing import Annotated

import typer

from kvstrata.cluster.commands import (
    demo,
    diagnose,
    imports,
    measure,
    node,
    objects,
    pools,
    serve,
    settings,
)
from kvstrata.cluster.exit_codes import exit_code
from kvstrata.store.errors import Error

app = typer.Typer(
    name="kvstrata",
    help="An object store for the KV cache of large language models.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Begin with [cyan]kvstrata serve[/] in one terminal and [cyan]echo hello | kvstrata put"
    " greeting[/] in another, or with [cyan]kvstrata demo[/].\n\nExit status: 0 done, 1 fault, 2"
    " usage, 3 node unavailable, 4 not found, 5 refused.",
)
for group in (serve, demo, node, objects, imports, measure, diagnose, pools, settings):
    group.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from kvstrata import _kernel

        print(_kernel.version())
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and end."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line of this process; ends it with the command's exit status."""
    try:
        app()
    except (Error, OSError) as error:
        if _debugging():
            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        sys.exit(exit_code(error))


def _debugging() -> bool:
    with contextlib.suppress(Error):
        from kvstrata.store.config import load_config

        return load_config().config.log.level == "debug"
    return False
