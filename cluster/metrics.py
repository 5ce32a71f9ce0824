"""A node's counters in Prometheus' terms: base units, one family a meaning."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from kvstrata.cluster.counters import ARENA_PARTS, Counters

# Family, its help, its label, and the counter by the label's value.
_Families = tuple[tuple[str, str, str, Mapping[str, str]], ...]

_BY_POOL: Final[_Families] = (
    (
        "operations",
        "Keys that were asked for or changed.",
        "operation",
        {"get": "gets", "exists": "exists_checks", "put": "puts", "delete": "deletes"},
    ),
    (
        "value_bytes",
        "Bytes of values moved.",
        "direction",
        {"read": "get_bytes", "written": "put_bytes"},
    ),
    (
        "hits",
        "Keys that were found.",
        "operation",
        {"get": "get_hits", "exists": "exists_hits"},
    ),
    (
        "misses",
        "Keys that a get did not find, by what had become of them.",
        "reason",
        {"absent": "misses_absent", "expired": "misses_expired", "evicted": "misses_evicted"},
    ),
)
_POOL_COUNTERS: Final = {
    "put_refusals": "Puts that were refused, as a pool was full or a key existed.",
    "evictions": "Objects dropped to make room.",
    "evicted_bytes": "Bytes of objects dropped to make room.",
    "expirations": "Objects dropped at the end of their time to live.",
    "corruptions": "Objects dropped since a checksum did not match.",
    "retains": "Keys that were retained: kept from eviction for a time.",
    "retain_refusals": "Keys not retained, as the pool's retentions were at their bounds.",
    "retained_evictions": "Softly retained objects dropped, as there was nothing else to drop.",
}
_POOL_GAUGES: Final = {
    "objects": "Objects in the pool.",
    "bytes": "Bytes of memory that the pool's objects take.",
    "quota_bytes": "Bytes the pool may take; 0: all that the node has.",
    "retained_objects": "Objects that are retained.",
    "retained_bytes": "Bytes of memory that retained objects take.",
    "retained_bytes_hard": "Of them, those that nothing evicts.",
}
_SHARD_COUNTERS: Final = {
    "commands": "Commands executed.",
    "hops": "Commands passed on to the shard that owns their key.",
    "received_bytes": "Bytes received from clients.",
    "copied_bytes": "Bytes copied to and from memory that clients share with the node.",
    "sent_bytes": "Bytes sent to clients.",
    "memory_waits": "Puts that had to wait for room.",
    "loop_turns": "Turns of the event loop.",
    "loop_stalls": "Turns of the event loop that took over 200 microseconds.",
}
_MEMORY_PARTS: Final = {
    "cells": "cell_bytes",
    "extents": "extent_bytes",
    "index": "index_bytes",
    "bookkeeping": "bookkeeping_bytes",
    "held": "held_bytes",
    "reserved": "reserved_bytes",
}
_DROPS: Final = ("slow", "protocol", "budget")


class NodeCollector(Collector):
    """Reads the counters anew for each scrape, so that nothing is counted twice."""

    def __init__(self, counters: Callable[[], Counters], version: str) -> None:
        self._counters = counters
        self._version = version

    def collect(self) -> Iterator[Metric]:
        """All families of the node."""
        counters = self._counters()
        yield InfoMetricFamily("kvstrata", "The node's build.", {"version": self._version})
        yield from _of_pools(counters)
        yield from _of_memory(counters)
        yield from _of_connections(counters)
        yield from _of_shards(counters)
        yield _latency(counters)


class Exposition:
    """The text of one scrape."""

    def __init__(self, counters: Callable[[], Counters], version: str) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(NodeCollector(counters, version))

    def text(self) -> bytes:
        """The metrics in Prometheus' text format 0.0.4."""
        return generate_latest(self._registry)


def _of_pools(counters: Counters) -> Iterator[Metric]:
    for family, words, label, sources in _BY_POOL:
        metric = CounterMetricFamily(f"kvstrata_{family}", words, labels=["pool", label])
        for pool, values in counters.pools.items():
            for value, source in sources.items():
                metric.add_metric([pool, value], values[source])
        yield metric
    kinds: tuple[tuple[Mapping[str, str], type[CounterMetricFamily | GaugeMetricFamily]], ...] = (
        (_POOL_COUNTERS, CounterMetricFamily),
        (_POOL_GAUGES, GaugeMetricFamily),
    )
    for table, kind in kinds:
        for name, words in table.items():
            each = kind(f"kvstrata_pool_{name}", words, labels=["pool"])
            for pool, values in counters.pools.items():
                each.add_metric([pool], values[name])
            yield each


def _of_memory(counters: Counters) -> Iterator[Metric]:
    memory = counters.memory
    segment_bytes = memory["segment_bytes"]
    arena = GaugeMetricFamily(
        "kvstrata_memory_arena_bytes",
        "Memory for records and values: all of it, populated, and not lent to a shard.",
        labels=["state"],
    )
    arena.add_metric(["total"], memory["memory_bytes"])
    arena.add_metric(["populated"], memory["populated_count"] * segment_bytes)
    arena.add_metric(["free"], memory["free_count"] * segment_bytes)
    yield arena
    used = GaugeMetricFamily(
        "kvstrata_memory_used_bytes",
        f"Memory by use; {' and '.join(ARENA_PARTS)} lie in the arena.",
        labels=["part"],
    )
    for part, source in _MEMORY_PARTS.items():
        used.add_metric([part], counters.of_shards(source))
    used.add_metric(["buffered"], memory["buffered_bytes"])
    yield used
    yield GaugeMetricFamily(
        "kvstrata_region_bytes",
        "Memory of clients that the node copies values to and from.",
        memory["region_bytes"],
    )


def _of_connections(counters: Counters) -> Iterator[Metric]:
    open_now = GaugeMetricFamily(
        "kvstrata_connections_open",
        "Connections that are open, by what carries them.",
        labels=["transport"],
    )
    for transport, count in counters.connections_open.items():
        open_now.add_metric([transport], count)
    yield open_now
    yield CounterMetricFamily(
        "kvstrata_connections_accepted",
        "Connections accepted.",
        counters.of_shards("connections_accepted"),
    )
    yield CounterMetricFamily(
        "kvstrata_connections_refused",
        "Connections refused: over a bound, or a wrong secret.",
        counters.of_shards("connections_refused"),
    )
    dropped = CounterMetricFamily(
        "kvstrata_connections_dropped",
        "Connections closed by the node, by reason.",
        labels=["reason"],
    )
    for reason in _DROPS:
        dropped.add_metric([reason], counters.of_shards(f"connections_dropped_{reason}"))
    yield dropped


def _of_shards(counters: Counters) -> Iterator[Metric]:
    for name, words in _SHARD_COUNTERS.items():
        metric = CounterMetricFamily(f"kvstrata_shard_{name}", words, labels=["shard"])
        for number, shard in enumerate(counters.shards):
            metric.add_metric([str(number)], shard[name])
        yield metric
    longest = GaugeMetricFamily(
        "kvstrata_shard_loop_turn_max_seconds",
        "The longest turn of the event loop since the start.",
        labels=["shard"],
    )
    for number, shard in enumerate(counters.shards):
        longest.add_metric([str(number)], shard["loop_turn_ns_max"] / 1e9)
    yield longest


def _latency(counters: Counters) -> Metric:
    metric = HistogramMetricFamily(
        "kvstrata_operation_duration_seconds",
        "Time from a command's arrival to its completion, by kind of operation.",
        labels=["operation"],
    )
    for kind in counters.shards[0]["latency"]:
        histograms = [shard["latency"][kind] for shard in counters.shards]
        counts = [sum(each) for each in zip(*(h["buckets"] for h in histograms), strict=True)]
        metric.add_metric([kind], _cumulative(counts), sum(h["sum_ns"] for h in histograms) / 1e9)
    return metric


def _cumulative(counts: list[int]) -> list[tuple[str, Any]]:
    """Prometheus' buckets: bucket i counts what took less than 2**i us, the last one the rest."""
    buckets = []
    total = 0
    for power, count in enumerate(counts):
        total += count
        bound = "+Inf" if power == len(counts) - 1 else repr(2**power / 1e6)
        buckets.append((bound, total))
    return buckets
