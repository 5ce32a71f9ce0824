"""What a request over Valkey's protocol costs more when half of them hop to another shard."""

from collections.abc import Iterator

from bench.record import Comparison, Plan
from bench.redis_benchmark import Command, Load
from bench.resp import compare_loads
from bench.store import StoreServer

BAR = "RESP shards"
SIZE_BYTES = 64
KEY_COUNT = 100_000
# By pipeline depth: a hop weighs most where the rest of a request costs least.
REQUESTS_PER_ROUND_SECOND = {1: 60_000, 16: 600_000}
CPU_LIMIT = 1.25


def compare(plan: Plan) -> Iterator[Comparison]:
    """CPU of GET and SET on two shards, beside the same load on one."""
    with (
        StoreServer.start(spin=False, shard_count=1) as one,
        StoreServer.start(spin=False, shard_count=2) as two,
    ):
        loads = [
            Load(command, SIZE_BYTES, KEY_COUNT, int(requests_per_s * plan.seconds), depth)
            for depth, requests_per_s in REQUESTS_PER_ROUND_SECOND.items()
            for command in Command
        ]
        for result in compare_loads(two, one, "on one shard", loads, plan):
            yield result.cpu(BAR, CPU_LIMIT)
