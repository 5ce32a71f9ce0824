"""Two servers of Valkey's protocol under the same loads, round by round."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.fill import fill_resp
from bench.measure import turns
from bench.peers.valkey import ValkeyServer
from bench.record import Comparison, Plan
from bench.redis_benchmark import Load, run
from bench.store import StoreServer

Server = ValkeyServer | StoreServer


@dataclass(frozen=True)
class LoadRound:
    """What one round of a load came to; the CPU time is the server's, for a request."""

    requests_per_s: float
    server_cpu_us: float


@dataclass(frozen=True)
class LoadResult:
    """The rounds of one load on our server and on the one beside it."""

    load: Load
    ours: tuple[LoadRound, ...]
    peer: tuple[LoadRound, ...]
    peer_name: str

    def cpu(self, bar: str, limit: float) -> Comparison:
        """CPU time of the server for a request: at most `limit` times the peer's."""
        return Comparison(
            bar=bar,
            work=f"redis-benchmark {self.load}: server CPU",
            unit="us",
            ours=tuple(result.server_cpu_us for result in self.ours),
            limit=limit,
            peer_name=self.peer_name,
            peer=tuple(result.server_cpu_us for result in self.peer),
            notes={
                "requests/s": median(result.requests_per_s for result in self.ours),
                "peer's requests/s": median(result.requests_per_s for result in self.peer),
            },
        )

    def throughput(self, bar: str, limit: float) -> Comparison:
        """Requests a second: at least `limit` times the peer's."""
        return Comparison(
            bar=bar,
            work=f"redis-benchmark {self.load}: throughput",
            unit="requests/s",
            ours=tuple(result.requests_per_s for result in self.ours),
            limit=limit,
            peer_name=self.peer_name,
            peer=tuple(result.requests_per_s for result in self.peer),
            at_least=True,
        )


def compare_loads(
    ours: Server, peer: Server, peer_name: str, loads: Sequence[Load], plan: Plan
) -> list[LoadResult]:
    """Fill both servers for `loads`, which share size and count of keys, and run all in turn."""
    ((value_bytes, key_count),) = {(load.value_bytes, load.key_count) for load in loads}
    for server in (ours, peer):
        fill_resp(server.port, key_count, value_bytes)
    entrants = [(server, load) for load in loads for server in (ours, peer)]
    results: list[list[LoadRound]] = [[] for _ in entrants]
    for number, place in turns(len(entrants), plan):
        result = _drive(*entrants[place])
        if number > 0:
            results[place].append(result)
    return [
        LoadResult(load, tuple(results[2 * place]), tuple(results[2 * place + 1]), peer_name)
        for place, load in enumerate(loads)
    ]


def _drive(server: Server, load: Load) -> LoadRound:
    before_s = server.cpu_s()
    rate = run(server.port, load)
    return LoadRound(rate, (server.cpu_s() - before_s) * 1e6 / load.request_count)
