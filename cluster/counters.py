"""A node's counters as one value: read in its own process, or asked for over the wire.

Their names are those of store/native/node_statistics.h.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

ARENA_PARTS = ("cell_bytes", "extent_bytes")


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters since the node started, and gauges.

    Attributes:
        memory: of the node's arena.
        shards: one element a shard, by number.
        pools: by name.
    """

    memory: Mapping[str, Any]
    shards: tuple[Mapping[str, Any], ...]
    pools: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(cls, statistics: Mapping[str, Any]) -> Self:
        """Take what `Node.statistics` or the command `statistics` returned."""
        return cls(statistics["memory"], tuple(statistics["shards"]), statistics["pools"])

    def of_shards(self, name: str) -> int:
        """Sum of a counter over all shards."""
        return sum(shard[name] for shard in self.shards)

    def of_pools(self, name: str) -> int:
        """Sum of a counter over all pools."""
        return sum(pool[name] for pool in self.pools.values())

    @property
    def connections_open(self) -> dict[str, int]:
        """How many connections are open, by what carries them."""
        unix = self.of_shards("connections_open_unix")
        shm = self.of_shards("connections_open_shm")
        return {"tcp": self.of_shards("connections_open") - unix - shm, "unix": unix, "shm": shm}

    @property
    def arena_used_bytes(self) -> int:
        """Bytes of the arena that hold records and values."""
        return sum(self.of_shards(part) for part in ARENA_PARTS)


def hit_ratio(pool: Mapping[str, int]) -> float | None:
    """Share of a pool's gets that found their key; None before the first."""
    return pool["get_hits"] / pool["gets"] if pool["gets"] else None
