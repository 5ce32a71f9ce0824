"""What one client's 64 MiB transfers do to another client's 1 KiB reads."""

from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic

from bench.contestants.work import Operation, Work
from bench.measure import Side
from bench.record import Comparison, Plan
from bench.store import StoreServer

SMALL_BYTES, SMALL_COUNT = 1 << 10, 1000
BULK_BYTES, BULK_COUNT = 64 << 20, 4
P99_LIMIT = 5.0
# Bulk goes on in short turns, since what a turn puts is deleted after it.
BULK_TURN_S = 0.2


def compare(plan: Plan) -> Iterator[Comparison]:
    """p99 of the small reads under way beside quiet, and the loop's stalls meanwhile."""
    with ExitStack() as stack:
        server = stack.enter_context(StoreServer.start(spin=True))
        bulk = Side("bulk", stack.enter_context(server.client()), (server,))
        small = Side("small", stack.enter_context(server.client()), (server,))
        bulk.load(BULK_BYTES, BULK_COUNT)
        small.load(SMALL_BYTES, SMALL_COUNT)
        for operation in (Operation.GET_INTO, Operation.PUT):
            yield from _under_way(server, bulk, small, operation, plan)


def _under_way(
    server: StoreServer, bulk: Side, small: Side, operation: Operation, plan: Plan
) -> Iterator[Comparison]:
    few = Work(Operation.GET_INTO, SMALL_BYTES, SMALL_COUNT, plan.seconds)
    much = Work(operation, BULK_BYTES, BULK_COUNT, BULK_TURN_S)
    quiet_us: list[float] = []
    busy_us: list[float] = []
    stall_counts: list[float] = []
    for number in range(plan.round_count + 1):
        reads = few.seeded(plan.seed + number)
        quiet_us.append(small.probe.ask(reads).p99_us)
        stalls_before = server.loop_stall_count()
        small.probe.begin(reads)
        end = monotonic() + reads.seconds
        while monotonic() < end:
            bulk.run(much)
        busy_us.append(small.probe.finish().p99_us)
        stall_counts.append(server.loop_stall_count() - stalls_before)
    yield Comparison(
        bar="quiet neighbour",
        work=f"get_into 1 KiB while {operation} 64 MiB",
        unit="us p99",
        ours=tuple(busy_us[1:]),
        limit=P99_LIMIT,
        peer_name="quiet",
        peer=tuple(quiet_us[1:]),
    )
    yield Comparison(
        bar="quiet neighbour",
        work=f"loop stalls over 200 us while {operation} 64 MiB",
        unit="stalls",
        ours=(sum(stall_counts[1:]),),
        limit=0.0,
    )
