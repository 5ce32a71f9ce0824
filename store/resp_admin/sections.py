"""What the sections of INFO are made of: one look at the node, by one caller.

Who administers the node sees all of it. Others see what concerns their own pool; counters that are
kept for all pools together are then left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.parameters import pool_settings
from kvstrata.store.resp_admin.request import Request

Fields = dict[str, object]


@dataclass(frozen=True)
class Readings:
    """One look.

    Attributes:
        settings: of the caller's pool.
        memory: of the node's arena.
        pools: counters of the pools that the caller may see, by name.
        connections: those that the caller may see.
    """

    state: NodeState
    request: Request
    settings: Mapping[str, Any]
    memory: Mapping[str, Any]
    shards: tuple[Mapping[str, Any], ...]
    pools: Mapping[str, Mapping[str, int]]
    connections: tuple[Mapping[str, Any], ...]

    @property
    def of_node(self) -> bool:
        """Whether counters of the whole node may be shown."""
        return self.request.administers_node

    def of_shards(self, name: str) -> int:
        """The sum of a counter over the shards."""
        return sum(shard[name] for shard in self.shards)

    def of_pools(self, name: str) -> int:
        """The sum of a counter over the pools that the caller may see."""
        return sum(pool[name] for pool in self.pools.values())


def take_readings(state: NodeState, request: Request) -> Readings:
    """Look at the node."""
    statistics = state.native.statistics()
    visible = set(state.visible_pools(request))
    return Readings(
        state=state,
        request=request,
        settings=pool_settings(state, request),
        memory=statistics["memory"],
        shards=tuple(statistics["shards"]),
        pools={name: each for name, each in statistics["pools"].items() if name in visible},
        connections=tuple(state.connections(request)),
    )
