"""Random sequences of commands, answered alike by Valkey and by a node."""

import pytest

from kvstrata.store.resp_commands.table import COMMANDS
from tests.differential.commands import CLUSTER, DATA, TALK, TRANSACTIONS, Step, sequence
from tests.differential.run import Comparison, explain

LENGTH = 1_500
VERSIONS = pytest.mark.parametrize("version", [2, 3])
SEEDS = pytest.mark.parametrize("seed", range(3))


def expect_alike(comparison: Comparison, steps: list[Step], version: int) -> None:
    difference = comparison.run(steps, version)
    if difference is not None:
        pytest.fail(explain(comparison, steps, version, difference))


@SEEDS
@VERSIONS
def test_data(comparison: Comparison, seed: int, version: int) -> None:
    expect_alike(comparison, sequence(seed, LENGTH, DATA), version)


@SEEDS
@VERSIONS
def test_talk_and_data(comparison: Comparison, seed: int, version: int) -> None:
    expect_alike(comparison, sequence(seed, LENGTH, DATA, TALK), version)


@SEEDS
@VERSIONS
def test_transactions(cluster_comparison: Comparison, seed: int, version: int) -> None:
    steps = sequence(seed, LENGTH, DATA, TRANSACTIONS, TALK, clients=2, tagged=True)
    expect_alike(cluster_comparison, steps, version)


@SEEDS
@VERSIONS
def test_cluster(cluster_comparison: Comparison, seed: int, version: int) -> None:
    steps = sequence(seed, LENGTH, DATA, CLUSTER, tagged=True)
    expect_alike(cluster_comparison, steps, version)


def test_every_command_is_made() -> None:
    made = {*DATA, *TALK, *TRANSACTIONS, *CLUSTER}
    containers = {command.container for command in COMMANDS}
    names = {command.name for command in COMMANDS} - containers
    # What follows CLIENT REPLY has none; test_broken_streams sends it.
    missing = {name.replace("|", " ").upper() for name in names} - made - {"CLIENT REPLY"}
    assert not missing
