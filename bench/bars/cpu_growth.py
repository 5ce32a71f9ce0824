"""How much dearer a GET becomes for the server from a thousand keys to millions.

Many connections with pipelines keep one server thread busy, so CPU time per GET is steady; the
load programs are native, so that they are not what is measured.
"""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from statistics import median
from typing import TypeVar

from bench.fill import KEY_PREFIX, fill_store, fill_valkey
from bench.peers.valkey import ValkeyServer
from bench.process import ServerProcess
from bench.record import Comparison, Plan
from bench.store import COMMAND, StoreServer

FEW_KEYS = 1000
CONNECTION_COUNT = 50
PIPELINE_DEPTH = 16
GETS_PER_ROUND_SECOND = 1_500_000
GROWTH_EXCESS_MAX = 0.1

S = TypeVar("S", bound=ServerProcess)


def compare(plan: Plan) -> Iterator[Comparison]:
    """Our growth of CPU per GET against Valkey's plus a tenth."""
    key_counts = (FEW_KEYS, plan.key_count)
    with ExitStack() as stack:
        valkeys = [stack.enter_context(ValkeyServer.start()) for _ in key_counts]
        stores = [stack.enter_context(StoreServer.start(spin=False)) for _ in key_counts]
        for valkey, store, key_count in zip(valkeys, stores, key_counts, strict=True):
            fill_valkey(valkey.port, key_count)
            fill_store(store.url(), key_count)
        peer: list[tuple[float, float]] = []
        ours: list[tuple[float, float]] = []
        get_count = int(GETS_PER_ROUND_SECOND * plan.seconds)
        for _ in range(plan.round_count + 1):
            peer.append(_cpu_us(valkeys, key_counts, get_count, drive_valkey))
            ours.append(_cpu_us(stores, key_counts, get_count, drive_store))
    # The first round warmed up.
    of_peer = tuple(many / few for few, many in peer[1:])
    of_ours = tuple(many / few for few, many in ours[1:])
    growth = median(of_peer)
    yield Comparison(
        bar="CPU growth",
        work=f"GET of {FEW_KEYS:,} to {plan.key_count:,} keys",
        unit="times",
        ours=of_ours,
        limit=(growth + GROWTH_EXCESS_MAX) / growth,
        peer_name="Valkey",
        peer=of_peer,
        notes={
            "server CPU us": median(many for _, many in ours[1:]),
            "with few keys": median(few for few, _ in ours[1:]),
            "peer's server CPU us": median(many for _, many in peer[1:]),
            "peer's with few keys": median(few for few, _ in peer[1:]),
        },
    )


def drive_valkey(server: ValkeyServer, key_count: int, get_count: int) -> None:
    """Ask for random keys, all of which exist."""
    command = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(server.port), "-q"]
    command += ["-c", str(CONNECTION_COUNT), "-P", str(PIPELINE_DEPTH)]
    command += ["-n", str(get_count), "-r", str(key_count)]
    command += ["GET", f"{KEY_PREFIX.decode()}__rand_int__"]
    subprocess.run(command, check=True, timeout=300, stdout=subprocess.DEVNULL)


def drive_store(server: StoreServer, key_count: int, get_count: int) -> None:
    """The same load through capsules."""
    command = [str(COMMAND), "bench", server.url(), "--operation", "get"]
    command += ["--connections", str(CONNECTION_COUNT), "--depth", str(PIPELINE_DEPTH)]
    command += ["--count", str(get_count), "--key-count", str(key_count)]
    command += ["--key-prefix", KEY_PREFIX.decode()]
    subprocess.run(command, check=True, timeout=300, stdout=subprocess.DEVNULL)


def _cpu_us(
    servers: list[S],
    key_counts: tuple[int, int],
    get_count: int,
    drive: Callable[[S, int, int], None],
) -> tuple[float, float]:
    """CPU time of the server a GET, in us, with few keys and with many."""
    spent: list[float] = []
    for server, key_count in zip(servers, key_counts, strict=True):
        before_s = server.cpu_s()
        drive(server, key_count, get_count)
        spent.append((server.cpu_s() - before_s) * 1e6 / get_count)
    return spent[0], spent[1]
