"""Runs the machines of store_machine.py on one shard and on four."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

import kvstrata
from kvstrata import LocalStore
from tests.model.store_machine import DictMachine, EvictingMachine, StoreMachine

# A failure must be the same failure next time, so examples come from a fixed seed; the soak form
# looks for new ones.
SHORT = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)
LONG = settings(SHORT, max_examples=2_000, stateful_step_count=100, derandomize=False)


@pytest.fixture(params=[1, 4], ids=["one_shard", "four_shards"])
def node(request: pytest.FixtureRequest) -> Iterator[LocalStore]:
    with kvstrata.local("128MiB", shards=request.param) as store:
        yield store


@pytest.mark.parametrize("machine", [DictMachine, EvictingMachine])
def test_the_store_equals_its_model(node: LocalStore, machine: type[StoreMachine]) -> None:
    run(node, machine, SHORT)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("machine", [DictMachine, EvictingMachine])
def test_the_store_equals_its_model_for_long(node: LocalStore, machine: type[StoreMachine]) -> None:
    run(node, machine, LONG)


def run(node: LocalStore, machine: type[StoreMachine], how: settings) -> None:
    machine.node = node
    machine.prepare()
    try:
        run_state_machine_as_test(machine, settings=how)
    finally:
        del machine.node
