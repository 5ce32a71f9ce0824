"""What a native node said once, kept as data, for answers to be made of; and how to ask."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import SecretStr

from kvstrata import _kernel
from kvstrata.store.config import NodeConfig, PoolConfig
from kvstrata.store.pools import ADMIN, READ, WRITE, PoolRegistry
from kvstrata.store.resp_admin import dispatcher
from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import Request

EVERYTHING = READ | WRITE | ADMIN
NODE_ID = bytes(range(16))
ID_TEXT = b"000102030405060708090a0b0c0d0e0f00000000"


def connection(client_id: int, **changes: object) -> dict[str, Any]:
    """One connection as the native node reports it."""
    return {
        "client_id": client_id,
        "shard": 0,
        "fd": 8 + client_id,
        "peer": f"127.0.0.1:{50_000 + client_id}",
        "local": "127.0.0.1:18400",
        "transport": "tcp",
        "peer_uid": -1,
        "pool": "default",
        "protocol": "resp",
        "age_s": 12.9,
        "idle_s": 3.2,
        "input_bytes": 10,
        "input_capacity": 1_000,
        "output_bytes": 0,
        "received_bytes": 252,
        "sent_bytes": 625,
        "commands": 7,
        "name": "",
        "lib_name": "",
        "lib_version": "",
        "last_command": "client|list",
        "resp_version": 2,
        "multi_count": -1,
        "watch_count": 0,
        "no_evict": False,
        "no_touch": False,
        "replies_off": False,
        **changes,
    }


def pool_counters(**changes: int) -> dict[str, int]:
    counters = {"objects": 0, "objects_expiring": 0, "bytes": 0, "gets": 0, "get_hits": 0}
    return counters | {"evictions": 0, "expirations": 0} | changes


def command_counters(calls: int, nanoseconds: int, **buckets: int) -> dict[str, Any]:
    """A command's counters; `at3=2` says that two calls fell into bucket 3."""
    counts = [0] * 24
    for name, count in buckets.items():
        counts[int(name.removeprefix("at"))] = count
    return {
        "calls": calls,
        "nanoseconds": nanoseconds,
        "failed": 0,
        "rejected": 0,
        "buckets": counts,
    }


def shard_counters(**changes: object) -> dict[str, Any]:
    names = (
        "connections_accepted connections_refused commands received_bytes sent_bytes loop_turns"
        " index_bytes bookkeeping_bytes cell_bytes extent_bytes"
    )
    counters: dict[str, Any] = dict.fromkeys(names.split(), 0)
    return counters | {"resp_commands": {}, "errors": {}} | changes


@dataclass
class RecordedNode:
    """Returns what it was given, and keeps what it was told."""

    shards: list[dict[str, Any]] = field(default_factory=lambda: [shard_counters()])
    pools: dict[str, dict[str, int]] = field(default_factory=lambda: {"default": pool_counters()})
    open_connections: list[dict[str, Any]] = field(default_factory=list)
    slow: list[dict[str, Any]] = field(default_factory=list)
    spikes: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    told: list[tuple[object, ...]] = field(default_factory=list)
    port: int = 18_400
    node_id: bytes = NODE_ID

    def statistics(self) -> dict[str, Any]:
        memory = {"memory_bytes": 1 << 28, "buffered_bytes": 5}
        return {"memory": memory, "shards": self.shards, "pools": self.pools}

    def connections(self) -> list[dict[str, Any]]:
        return self.open_connections

    def kill_connections(self, client_ids: Sequence[int]) -> int:
        self.told.append(("kill", *client_ids))
        return len(client_ids)

    def slow_commands(self) -> list[dict[str, Any]]:
        return self.slow

    def clear_slow_commands(self) -> None:
        self.told.append(("clear slow commands",))

    def set_slow_log(self, threshold_us: int, length_max: int) -> None:
        self.told.append(("slow log", threshold_us, length_max))

    def latency_spikes(self) -> dict[str, list[tuple[int, int]]]:
        return self.spikes

    def clear_latency_spikes(self, events: Sequence[str]) -> int:
        self.told.append(("clear spikes", *events))
        return len(events)

    def set_latency_threshold(self, milliseconds: int) -> None:
        self.told.append(("threshold", milliseconds))

    def set_pool(self, pool: _kernel.PoolOptions) -> str:
        assert pool is not None
        return ""


@dataclass
class Asker:
    """Asks as a client would whose command the native half has passed on."""

    node: RecordedNode
    state: NodeState

    def ask(
        self,
        command: str | list[bytes],
        version: int = 2,
        *,
        pool: str = "default",
        rights: int = EVERYTHING,
    ) -> bytes:
        arguments = command.encode().split() if isinstance(command, str) else command
        request = Request(tuple(arguments), version, 1, pool, rights, "127.0.0.1:50001")
        return dispatcher.answer(self.state, request)

    def lines(self, command: str, **caller: Any) -> dict[str, str]:  # noqa: ANN401
        """The `field:value` lines of a reply, by field."""
        text = self.ask(command, **caller).split(b"\r\n", 1)[1].decode()
        pairs = (line.partition(":") for line in text.split("\r\n") if ":" in line)
        return {name: value for name, _, value in pairs}


def asker(node: RecordedNode, host: str = "127.0.0.1", **pools: PoolConfig) -> Asker:
    """A node with the pool `default` and these further ones."""
    registry = PoolRegistry({"default": PoolConfig(), **pools}, None)
    registry.attach(cast("_kernel.Node", node))
    config = NodeConfig(host=host, shards=1, memory=1 << 28, connections_max=1_000)
    return Asker(node, NodeState(node, config, registry, "0.1.0", started=0.0))


def with_secret(role: str = "admin") -> PoolConfig:
    return PoolConfig(**{role: (SecretStr("xyzzy"),)})  # type: ignore[arg-type]
