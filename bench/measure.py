"""Interleaved rounds: every entrant once a round, so that drift of the machine hits all alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.contestants.work import Outcome, Work
from bench.probe import Probe
from bench.process import ServerProcess


@dataclass(frozen=True)
class Entrant:
    """A contestant, the server processes that work for it, and what it is to do."""

    name: str
    probe: Probe
    servers: tuple[ServerProcess, ...]
    work: Work

    def run(self, seed: int) -> "Round":
        before_s = sum(server.cpu_s() for server in self.servers)
        outcome = self.probe.ask(self.work.seeded(seed))
        after_s = sum(server.cpu_s() for server in self.servers)
        return Round(outcome, self.work, after_s - before_s)


@dataclass(frozen=True)
class Round:
    """One round of one entrant, with the CPU seconds that its servers spent on it."""

    outcome: Outcome
    work: Work
    server_cpu_s: float

    @property
    def bytes_per_s(self) -> float:
        return self.outcome.call_count * self.work.size_bytes / self.outcome.total_s

    @property
    def keys_per_s(self) -> float:
        return self.outcome.call_count * self.work.batch_length / self.outcome.total_s

    @property
    def server_cpu_us_per_call(self) -> float:
        return self.server_cpu_s * 1e6 / self.outcome.call_count


def interleave(
    entrants: Sequence[Entrant], round_count: int, seed: int
) -> dict[str, tuple[Round, ...]]:
    """Rounds of each entrant by its name; a first round warms up and is not returned.

    The order turns by one each round, so that nobody always runs after the same neighbour.
    """
    rounds: dict[str, list[Round]] = {entrant.name: [] for entrant in entrants}
    assert len(rounds) == len(entrants), "entrants need different names"
    for number in range(round_count + 1):
        turn = number % len(entrants)
        for entrant in (*entrants[turn:], *entrants[:turn]):
            result = entrant.run(seed + number)
            if number > 0:
                rounds[entrant.name].append(result)
    return {name: tuple(results) for name, results in rounds.items()}


def server_cpu_us(rounds: Sequence[Round]) -> float:
    """The median CPU time of the servers a call, in us, to be quoted beside the figure."""
    return median(result.server_cpu_us_per_call for result in rounds)
