"""Small values over Valkey's protocol, one request at a time on each of many connections."""

from collections.abc import Iterator, Sequence
from statistics import geometric_mean

from bench.peers.valkey import ValkeyServer
from bench.record import Comparison, Plan
from bench.redis_benchmark import Command, Load
from bench.resp import LoadResult, LoadRound, compare_loads
from bench.store import StoreServer

BAR = "RESP small values"
SIZES_BYTES = (64, 1 << 10)
KEY_COUNT = 100_000
REQUESTS_PER_ROUND_SECOND = 60_000
CPU_LIMIT = 0.85
# No operation may pay for another's gain.
THROUGHPUT_LIMIT, THROUGHPUT_MEAN_LIMIT = 0.95, 1.0


def compare(plan: Plan) -> Iterator[Comparison]:
    """CPU and throughput of GET and SET of both sizes, and the mean of the throughputs."""
    request_count = int(REQUESTS_PER_ROUND_SECOND * plan.seconds)
    results: list[LoadResult] = []
    with ValkeyServer.start() as valkey, StoreServer.start(spin=False) as store:
        for size_bytes in SIZES_BYTES:
            loads = [Load(command, size_bytes, KEY_COUNT, request_count) for command in Command]
            results += compare_loads(store, valkey, "Valkey", loads, plan)
    for result in results:
        yield result.cpu(BAR, CPU_LIMIT)
        yield result.throughput(BAR, THROUGHPUT_LIMIT)
    yield Comparison(
        bar=BAR,
        work="redis-benchmark, geometric mean of these: throughput",
        unit="requests/s",
        ours=_mean_rates([result.ours for result in results]),
        limit=THROUGHPUT_MEAN_LIMIT,
        peer_name="Valkey",
        peer=_mean_rates([result.peer for result in results]),
        at_least=True,
    )


def _mean_rates(loads: Sequence[Sequence[LoadRound]]) -> tuple[float, ...]:
    """The geometric mean over all loads, for each round."""
    return tuple(
        geometric_mean(result.requests_per_s for result in rounds)
        for rounds in zip(*loads, strict=True)
    )
