"""What `/api/v1/status` answers: the node as typed, documented values."""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, Field

from kvstrata.cluster.counters import Counters, hit_ratio
from kvstrata.store.payloads import Payload


class MemoryStatus(BaseModel):
    """The node's arena."""

    total_bytes: int = Field(description="Memory for records and values.")
    used_bytes: int = Field(description="Of these, held by records and values.")
    populated_bytes: int = Field(description="Of these, touched, so that a put does not wait.")
    huge_pages: str = Field(description="What the kernel granted: none, transparent or explicit.")


class ConnectionStatus(BaseModel):
    """Connections of clients."""

    open: int = Field(description="Open now.")
    accepted: int = Field(description="Accepted since the start.")
    refused: int = Field(description="Refused since the start.")


class PoolStatus(BaseModel):
    """One pool."""

    kind: Literal["mutable", "immutable"] = Field(description="Whether objects can be replaced.")
    objects: int = Field(description="Objects in the pool.")
    bytes: int = Field(description="Memory that they take.")
    quota_bytes: int = Field(description="What it may take; 0: all that the node has.")
    gets: int = Field(description="Keys asked for since the start.")
    hit_ratio: float | None = Field(description="Share that was found; null before the first.")
    puts: int = Field(description="Values put since the start.")
    evictions: int = Field(description="Objects dropped to make room.")
    expirations: int = Field(description="Objects dropped at the end of their time to live.")


class NodeStatus(BaseModel):
    """One node."""

    version: str = Field(description="Of kvstrata.")
    node_id: str = Field(description="Drawn anew with each start.")
    protocol_version: int = Field(description="Of the capsule protocol.")
    host: str = Field(description="Address of the data port.")
    port: int = Field(description="TCP port for capsules.")
    shards: int = Field(description="Threads that each own part of the keys.")
    uptime_seconds: float = Field(description="Time since the start.")
    ready: bool = Field(description="Whether /readyz answers 200.")
    memory: MemoryStatus
    connections: ConnectionStatus
    pools: dict[str, PoolStatus]


class Readiness(BaseModel):
    """Whether the node can serve."""

    ready: bool = Field(description="Whether every check passes.")
    failures: dict[str, str] = Field(description="Why not, in words, by the check's name.")


class Liveness(BaseModel):
    """That the process answers."""

    alive: bool = Field(description="Always true: a dead process does not answer.")


def node_status(information: Payload, counters: Counters, *, ready: bool) -> NodeStatus:
    """Bring together what the node says of itself and its counters."""
    memory = counters.memory
    return NodeStatus(
        version=information["version"],
        node_id=information["node_id"],
        protocol_version=information["protocol_version"],
        host=information["host"],
        port=information["port"],
        shards=information["shards"],
        uptime_seconds=information["uptime"],
        ready=ready,
        memory=MemoryStatus(
            total_bytes=memory["memory_bytes"],
            used_bytes=counters.arena_used_bytes,
            populated_bytes=memory["populated_count"] * memory["segment_bytes"],
            huge_pages=memory["huge_pages"],
        ),
        connections=ConnectionStatus(
            open=counters.of_shards("connections_open"),
            accepted=counters.of_shards("connections_accepted"),
            refused=counters.of_shards("connections_refused"),
        ),
        pools={name: _pool_status(pool) for name, pool in counters.pools.items()},
    )


def _pool_status(pool: Mapping[str, int]) -> PoolStatus:
    return PoolStatus(
        kind="immutable" if pool["immutable"] else "mutable",
        objects=pool["objects"],
        bytes=pool["bytes"],
        quota_bytes=pool["quota_bytes"],
        gets=pool["gets"],
        hit_ratio=hit_ratio(pool),
        puts=pool["puts"],
        evictions=pool["evictions"],
        expirations=pool["expirations"],
    )
