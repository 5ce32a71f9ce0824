"""Counters as a node reports them, for tests that need no node."""

from typing import Any

POOL = {
    "immutable": False,
    "quota_bytes": 0,
    "objects": 7,
    "bytes": 700,
    "gets": 4,
    "get_hits": 3,
    "get_bytes": 300,
    "misses_absent": 1,
    "misses_expired": 0,
    "misses_evicted": 0,
    "exists_checks": 2,
    "exists_hits": 1,
    "puts": 9,
    "put_bytes": 900,
    "put_refusals": 0,
    "deletes": 1,
    "evictions": 1,
    "evicted_bytes": 100,
    "expirations": 0,
    "corruptions": 0,
    "retained_objects": 2,
    "retained_bytes": 200,
    "retained_bytes_hard": 100,
    "retains": 3,
    "retain_refusals": 1,
    "retained_evictions": 0,
}
BUCKET_COUNT = 24


def shard(turns: int = 1) -> dict[str, Any]:
    """One shard; a read took less than 1 us, another less than 4, a third over 4 s."""
    buckets = [0] * BUCKET_COUNT
    buckets[0] = buckets[2] = buckets[-1] = 1
    names = (
        "connections_accepted connections_refused connections_open connections_open_unix"
        " connections_open_shm"
        " connections_dropped_slow connections_dropped_protocol connections_dropped_budget"
        " commands hops received_bytes sent_bytes copied_bytes memory_waits loop_stalls"
        " index_bytes cell_bytes"
        " extent_bytes held_bytes bookkeeping_bytes reserved_bytes"
    )
    return {
        **dict.fromkeys(names.split(), 5),
        "loop_turns": turns,
        "loop_turn_ns_max": 2_000_000,
        "latency": {"read": {"buckets": buckets, "sum_ns": 3_000_000}},
    }


def statistics(*shards: dict[str, Any], populated: int = 2) -> dict[str, Any]:
    """A node of 8 segments of 4 MiB with the pool default."""
    return {
        "memory": {
            "memory_bytes": 32 << 20,
            "segment_bytes": 4 << 20,
            "segment_count": 8,
            "free_count": 6,
            "populated_count": populated,
            "huge_pages": "none",
            "buffered_bytes": 11,
            "region_bytes": 13,
        },
        "shards": list(shards) or [shard()],
        "pools": {"default": dict(POOL)},
    }
