"""What the answers are made of: the native node, its settings and its pools."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kvstrata.store.config import NodeConfig
from kvstrata.store.pools import PoolRegistry
from kvstrata.store.resp_admin.request import Request

ID_DIGITS = 40  # Of a node and of a run, in Valkey.


class NativeNode(Protocol):
    """The part of `_kernel.Node` that answers need; what each returns is told there."""

    @property
    def port(self) -> int: ...
    @property
    def node_id(self) -> bytes: ...
    def statistics(self) -> dict[str, Any]: ...
    def connections(self) -> list[dict[str, Any]]: ...
    def kill_connections(self, client_ids: Sequence[int]) -> int: ...
    def slow_commands(self) -> list[dict[str, Any]]: ...
    def clear_slow_commands(self) -> None: ...
    def set_slow_log(self, threshold_us: int, length_max: int) -> None: ...
    def latency_spikes(self) -> dict[str, list[tuple[int, int]]]: ...
    def clear_latency_spikes(self, events: Sequence[str]) -> int: ...
    def set_latency_threshold(self, milliseconds: int) -> None: ...


@dataclass
class WatchSettings:
    """What the native node was told about slow commands and delays; it starts with these."""

    slow_command_us: int = 10_000  # -1: none is noted.
    slow_command_count_max: int = 128
    delay_ms: int = 0  # 0: none is noted.


@dataclass(frozen=True)
class NodeState:
    """Everything about the node that an answer may tell of.

    Attributes:
        version: of kvstrata.
        started: when the node did, on `time.monotonic`'s clock.
    """

    native: NativeNode
    config: NodeConfig
    pools: PoolRegistry
    version: str
    started: float
    watch: WatchSettings = field(default_factory=WatchSettings)

    @property
    def id_text(self) -> str:
        """The node's id in Valkey's 40 hexadecimal digits; drawn anew with each start."""
        return self.native.node_id.hex().ljust(ID_DIGITS, "0")[:ID_DIGITS]

    def connections(self, request: Request) -> list[dict[str, Any]]:
        """The connections that the caller may see, by age."""
        return sorted(
            (
                each
                for each in self.native.connections()
                if request.administers_node or each["pool"] == request.pool
            ),
            key=lambda each: int(each["client_id"]),
        )

    def visible_pools(self, request: Request) -> list[str]:
        """The names of the pools that the caller may see."""
        names = list(self.pools.describe())
        return names if request.administers_node else [n for n in names if n == request.pool]
