"""Nodes for clients that were written for Valkey or Redis and know nothing of kvstrata."""

from collections.abc import Iterator

import pytest

from tests.differential.client import Client
from tests.e2e.command import Node
from tests.e2e.resp_clients.programs import port_of

CONFIGURATION = """
[pools.hot]
eviction = "s3fifo"

[pools.frozen]
kind = "immutable"

[pools.first]
write = "first secret"

[pools.second]
read = "second reads"
write = "second secret"
admin = "second rules"
"""


@pytest.fixture(scope="session", params=[1, 3], ids=["one shard", "three shards"])
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node")
    file = folder / "node.toml"
    file.write_text(CONFIGURATION)
    options = ("--shards", str(request.param), "--memory", "64MiB", "--config", str(file))
    node = Node(folder, *options)
    yield node
    node.end()


@pytest.fixture
def port(node: Node) -> int:
    """Of a node whose pool `default` holds nothing."""
    found = port_of(node)
    with Client(found) as client:
        client.call(b"FLUSHALL")
    return found
