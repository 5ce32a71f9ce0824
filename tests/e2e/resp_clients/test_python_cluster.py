"""The cluster clients of valkey-py and redis-py: one node that owns all slots."""

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(params=["valkey", "redis"])
def library(request: pytest.FixtureRequest) -> ModuleType:
    pytest.importorskip(request.param)
    return importlib.import_module(f"{request.param}.cluster")


@pytest.fixture
def client(library: ModuleType, port: int) -> Iterator[Any]:
    name = "ValkeyCluster" if library.__name__.startswith("valkey") else "RedisCluster"
    with getattr(library, name)(host="127.0.0.1", port=port, socket_timeout=10) as connected:
        yield connected


def test_it_finds_one_node_with_all_slots(client: Any, port: int) -> None:  # noqa: ANN401
    nodes = client.get_nodes()
    assert [(node.host, node.port, node.server_type) for node in nodes] == [
        ("127.0.0.1", port, "primary")
    ]
    assert len(client.nodes_manager.slots_cache) == 16_384
    assert client.cluster_info(target_nodes=nodes[0])["cluster_state"] == "ok"
    assert client.cluster_keyslot("{tag}a") == client.keyslot("{tag}b")


def test_keys_of_many_slots(client: Any) -> None:  # noqa: ANN401
    names = [f"k{n}" for n in range(200)]
    assert all(client.mset_nonatomic({name: name for name in names}))
    assert client.mget_nonatomic(names) == [name.encode() for name in names]
    assert {key.decode() for key in client.scan_iter(count=20)} == set(names)
    assert client.dbsize() == 200
    assert client.delete(*names[:50]) == 50
    assert client.exists(*names) == 150


def test_a_pipeline_over_slots(client: Any) -> None:  # noqa: ANN401
    with client.pipeline() as pipeline:
        for n in range(200):
            pipeline.set(f"k{n}", n).incr(f"k{n}")
        assert pipeline.execute() == [reply for n in range(200) for reply in (True, n + 1)]


def test_a_slots_keys_are_found_by_their_slot(client: Any) -> None:  # noqa: ANN401
    slot = client.keyslot("{tag}")
    client.mset({"{tag}a": 1, "{tag}b": 2})
    assert client.cluster_countkeysinslot(slot) == 2
    assert sorted(client.cluster_get_keys_in_slot(slot, 10)) in (
        ["{tag}a", "{tag}b"],
        [b"{tag}a", b"{tag}b"],
    )
