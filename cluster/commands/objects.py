"""`get`, `put`, `rm`, `ls`, `stat`, `exists`."""

from typing import Annotated

import typer

from kvstrata.cluster.commands.options import OBJECTS, Hex, Json, Key, Keys, Url, examples


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for command, lines in (
        (get, ("kvstrata get model/layer-0 layer-0.bin", "kvstrata get greeting")),
        (
            put,
            (
                "kvstrata put model/layer-0 layer-0.bin --ttl 1h",
                "echo hello | kvstrata put greeting",
                'kvstrata put greeting --text "hello" --if-absent',
            ),
        ),
        (rm, ("kvstrata rm greeting", "kvstrata rm --prefix model/")),
        (ls, ("kvstrata ls", "kvstrata ls model/ --limit 20 --json")),
        (stat, ("kvstrata stat greeting",)),
        (exists, ("kvstrata exists greeting && echo it is there",)),
    ):
        app.command(rich_help_panel=OBJECTS, epilog=examples(*lines))(command)


def get(
    key: Key,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Where to; - is standard output.")
    ] = "-",
    url: Url = None,
    as_hex: Hex = False,
    json: Json = False,
) -> None:
    """Read a value into a file or to standard output.

    A file appears whole or not at all; a pipe or a device is written to. Ends with status 4 if the
    key is absent.
    """
    from kvstrata.cluster import objects

    objects.get(url, key, file, as_hex=as_hex, as_json=json)


def put(
    key: Key,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What to put; - is standard input.")
    ] = "-",
    text: Annotated[
        str | None, typer.Option(help="Put this text instead of a file.", show_default=False)
    ] = None,
    ttl: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Expire after it: 500ms, 30s, 1h, 7d; 0 is never.",
            show_default=False,
        ),
    ] = None,
    if_absent: Annotated[
        bool, typer.Option("--if-absent", help="Leave a value that is there as it is.")
    ] = False,
    url: Url = None,
    as_hex: Hex = False,
    json: Json = False,
) -> None:
    """Put a file, standard input or a text under a key.

    It becomes visible whole or not at all, in the place of what was there.
    """
    from kvstrata.cluster import objects

    objects.put(
        url, key, file, text=text, ttl=ttl, if_absent=if_absent, as_hex=as_hex, as_json=json
    )


def rm(
    keys: Annotated[list[str] | None, typer.Argument(metavar="KEY", show_default=False)] = None,
    prefix: Annotated[
        str | None,
        typer.Option(help="Remove all keys that begin so, too.", show_default=False),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Let an empty prefix remove the whole pool.")
    ] = False,
    url: Url = None,
    as_hex: Hex = False,
    json: Json = False,
) -> None:
    """Remove objects.

    Ends with status 4 if a key that was named is absent.
    """
    from kvstrata.cluster import objects

    objects.remove(url, keys or [], prefix, all_keys=yes, as_hex=as_hex, as_json=json)


def ls(
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="Only keys that begin so.")] = "",
    limit: Annotated[int, typer.Option(min=0, help="At most so many; 0 is all.")] = 0,
    url: Url = None,
    as_hex: Hex = False,
    json: Json = False,
) -> None:
    """List keys and their sizes.

    In no order; with --json one object a line.
    """
    from kvstrata.cluster import objects

    objects.list_keys(url, prefix, limit, as_hex=as_hex, as_json=json)


def stat(keys: Keys, url: Url = None, as_hex: Hex = False, json: Json = False) -> None:
    """Show what the node knows about objects.

    Ends with status 4 if one is absent.
    """
    from kvstrata.cluster import objects

    objects.stat(url, keys, as_hex=as_hex, as_json=json)


def exists(keys: Keys, url: Url = None, as_hex: Hex = False, json: Json = False) -> None:
    """Tell whether keys are there.

    Ends with status 4 if one is absent.
    """
    from kvstrata.cluster import objects

    objects.exists(url, keys, as_hex=as_hex, as_json=json)
