"""`serve`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kvstrata.cluster.commands.options import NODE, ConfigFile, examples

Host = Annotated[
    str | None, typer.Option(help="Address to listen on. [dim]127.0.0.1[/]", show_default=False)
]
Port = Annotated[
    int | None, typer.Option(help="TCP port; 0 for any. [dim]18400[/]", show_default=False)
]
HttpHost = Annotated[
    str | None, typer.Option(help="Address for HTTP. [dim]127.0.0.1[/]", show_default=False)
]
HttpPort = Annotated[
    int | None, typer.Option(help="Port for HTTP; 0 for any. [dim]18480[/]", show_default=False)
]
Http = Annotated[
    bool | None, typer.Option("--http/--no-http", help="Serve HTTP.", show_default=False)
]
Shards = Annotated[
    int | None, typer.Option(help="Threads. [dim]Half of the processors.[/]", show_default=False)
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="As 64GiB. [dim]Half of what is available.[/]", show_default=False
    ),
]
Spin = Annotated[
    bool | None,
    typer.Option(
        "--spin/--no-spin",
        help="Look for work a few microseconds before sleeping.",
        show_default=False,
    ),
]
AdminSecretFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="One or two secrets of the pool default, a line each; then nothing goes without.",
        show_default=False,
    ),
]
PoolsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Keep pools made at run time there.", show_default=False),
]
StopTimeout = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="For transfers to end at a stop. [dim]10s[/]", show_default=False
    ),
]
LogLevel = Annotated[
    str | None,
    typer.Option(metavar="LEVEL", help="debug, info, warning, error.", show_default=False),
]
LogFormat = Annotated[
    str | None, typer.Option(metavar="FORMAT", help="text or json.", show_default=False)
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure", help="Listen beyond this machine without secrets, on a trusted network."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    lines = (
        "kvstrata serve",
        "kvstrata serve --memory 64GiB --shards 8",
        "kvstrata serve --host 0.0.0.0 --admin-secret-file /etc/kvstrata/admin",
        "kvstrata serve --config node.toml --log-format json",
    )
    app.command(rich_help_panel=NODE, epilog=examples(*lines))(serve)


def serve(
    config: ConfigFile = None,
    host: Host = None,
    port: Port = None,
    http_host: HttpHost = None,
    http_port: HttpPort = None,
    http: Http = None,
    shards: Shards = None,
    memory: Memory = None,
    spin: Spin = None,
    admin_secret_file: AdminSecretFile = None,
    pools_file: PoolsFile = None,
    stop_timeout: StopTimeout = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    insecure: Insecure = False,
) -> None:
    """Run a node: a whole store in one process.

    Settings come from these options, else from KVSTRATA_SECTION__FIELD in the environment, else
    from --config, else from defaults; `kvstrata config show --origin` tells which. Once the node
    serves, one line goes to standard output: ready, its URL, its HTTP URL. Logs go to standard
    error. SIGTERM and Ctrl-C stop it once transfers under way have ended; a second one, at once.
    """
    node: dict[str, Any] = {
        "host": host,
        "port": port,
        "shards": shards,
        "memory": memory,
        "spin": None if spin is None else _spin_s(spin),
        "pools_file": pools_file,
        "stop_timeout": stop_timeout,
    }
    from kvstrata.cluster import access, logs, node_process

    loaded = access.settings(
        config,
        node=node,
        http={"host": http_host, "port": http_port, "enabled": http},
        pools={"default": {"admin_file": admin_secret_file}},
        log={"level": log_level, "format": log_format},
    )
    logs.set_up_logs(loaded.config.log)
    raise typer.Exit(node_process.serve(loaded, insecure=insecure))


def _spin_s(spin: bool) -> float:
    from kvstrata.store.config import NodeConfig

    default: float = NodeConfig.model_fields["spin"].default
    return default if spin else 0.0
