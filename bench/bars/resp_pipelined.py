"""Small values over Valkey's protocol in pipelines, where the server's own work is what counts."""

from collections.abc import Iterator

from bench.peers.valkey import ValkeyServer
from bench.record import Comparison, Plan
from bench.redis_benchmark import Command, Load
from bench.resp import compare_loads
from bench.store import StoreServer

BAR = "RESP pipelines"
SIZE_BYTES = 64
KEY_COUNT = 100_000
PIPELINE_DEPTH = 16
REQUESTS_PER_ROUND_SECOND = 600_000
CPU_LIMITS = {Command.GET: 0.65, Command.SET: 0.55}
THROUGHPUT_LIMITS = {Command.GET: 1.4, Command.SET: 1.8}


def compare(plan: Plan) -> Iterator[Comparison]:
    """CPU and throughput of GET and SET, 16 requests at a time on each connection."""
    request_count = int(REQUESTS_PER_ROUND_SECOND * plan.seconds)
    loads = [
        Load(command, SIZE_BYTES, KEY_COUNT, request_count, PIPELINE_DEPTH) for command in Command
    ]
    with ValkeyServer.start() as valkey, StoreServer.start(spin=False) as store:
        results = compare_loads(store, valkey, "Valkey", loads, plan)
    for result in results:
        yield result.cpu(BAR, CPU_LIMITS[result.load.command])
        yield result.throughput(BAR, THROUGHPUT_LIMITS[result.load.command])
