"""Nodes for tests in which many things happen at once."""

from collections.abc import Iterator

import pytest

import kvstrata
from kvstrata import LocalStore
from tests.concurrency.node_process import NodeProcess

pytest.register_assert_rewrite("tests.concurrency.crowd", "tests.contract.contents")


@pytest.fixture(params=[1, 4], ids=["one_shard", "four_shards"])
def store(request: pytest.FixtureRequest) -> Iterator[LocalStore]:
    with kvstrata.local("128MiB", shards=request.param) as store:
        yield store


@pytest.fixture
def node() -> Iterator[NodeProcess]:
    with NodeProcess() as process:
        yield process
