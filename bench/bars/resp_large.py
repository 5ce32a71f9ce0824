"""Large values over Valkey's protocol: what moving their bytes costs the server."""

from collections.abc import Iterator

from bench.peers.valkey import ValkeyServer
from bench.record import Comparison, Plan
from bench.redis_benchmark import Command, Load
from bench.resp import compare_loads
from bench.store import StoreServer

BAR = "RESP large values"
# All keys of a size together: more than the processor's caches hold, and few enough for memory.
SET_BYTES = 256 << 20
REQUESTS_PER_ROUND_SECOND = {64 << 10: 20_000, 1 << 20: 2_000}
CPU_LIMIT = 0.9


def compare(plan: Plan) -> Iterator[Comparison]:
    """CPU of GET and SET of both sizes."""
    with ValkeyServer.start() as valkey, StoreServer.start(spin=False) as store:
        for size_bytes, requests_per_s in REQUESTS_PER_ROUND_SECOND.items():
            request_count = int(requests_per_s * plan.seconds)
            key_count = SET_BYTES // size_bytes
            loads = [Load(command, size_bytes, key_count, request_count) for command in Command]
            for result in compare_loads(store, valkey, "Valkey", loads, plan):
                yield result.cpu(BAR, CPU_LIMIT)
