"""Memory of a connection of Valkey's protocol on which nothing happens."""

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

from bench.peers.valkey import ValkeyServer
from bench.record import Comparison, Plan
from bench.resp import Server
from bench.store import StoreServer

CONNECTION_COUNT = 10_000  # Also the most that Valkey admits as it comes.
LIMIT = 0.5
# Files of this process that are not such connections.
OTHER_FILE_COUNT = 200
# Valkey looks through its clients in the background, and takes back what idle ones hold.
SETTLE_S = 3.0
PING, PONG = b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"


def compare(plan: Plan) -> Iterator[Comparison]:
    """Growth of the resident set; one crowd each, since memory does not vary between rounds."""
    del plan
    _allow_files(CONNECTION_COUNT + OTHER_FILE_COUNT)
    with ValkeyServer.start() as valkey:
        of_peer = _growth_bytes(valkey)
    with StoreServer.start(spin=False) as store:
        of_ours = _growth_bytes(store)
    yield Comparison(
        bar="RESP idle connections",
        work=f"{CONNECTION_COUNT:,} idle connections: resident memory of each",
        unit="bytes",
        ours=(of_ours / CONNECTION_COUNT,),
        limit=LIMIT,
        peer_name="Valkey",
        peer=(of_peer / CONNECTION_COUNT,),
    )


def _growth_bytes(server: Server) -> int:
    """How much larger the resident set is when the whole crowd is there and rests."""
    _connect(server.port).close()  # What only the first connection needs is not counted.
    time.sleep(SETTLE_S)  # A node takes its first memory in the background.
    before = sum(server.resident_bytes().values())
    with ExitStack() as stack:
        for _ in range(CONNECTION_COUNT):
            stack.enter_context(_connect(server.port))
        time.sleep(SETTLE_S)
        return sum(server.resident_bytes().values()) - before


def _connect(port: int) -> socket.socket:
    """A connection whose protocol the server knows, as it has answered on it."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=10.0)
    connection.sendall(PING)
    if (reply := connection.recv(1024)) != PONG:
        connection.close()
        raise RuntimeError(f"the server on port {port} answered PING with {reply!r}")
    return connection


def _allow_files(count: int) -> None:
    """Let this process open `count` files.

    Raises:
        RuntimeError: only root may allow so many.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        raise RuntimeError(
            f"{count} open files are needed and {hard} allowed: raise it with `ulimit -Hn {count}`"
        )
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
