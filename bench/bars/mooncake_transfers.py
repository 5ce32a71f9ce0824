"""Bulk in both directions, beside Mooncake Store over TCP."""

from collections.abc import Iterator
from contextlib import ExitStack

from bench.contestants.work import Operation, Work
from bench.measure import Side, interleave, notes
from bench.peers.mooncake import MooncakeStore
from bench.record import Comparison, Plan
from bench.store import StoreServer

SET_BYTES = 256 << 20
LIMITS = {64 << 10: 2.0, 1 << 20: 1.5, 4 << 20: 2.0}


def compare(plan: Plan) -> Iterator[Comparison]:
    """Throughput of one thread that reads or writes value after value."""
    with ExitStack() as stack:
        mooncake = stack.enter_context(MooncakeStore())
        peer = Side("Mooncake", stack.enter_context(mooncake.client()), mooncake.servers)
        server = stack.enter_context(StoreServer.start(spin=True))
        ours = Side("KVStrata", stack.enter_context(server.client()), (server,))
        for size_bytes, limit in LIMITS.items():
            key_count = SET_BYTES // size_bytes
            for side in (peer, ours):
                side.load(size_bytes, key_count)
            for operation in (Operation.GET_INTO, Operation.PUT):
                work = Work(operation, size_bytes, key_count, plan.seconds)
                of_peer, of_ours = interleave([(peer, work), (ours, work)], plan)
                yield Comparison(
                    bar="Mooncake transfers",
                    work=f"{operation} {size_bytes >> 10} KiB",
                    unit="GB/s",
                    ours=tuple(result.bytes_per_s / 1e9 for result in of_ours),
                    limit=limit,
                    peer_name=peer.name,
                    peer=tuple(result.bytes_per_s / 1e9 for result in of_peer),
                    at_least=True,
                    notes=notes(of_ours, of_peer),
                )
