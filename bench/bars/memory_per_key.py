"""Memory of a stored key of 32 bytes with a value of 16, beside Valkey.

Ours is everything the process holds, less the part of the arena that no value uses: arena bytes
used, and the resident set that is not arena (index, tables, code, Python). Valkey's is its own
`used_memory`, which leaves out what libc's malloc and its code take; its whole resident set
stands beside the figure. Both are growth since the start, over the number of keys; what a node
of ours takes before the first key is quoted too, since it weighs less the more keys there are.
"""

from collections.abc import Iterator

from bench.fill import fill_store, fill_valkey
from bench.peers.valkey import ValkeyServer
from bench.record import Comparison, Plan
from bench.store import StoreServer

LIMIT = 1.0


def compare(plan: Plan) -> Iterator[Comparison]:
    """Bytes a key; one filling of each, since memory does not vary between rounds."""
    with ValkeyServer.start() as valkey:
        before = valkey.used_memory_bytes()
        fill_valkey(valkey.port, plan.key_count)
        peer_growth = valkey.used_memory_bytes() - before
        peer_resident = sum(valkey.resident_bytes().values())
    with StoreServer.start(spin=False) as server:
        at_start = _used_bytes(server)
        fill_store(server.url(), plan.key_count)
        growth = _used_bytes(server) - at_start
        arena_used = server.arena_used_bytes()
        arena_resident = server.resident_bytes()["arena"]
    yield Comparison(
        bar="memory per key",
        work=f"{plan.key_count:,} keys",
        unit="bytes",
        ours=(growth / plan.key_count,),
        limit=LIMIT,
        peer_name="Valkey",
        peer=(peer_growth / plan.key_count,),
        notes={
            "with what is held at the start": (growth + at_start) / plan.key_count,
            "arena": arena_used / plan.key_count,
            "resident arena": arena_resident / plan.key_count,
            "peer's resident set": peer_resident / plan.key_count,
        },
    )


def _used_bytes(server: StoreServer) -> int:
    resident = server.resident_bytes()
    return server.arena_used_bytes() + resident["anonymous"] + resident["file"]
