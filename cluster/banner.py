"""What a starting node says: what was chosen, and why."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from kvstrata import _kernel
from kvstrata.cluster.listening import exposed_endpoints
from kvstrata.cluster.open_files import REMEDY
from kvstrata.store import host_memory
from kvstrata.store.config import LoadedConfig
from kvstrata.store.node import RunningNode, chosen_io
from kvstrata.store.units import format_size

log = logging.getLogger(__name__)

ROLES: Final = ("read", "write", "admin")


def secret_count(pool: Mapping[str, Any]) -> int:
    """How many secrets of any role a pool has, as `PoolRegistry.describe` tells it."""
    return sum(pool[role] for role in ROLES)


def data_url(node: RunningNode) -> str:
    """Where clients reach the node."""
    host = f"[{node.config.host}]" if ":" in node.config.host else node.config.host
    return f"kvstrata://{host}:{node.port}"


def log_start(
    node: RunningNode,
    loaded: LoadedConfig,
    pools: Mapping[str, Mapping[str, Any]],
    http_url: str | None,
    *,
    insecure: bool,
) -> None:
    """Log the choices, one a line."""
    config = loaded.config
    memory: Any = node.native.statistics()["memory"]
    log.info("kvstrata %s, node %s", _kernel.version(), node.native.node_id.hex())
    choices = {
        "data": f"{data_url(node)} ({_origin(loaded, 'node.port')})",
        "unix socket": node.native.unix_path or f"none: {node.unix_path_missing}",
        "http": f"{http_url} ({_origin(loaded, 'http.port')})" if http_url else "off",
        "shards": f"{config.node.shards} of {host_memory.usable_cpu_count()} processors"
        f" ({_origin(loaded, 'node.shards', 'half of them, at most 16')})",
        "memory": f"{format_size(config.node.memory)}"
        f" ({_origin(loaded, 'node.memory', 'half of what cgroup and host leave')}),"
        f" populated {'in full' if config.node.populate == 'full' else 'as it is used'}",
        "huge pages": _huge_pages(memory["huge_pages"], wanted=config.node.huge_pages)
        + f" ({_origin(loaded, 'node.huge_pages')})",
        "connections": _connections(node.config.connections_max, config.node.connections_max),
        "io": f"{chosen_io(config.node)} ({_origin(loaded, 'node.io')})",
        "spin": f"{config.node.spin * 1e6:g} us before a shard sleeps"
        f" ({_origin(loaded, 'node.spin')})",
        "pools": "; ".join(_pool(name, pool) for name, pool in pools.items()),
        "access": _access(loaded, pools, insecure=insecure),
    }
    for name, words in choices.items():
        log.info("%-11s  %s", name, words)


def _origin(loaded: LoadedConfig, name: str, default: str = "default") -> str:
    origin = loaded.origins[name]
    return default if origin == "default" else f"from {origin}"


def _huge_pages(granted: str, *, wanted: str) -> str:
    if granted == "none" and wanted != "off":
        return "none; kvstrata doctor tells how to get them"
    return granted


def _connections(room: int, wanted: int) -> str:
    if room == wanted:
        return f"at most {room:,}"
    return (
        f"at most {room:,} INSTEAD OF {wanted:,} (node.connections_max), since this process may not"
        f" have more files open: allow more, {REMEDY}"
    )


def _pool(name: str, pool: Mapping[str, Any]) -> str:
    quota = format_size(pool["quota"]) if pool["quota"] else "all memory"
    return f"{name} ({pool['kind']}, {pool['eviction']}, {quota})"


def _access(loaded: LoadedConfig, pools: Mapping[str, Mapping[str, Any]], *, insecure: bool) -> str:
    exposed = exposed_endpoints(loaded.config)
    open_pools = [name for name, pool in pools.items() if not secret_count(pool)]
    if not open_pools:
        reach = f"from other machines too ({', '.join(exposed)})" if exposed else "on this machine"
        return f"with a secret only, {reach}"
    if not exposed:
        return f"this machine only; no secret for {', '.join(open_pools)}"
    assert insecure
    return f"ANYBODY, from other machines too ({', '.join(exposed)}), since --insecure was said"
