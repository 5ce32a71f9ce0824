"""1 KiB by one Python thread, beside valkey-py with libvalkey.

Without spinning the time is that of two threads waking each other, so it is measured too how long
that takes by itself.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median

from bench.contestants.work import Operation, Work
from bench.measure import Side, interleave, notes, p50_us
from bench.peers.echo import EchoServer
from bench.peers.valkey import ValkeyServer
from bench.record import Comparison, Plan
from bench.store import StoreServer

SIZE_BYTES = 1 << 10
KEY_COUNT = 1000
LIMIT_OF_SPIN = {True: 0.5, False: 0.6}


def compare(plan: Plan) -> Iterator[Comparison]:
    """p50 of both operations, with the default adaptive spinning and without."""
    with ExitStack() as stack:
        valkey = stack.enter_context(ValkeyServer.start())
        peer = Side("valkey-py", stack.enter_context(valkey.client("valkey_py")), (valkey,))
        ours = {spin: _side(stack, spin=spin) for spin in LIMIT_OF_SPIN}
        for side in (peer, *ours.values()):
            side.load(SIZE_BYTES, KEY_COUNT)
        echo = stack.enter_context(EchoServer.start())
        floor = Side("bare echo", stack.enter_context(echo.client()), (echo,))
        for operation in (Operation.GET_INTO, Operation.PUT):
            work = Work(operation, SIZE_BYTES, KEY_COUNT, plan.seconds)
            sides = (peer, floor, *ours.values())
            of_peer, of_floor, *of_ours = interleave([(s, work) for s in sides], plan)
            for (spin, side), rounds in zip(ours.items(), of_ours, strict=True):
                yield Comparison(
                    bar="small values",
                    work=f"{operation} 1 KiB, {side.name}",
                    unit="us p50",
                    ours=p50_us(rounds),
                    limit=LIMIT_OF_SPIN[spin],
                    peer_name=peer.name,
                    peer=p50_us(of_peer),
                    notes=notes(rounds, of_peer) | {"bare echo us": median(p50_us(of_floor))},
                )


def _side(stack: ExitStack, *, spin: bool) -> Side:
    server = stack.enter_context(StoreServer.start(spin=spin))
    name = "spinning" if spin else "not spinning"
    return Side(name, stack.enter_context(server.client()), (server,))
