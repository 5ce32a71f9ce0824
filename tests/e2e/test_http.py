"""HTTP of a real node: probes, metrics, status, and who may read them."""

import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

import kvstrata
from tests.e2e.command import Node, StartNode, stuck_reader, wait_for

pytestmark = pytest.mark.slow


def get(url: str, **arguments: Any) -> httpx.Response:  # noqa: ANN401
    with httpx.Client(timeout=20, trust_env=False) as client:
        return client.get(url, **arguments)


def samples(node: Node) -> dict[str, list[Sample]]:
    """All samples of the metrics, by name."""
    response = get(f"{node.http}/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(response.text):
        assert family.documentation
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def value(found: dict[str, list[Sample]], name: str, **labels: str) -> float:
    (sample,) = [each for each in found[name] if labels.items() <= each.labels.items()]
    return sample.value


def test_probes(node: Node) -> None:
    assert get(f"{node.http}/livez").json() == {"alive": True}
    ready = get(f"{node.http}/readyz")
    assert (ready.status_code, ready.json()) == (200, {"ready": True, "failures": {}})


def test_readiness_fails_while_stopping(start_node: StartNode) -> None:
    node = start_node("--stop-timeout", "30s")
    with stuck_reader(node):
        node.signal(signal.SIGTERM)
        wait_for(lambda: get(f"{node.http}/readyz").status_code == 503)
        assert get(f"{node.http}/readyz").json() == {
            "ready": False,
            "failures": {"accepting": "the node is stopping"},
        }
        node.signal(signal.SIGTERM)
        node.wait()


def test_metrics_count_what_happens(node: Node) -> None:
    before = samples(node)
    with kvstrata.connect(node.url) as store:
        store.put("counted", bytes(1000))
        for _ in range(3):
            store.get("counted")
        store.get("absent")
        store.exists("counted")
    after = samples(node)

    def change(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert change("kvstrata_operations_total", pool="default", operation="put") == 1
    assert change("kvstrata_operations_total", pool="default", operation="get") == 4
    assert change("kvstrata_hits_total", pool="default", operation="get") == 3
    assert change("kvstrata_hits_total", pool="default", operation="exists") == 1
    assert change("kvstrata_misses_total", pool="default", reason="absent") == 1
    assert change("kvstrata_value_bytes_total", pool="default", direction="read") == 3000
    assert change("kvstrata_value_bytes_total", pool="default", direction="written") == 1000
    assert change("kvstrata_operation_duration_seconds_count", operation="read") == 4
    # By TCP, where the node told of its UNIX socket; and by that.
    assert change("kvstrata_connections_accepted_total") == 2


def test_metrics_are_whole(node: Node) -> None:
    found = samples(node)
    for name in (
        "kvstrata_pool_objects",
        "kvstrata_pool_evictions_total",
        "kvstrata_pool_expirations_total",
        "kvstrata_memory_arena_bytes",
        "kvstrata_memory_used_bytes",
        "kvstrata_connections_open",
        "kvstrata_connections_refused_total",
        "kvstrata_connections_dropped_total",
        "kvstrata_shard_loop_stalls_total",
        "kvstrata_shard_loop_turn_max_seconds",
        "kvstrata_shard_hops_total",
        "kvstrata_shard_memory_waits_total",
    ):
        assert found[name], name
    assert value(found, "kvstrata_memory_arena_bytes", state="total") == 32 << 20
    buckets = [
        each
        for each in found["kvstrata_operation_duration_seconds_bucket"]
        if each.labels["operation"] == "read"
    ]
    bounds = [float(each.labels["le"]) for each in buckets]
    assert bounds == sorted(bounds)
    assert bounds[0] == 1e-6
    assert bounds[-1] == float("inf")


def test_status(node: Node) -> None:
    status = get(f"{node.http}/api/v1/status").json()
    assert status["ready"] is True
    assert status["shards"] == 1
    assert f"kvstrata://{status['host']}:{status['port']}" == node.url
    assert status["memory"]["total_bytes"] == 32 << 20
    assert status["pools"]["default"]["kind"] == "mutable"


def test_openapi_describes_the_api(node: Node) -> None:
    document = get(f"{node.http}/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.")
    assert set(document["paths"]) == {"/livez", "/readyz", "/metrics", "/api/v1/status"}
    schemas = document["components"]["schemas"]
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in schemas
    answer = get(f"{node.http}/api/v1/status").json()
    assert set(schemas["NodeStatus"]["properties"]) == set(answer)


def test_beyond_loopback_reads_want_an_admin_secret(start_node: StartNode, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    node = start_node("--admin-secret-file", str(secret), "--http-host", "0.0.0.0")
    url = node.http.replace("0.0.0.0", "127.0.0.1")
    assert get(f"{url}/readyz").status_code == 200
    for path in ("/metrics", "/api/v1/status"):
        refused = get(url + path)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Basic")
        assert get(url + path, auth=("default", "wrong")).status_code == 401
        assert get(url + path, auth=("other", "s3cret")).status_code == 401
        assert get(url + path, auth=("default", "s3cret")).status_code == 200


def references(part: object) -> list[str]:
    """Every $ref of a JSON document."""
    if isinstance(part, dict):
        own = [part["$ref"]] if "$ref" in part else []
        return own + [each for inner in part.values() for each in references(inner)]
    if isinstance(part, list):
        return [each for inner in part for each in references(inner)]
    return []
