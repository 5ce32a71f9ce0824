from kvstrata.cluster.counters import Counters
from kvstrata.cluster.health import STUCK_S, Health
from tests.unit.cluster.node_counters import shard, statistics


class Watched:
    """A node whose counters and clock the test sets."""

    def __init__(self, populate_full: bool = False) -> None:
        self.turns = [1, 1]
        self.populated = 2
        self.now = 100.0
        self.health = Health(self.counters, lambda: self.now, populate_full=populate_full)

    def counters(self) -> Counters:
        shards = [shard(turns) for turns in self.turns]
        return Counters.of(statistics(*shards, populated=self.populated))


def test_a_node_at_work_is_ready() -> None:
    assert Watched().health.failures() == {}


def test_a_shard_that_turns_no_more_is_named() -> None:
    node = Watched()
    node.health.failures()
    node.now += STUCK_S + 1
    node.turns[0] += 1
    assert node.health.failures() == {
        "shards": "the loops of these shards have not turned: 1 for 6 s"
    }
    node.turns[1] += 1
    assert node.health.failures() == {}


def test_long_silence_between_two_looks_is_no_failure() -> None:
    node = Watched()
    node.health.failures()
    node.now += 3600
    node.turns = [2, 2]
    assert node.health.failures() == {}


def test_memory_must_be_there() -> None:
    node = Watched()
    node.populated = 0
    assert "0 of 1 segments" in node.health.failures()["memory"]
    full = Watched(populate_full=True)
    assert "2 of 8 segments" in full.health.failures()["memory"]
    full.populated = 8
    assert full.health.failures() == {}


def test_a_stopping_node_accepts_nothing() -> None:
    node = Watched()
    node.health.stopping()
    assert node.health.failures() == {"accepting": "the node is stopping"}
