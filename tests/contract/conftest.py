"""A node for the whole run, and for each test a pool of its own behind one of the two clients."""

from collections.abc import Iterator

import pytest

import kvstrata
from kvstrata import LocalStore, Store
from tests.contract.doors import LoopThread
from tests.contract.opener import Opener

CONCEPTS = ("batch", "pool", "retention", "tensor", "value", "write")
pytest.register_assert_rewrite(
    "tests.contract.contents", *(f"tests.contract.{concept}_contract" for concept in CONCEPTS)
)


@pytest.fixture(scope="session", params=[1, 4], ids=["one_shard", "four_shards"])
def node(request: pytest.FixtureRequest) -> Iterator[LocalStore]:
    with kvstrata.local("384MiB", shards=request.param) as store:
        yield store


@pytest.fixture(scope="session")
def loop_thread() -> Iterator[LoopThread]:
    loop = LoopThread()
    yield loop
    loop.stop()


@pytest.fixture(params=["sync", "asyncio"])
def door(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opener(
    request: pytest.FixtureRequest, node: LocalStore, door: str, loop_thread: LoopThread
) -> Iterator[Opener]:
    """For a class of tests that says by `transport` which one its stores use."""
    made = Opener(node, door, request.cls.transport, loop_thread)
    yield made
    made.close()


@pytest.fixture
def store(opener: Opener) -> Store:
    """A store on an empty mutable pool."""
    return opener()
