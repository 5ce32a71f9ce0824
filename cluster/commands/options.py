"""Options that several commands share, and how their examples are laid out."""

from pathlib import Path
from typing import Annotated, Final

import typer

OBJECTS: Final = "Objects"
NODE: Final = "Node"
MEASURE: Final = "Look and measure"
SETTINGS: Final = "Settings"

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        "-u",
        metavar="URL",
        help="Node and pool, as kvstrata://pool:secret@host:18400. [dim]Else KVSTRATA_URL, else"
        " this machine.[/]",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Hex = Annotated[bool, typer.Option("--hex", help="Keys are hexadecimal, read and shown.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Settings in TOML.", show_default=False),
]
Key = Annotated[str, typer.Argument(help="Up to 4096 bytes.", show_default=False)]
Keys = Annotated[
    list[str], typer.Argument(metavar="KEY...", help="Up to 4096 bytes each.", show_default=False)
]


def examples(*lines: str) -> str:
    """The end of a command's help: one command line a line."""
    return "\n\n".join(["[bold]Examples[/]", *(f"[cyan]{line}[/]" for line in lines)])
