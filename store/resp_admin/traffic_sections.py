"""INFO's sections about connections, what they did, and the keys that are there."""

from collections.abc import Mapping

from kvstrata.store.resp_admin.command_statistics import error_counts
from kvstrata.store.resp_admin.sections import Fields, Readings


def clients(readings: Readings) -> Fields:
    """Connections of both protocols. No command blocks, and there are no subscriptions."""
    open_now = readings.connections
    return {
        "connected_clients": len(open_now),
        "cluster_connections": 0,
        "maxclients": readings.state.config.connections_max,
        "client_recent_max_input_buffer": _largest(readings, "input_bytes"),
        "client_recent_max_output_buffer": _largest(readings, "output_bytes"),
        "blocked_clients": 0,
        "tracking_clients": 0,
        "pubsub_clients": 0,
        "watching_clients": sum(each["watch_count"] > 0 for each in open_now),
        "clients_in_timeout_table": 0,
        "total_blocking_keys": 0,
    }


def stats(readings: Readings) -> Fields:
    """Counters since the start; those that are not kept by pool, to who administers the node."""
    of_node: Fields = {}
    if readings.of_node:
        of_node = {
            "total_connections_received": readings.of_shards("connections_accepted"),
            "total_commands_processed": readings.of_shards("commands"),
            "total_net_input_bytes": readings.of_shards("received_bytes"),
            "total_net_output_bytes": readings.of_shards("sent_bytes"),
            "rejected_connections": readings.of_shards("connections_refused"),
            "total_error_replies": sum(error_counts(readings.shards).values()),
            "eventloop_cycles": readings.of_shards("loop_turns"),
        }
    hits = readings.of_pools("get_hits")
    return {
        **of_node,
        "expired_keys": readings.of_pools("expirations"),
        "evicted_keys": readings.of_pools("evictions"),
        "keyspace_hits": hits,
        "keyspace_misses": readings.of_pools("gets") - hits,
        "sync_full": 0,
        "sync_partial_ok": 0,
        "sync_partial_err": 0,
        "pubsub_channels": 0,
        "pubsub_patterns": 0,
        "latest_fork_usec": 0,
        "total_forks": 0,
        "tracking_total_keys": 0,
    }


def keyspace(readings: Readings) -> Fields:
    """The caller's pool is its database 0; others have their name, and no number to select."""
    own = readings.request.pool
    fields: Fields = {}
    for name, pool in sorted(readings.pools.items(), key=lambda each: each[0] != own):
        if pool["objects"]:
            fields["db0" if name == own else f"pool_{name}"] = _keys(pool)
    return fields


def _keys(pool: Mapping[str, int]) -> str:
    return f"keys={pool['objects']},expires={pool['objects_expiring']}"


def _largest(readings: Readings, field: str) -> int:
    return max((each[field] for each in readings.connections), default=0)
