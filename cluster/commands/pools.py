"""`pool list`, `show`, `create`, `set`, `drop`."""

from typing import Annotated, Any

import typer

from kvstrata.cluster.commands.options import SETTINGS, Json, Url, examples

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of a-z 0-9 _ . -", show_default=False)]
Eviction = Annotated[
    str | None,
    typer.Option(
        metavar="POLICY",
        help="Which object goes when it is full: lru, s3fifo; none: puts fail.",
        show_default=False,
    ),
]
Quota = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Memory it may take; 0 is all.", show_default=False),
]
Ttl = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="For objects put without one; 0 is forever.", show_default=False
    ),
]
RetainedMax = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="What hard retentions may keep of it; 0 is a quarter of the quota.",
        show_default=False,
    ),
]
Secret = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE:SECRET",
        help="Who may do what: read:..., write:... or admin:...; up to two a role, so that one can"
        " be replaced. [dim]Others on this machine may see command lines: see --secret-file.[/]",
        show_default=False,
    ),
]
SecretFile = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE:FILE", help="The same, from a file, a secret a line.", show_default=False
    ),
]


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    group = typer.Typer(
        help="Make and change the pools of a node.", no_args_is_help=True, rich_markup_mode="rich"
    )
    create_lines = (
        "kvstrata pool create kv-cache --kind immutable --eviction s3fifo --quota 64GiB",
        "kvstrata pool create team-a --ttl 1h --secret-file write:team-a.secret",
    )
    group.command("list", epilog=examples("kvstrata pool list --json"))(list_pools)
    group.command(epilog=examples("kvstrata pool show kv-cache"))(show)
    group.command(epilog=examples(*create_lines))(create)
    group.command("set", epilog=examples("kvstrata pool set kv-cache --quota 128GiB"))(change)
    group.command(epilog=examples("kvstrata pool drop team-a --yes"))(drop)
    app.add_typer(group, name="pool", rich_help_panel=SETTINGS)


def list_pools(url: Url = None, json: Json = False) -> None:
    """List the pools with their settings."""
    from kvstrata.cluster import pool_settings

    pool_settings.list_pools(url, as_json=json)


def show(name: Name, url: Url = None, json: Json = False) -> None:
    """Show one pool. Ends with status 4 if it is not there."""
    from kvstrata.cluster import pool_settings

    pool_settings.show(url, name, as_json=json)


def create(
    name: Name,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="mutable, or immutable: never overwritten. It never changes."
        ),
    ] = "mutable",
    eviction: Eviction = None,
    quota: Quota = None,
    ttl: Ttl = None,
    retained_max: RetainedMax = None,
    secret: Secret = None,
    secret_file: SecretFile = None,
    url: Url = None,
    json: Json = False,
) -> None:
    """Make a pool. It lasts over restarts if the node has a --pools-file; the answer says so."""
    from kvstrata.cluster import pool_settings

    given: dict[str, Any] = {
        "kind": kind,
        "eviction": eviction,
        "quota": quota,
        "ttl": ttl,
        "retained_max": retained_max,
    }
    secrets = pool_settings.secrets(secret or [], secret_file or [])
    pool_settings.create(url, name, {**given, **secrets}, as_json=json)


def change(
    name: Name,
    eviction: Eviction = None,
    quota: Quota = None,
    ttl: Ttl = None,
    retained_max: RetainedMax = None,
    secret: Secret = None,
    secret_file: SecretFile = None,
    url: Url = None,
    json: Json = False,
) -> None:
    """Change what is given of a pool, until a restart if that is where it is configured.

    The secrets of a role are replaced together, also where they came from a file. Ends with status
    4 if the pool is not there.
    """
    from kvstrata.cluster import pool_settings

    given: dict[str, Any] = {
        "eviction": eviction,
        "quota": quota,
        "ttl": ttl,
        "retained_max": retained_max,
    }
    secrets = pool_settings.secrets(secret or [], secret_file or [])
    pool_settings.change(url, name, {**given, **secrets}, as_json=json)


def drop(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    url: Url = None,
    json: Json = False,
) -> None:
    """Remove a pool and all its objects. Ends with status 4 if it is not there."""
    from kvstrata.cluster import pool_settings

    if not yes:
        typer.confirm(f"Drop the pool {name!r} with all its objects?", abort=True, err=True)
    pool_settings.drop(url, name, as_json=json)
