"""Interleaved rounds: every entrant once a round, so that drift of the machine hits all alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from bench.contestants.work import Operation, Outcome, Work
from bench.probe import Probe
from bench.process import ServerProcess
from bench.record import Plan


@dataclass(frozen=True)
class Side:
    """A contestant and the server processes that work for it."""

    name: str
    probe: Probe
    servers: tuple[ServerProcess, ...]

    def load(self, size_bytes: int, key_count: int) -> None:
        """Store the keys that later work of this size will read."""
        self.probe.ask(Work(Operation.LOAD, size_bytes, key_count))

    def run(self, work: Work) -> "Round":
        """Do `work` once, and watch the servers' CPU time meanwhile."""
        before_s = self._server_cpu_s()
        outcome = self.probe.ask(work)
        after_s = self._server_cpu_s()
        if work.operation is Operation.PUT:
            self.probe.ask(replace(work, operation=Operation.TIDY))
        return Round(outcome, work, after_s - before_s)

    def _server_cpu_s(self) -> float:
        return sum(server.cpu_s() for server in self.servers)


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


def interleave(entrants: Sequence[tuple[Side, Work]], plan: Plan) -> list[tuple[Round, ...]]:
    """The rounds of each entrant, in the entrants' order."""
    results: list[list[Round]] = [[] for _ in entrants]
    for number, place in turns(len(entrants), plan):
        side, work = entrants[place]
        result = side.run(work.seeded(plan.seed + number))
        if number > 0:
            results[place].append(result)
    return [tuple(rounds) for rounds in results]


def turns(entrant_count: int, plan: Plan) -> Iterator[tuple[int, int]]:
    """Yield (number of the round, place of the entrant); round 0 only warms up.

    The order turns by one each round, so that nobody always runs after the same neighbour.
    """
    places = range(entrant_count)
    for number in range(plan.round_count + 1):
        turn = number % entrant_count
        for place in (*places[turn:], *places[:turn]):
            yield number, place


def p50_us(rounds: Sequence[Round]) -> tuple[float, ...]:
    return tuple(result.outcome.p50_us for result in rounds)


def notes(ours: Sequence[Round], peer: Sequence[Round]) -> dict[str, float]:
    """What is quoted beside every figure: tails, and the servers' CPU time a call."""
    return {
        "p99 us": median(result.outcome.p99_us for result in ours),
        "peer's p99 us": median(result.outcome.p99_us for result in peer),
        "server CPU us": median(result.server_cpu_us_per_call for result in ours),
        "peer's server CPU us": median(result.server_cpu_us_per_call for result in peer),
    }
