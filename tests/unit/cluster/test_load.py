"""The load generator against a node in this process."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kvstrata.cluster import load
from kvstrata.cluster.exit_codes import NotFoundError
from kvstrata.store.errors import DeniedError, UsageError
from kvstrata.store.histogram import quantile_us
from kvstrata.store.local import LocalStore, local


@pytest.fixture(scope="module")
def store() -> Iterator[LocalStore]:
    with local("32MiB", shards=2) as store:
        yield store


def run(store: LocalStore, operation: str, address: str = "", **changes: Any) -> None:  # noqa: ANN401
    arguments: dict[str, Any] = {
        "size": "100",
        "connections": 3,
        "depth": 5,
        "count": 1000,
        "seconds": None,
        "key_count": 20,
        "key_prefix": None,
        "as_json": True,
    }
    load.run(address or store.node_url, operation, **arguments | changes)


@pytest.mark.parametrize("operation", ["get", "put", "exists", "mixed"])
@pytest.mark.parametrize("size", ["0", "100", "600KiB"])
def test_operations(
    store: LocalStore, operation: str, size: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = store.admin("statistics")["pools"]["default"]
    run(store, operation, size=size)
    after = store.admin("statistics")["pools"]["default"]
    result = json.loads(capsys.readouterr().out)
    assert result["operations"] == 1000
    made = {name: after[name] - before[name] for name in ("gets", "get_hits", "exists_hits")}
    if operation == "get":
        assert made == {"gets": 1000, "get_hits": 1000, "exists_hits": 0}
    if operation == "mixed":
        assert 800 < made["get_hits"] < 1000
    if operation == "exists":
        assert made["exists_hits"] == 1000
    assert list(store.scan("kvstrata-bench")) == []


def test_a_run_for_a_time_ends_in_time(
    store: LocalStore, capsys: pytest.CaptureFixture[str]
) -> None:
    run(store, "get", count=None, seconds=0.3)
    result = json.loads(capsys.readouterr().out)
    assert result["operations"] > 0
    assert 0.2 < result["seconds"] < 3


def test_absent_keys_are_told(store: LocalStore, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotFoundError, match="1000 of 1000 keys absent-"):
        run(store, "get", key_prefix="absent-")
    assert json.loads(capsys.readouterr().out)["operations"] == 1000


def test_values_that_do_not_fit_are_told(store: LocalStore) -> None:
    with pytest.raises(NotFoundError, match="they did not fit the pool"):
        run(store, "get", size="1MiB", key_count=100)


def test_refusals_end_the_run(store: LocalStore) -> None:
    with pytest.raises(DeniedError, match="wrong secret"):
        run(store, "put", store.node_url.replace("default:", "default:not"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"size": "much"}, "--size"), ({"seconds": 1.0}, "not both")],
)
def test_wrong_arguments(store: LocalStore, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run(store, "get", **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": "33MiB"}, "--size: the node could hold no value above .* 33 MiB are asked for"),
        ({"size": "1MiB", "connections": 10_000, "depth": 1000}, "in flight take 9.5 TiB"),
    ],
)
def test_values_beyond_the_memory_are_refused_at_once(
    store: LocalStore, changes: dict[str, Any], words: str
) -> None:
    before = store.admin("statistics")["pools"]["default"]["puts"]
    with pytest.raises(UsageError, match=words):
        run(store, "get", **changes)
    assert store.admin("statistics")["pools"]["default"]["puts"] == before


def test_an_unknown_operation(store: LocalStore) -> None:
    with pytest.raises(UsageError, match="not 'read'"):
        run(store, "read")


def test_quantiles_are_bounds_of_buckets() -> None:
    counts = [0, 50, 49, 0, 1]
    assert quantile_us(counts, 0.5) == 2
    assert quantile_us(counts, 0.99) == 4
    assert quantile_us(counts, 1.0) == 16
