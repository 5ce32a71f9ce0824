from prometheus_client.parser import text_string_to_metric_families

from kvstrata.cluster.counters import Counters
from kvstrata.cluster.metrics import Exposition
from tests.unit.cluster.node_counters import shard, statistics


def scrape() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    exposition = Exposition(lambda: Counters.of(statistics(shard(), shard())), "1.2.3")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(exposition.text().decode())
        for sample in family.samples
    }


def at(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def test_counters_of_pools() -> None:
    found = scrape()
    assert found[at("kvstrata_operations_total", pool="default", operation="put")] == 9
    assert found[at("kvstrata_misses_total", pool="default", reason="absent")] == 1
    assert found[at("kvstrata_pool_evicted_bytes_total", pool="default")] == 100
    assert found[at("kvstrata_pool_objects", pool="default")] == 7
    assert found[at("kvstrata_pool_retained_bytes_hard", pool="default")] == 100
    assert found[at("kvstrata_pool_retain_refusals_total", pool="default")] == 1


def test_memory_is_in_bytes() -> None:
    found = scrape()
    assert found[at("kvstrata_memory_arena_bytes", state="populated")] == 8 << 20
    assert found[at("kvstrata_memory_used_bytes", part="index")] == 10
    assert found[at("kvstrata_memory_used_bytes", part="buffered")] == 11


def test_latency_is_cumulative_and_in_seconds() -> None:
    found = scrape()

    def below(bound: str) -> float:
        return found[at("kvstrata_operation_duration_seconds_bucket", operation="read", le=bound)]

    assert [below("1e-06"), below("2e-06"), below("4e-06"), below("+Inf")] == [2, 2, 4, 6]
    assert found[at("kvstrata_operation_duration_seconds_count", operation="read")] == 6
    assert found[at("kvstrata_operation_duration_seconds_sum", operation="read")] == 0.006


def test_shards_are_told_apart() -> None:
    found = scrape()
    assert found[at("kvstrata_shard_loop_stalls_total", shard="1")] == 5
    assert found[at("kvstrata_shard_loop_turn_max_seconds", shard="0")] == 0.002
    assert found[at("kvstrata_info", version="1.2.3")] == 1
