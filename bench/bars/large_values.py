"""Large values into the caller's memory, beside a bare-socket client of Valkey."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

from bench.contestants.work import Operation, Work
from bench.measure import Side, interleave, notes, p50_us
from bench.peers.valkey import ValkeyServer
from bench.record import Comparison, Plan
from bench.store import StoreServer

# All keys of a size together: more than the processor's caches hold.
SET_BYTES = 256 << 20


class Way(NamedTuple):
    """How our client and node are set."""

    spin: bool
    verify: bool

    def __str__(self) -> str:
        spin = "spinning" if self.spin else "not spinning"
        return f"{spin}, {'verifying' if self.verify else 'not verifying'}"


LIMITS: dict[int, dict[Way, float]] = {
    64 << 10: {
        Way(spin=True, verify=False): 0.8,
        Way(spin=False, verify=False): 0.95,
        Way(spin=True, verify=True): 0.9,
        Way(spin=False, verify=True): 1.05,
    },
    1 << 20: {Way(spin=True, verify=False): 1.0, Way(spin=True, verify=True): 1.15},
    4 << 20: {Way(spin=True, verify=False): 1.0, Way(spin=True, verify=True): 1.15},
}


def compare(plan: Plan) -> Iterator[Comparison]:
    """p50 of `get_into` for each size and way that has a limit."""
    with ExitStack() as stack:
        valkey = stack.enter_context(ValkeyServer.start())
        peer = Side("bare socket", stack.enter_context(valkey.client("resp_socket")), (valkey,))
        servers = {s: stack.enter_context(StoreServer.start(spin=s)) for s in (True, False)}
        ours = {
            Way(spin, verify): Side(
                str(Way(spin, verify)),
                stack.enter_context(server.client(verify=verify)),
                (server,),
            )
            for spin, server in servers.items()
            for verify in (True, False)
        }
        for size_bytes, limits in LIMITS.items():
            key_count = SET_BYTES // size_bytes
            for side in (peer, ours[Way(True, True)], ours[Way(False, True)]):
                side.load(size_bytes, key_count)
            work = Work(Operation.GET_INTO, size_bytes, key_count, plan.seconds)
            sides = (peer, *(ours[way] for way in limits))
            of_peer, *of_ours = interleave([(side, work) for side in sides], plan)
            for (way, limit), rounds in zip(limits.items(), of_ours, strict=True):
                yield Comparison(
                    bar="large values",
                    work=f"get_into {size_bytes >> 10} KiB, {way}",
                    unit="us p50",
                    ours=p50_us(rounds),
                    limit=limit,
                    peer_name=peer.name,
                    peer=p50_us(of_peer),
                    notes=notes(rounds, of_peer),
                )
