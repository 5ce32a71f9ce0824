"""Whether 512 keys of 32 bytes exist, in one call, beside Mooncake's batch_is_exist."""

from collections.abc import Iterator
from contextlib import ExitStack

from bench.contestants.work import Operation, Work
from bench.measure import Side, interleave, notes
from bench.peers.mooncake import MooncakeStore
from bench.record import Comparison, Plan
from bench.store import StoreServer

SIZE_BYTES = 16
BATCH_LENGTH = 512
KEY_COUNT = 16 * BATCH_LENGTH
LIMIT = 3.0


def compare(plan: Plan) -> Iterator[Comparison]:
    """Keys a second of `exists_many` and `prefix_length`, all keys being there."""
    with ExitStack() as stack:
        mooncake = stack.enter_context(MooncakeStore())
        peer = Side("batch_is_exist", stack.enter_context(mooncake.client()), mooncake.servers)
        server = stack.enter_context(StoreServer.start(spin=True))
        ours = Side("KVStrata", stack.enter_context(server.client()), (server,))
        for side in (peer, ours):
            side.load(SIZE_BYTES, KEY_COUNT)
        exists_many, prefix_length = (
            Work(operation, SIZE_BYTES, KEY_COUNT, plan.seconds, BATCH_LENGTH)
            for operation in (Operation.EXISTS_MANY, Operation.PREFIX_LENGTH)
        )
        entrants = [(peer, exists_many), (ours, exists_many), (ours, prefix_length)]
        of_peer, *of_ours = interleave(entrants, plan)
        for work, rounds in zip((exists_many, prefix_length), of_ours, strict=True):
            yield Comparison(
                bar="existence",
                work=f"{work.operation} of {BATCH_LENGTH} keys",
                unit="keys/s",
                ours=tuple(result.keys_per_s for result in rounds),
                limit=LIMIT,
                peer_name=peer.name,
                peer=tuple(result.keys_per_s for result in of_peer),
                at_least=True,
                notes=notes(rounds, of_peer),
            )
