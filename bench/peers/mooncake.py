"""Mooncake Store over TCP: a master, and a holder whose segment keeps the values.

The measuring client is a third process without a segment, so values cross a socket: in the
holder's own process they would be copied locally and TCP would go unmeasured.
"""

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from bench.peers import setup
from bench.probe import Probe
from bench.process import ServerProcess, accepts_connections, free_port

SEGMENT_BYTES = 2 << 30


class MooncakeStore:
    """The two server processes; a context manager."""

    def __init__(self) -> None:
        self.master_port = free_port()
        with ExitStack() as stack:
            master = stack.enter_context(
                ServerProcess(
                    "mooncake-master",
                    [
                        str(setup.MOONCAKE_MASTER),
                        "--rpc_address=127.0.0.1",
                        f"--rpc_port={self.master_port}",
                        f"--metrics_port={free_port()}",
                    ],
                    lambda: accepts_connections(self.master_port),
                )
            )
            holder = stack.enter_context(self._holder())
            self.servers = (master, holder)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def client(self) -> Probe:
        """A measuring client in a process of its own."""
        ports = ["--port", str(free_port()), "--master-port", str(self.master_port)]
        return Probe(setup.PYTHON, "mooncake_client", ports)

    def _holder(self) -> ServerProcess:
        ready = setup.ENVIRONMENT / f"holder-{self.master_port}.ready"
        ready.unlink(missing_ok=True)
        command = [str(setup.PYTHON), "-m", "bench.peers.mooncake_holder"]
        command += ["--port", str(free_port()), "--master-port", str(self.master_port)]
        command += ["--segment-bytes", str(SEGMENT_BYTES), "--ready-file", str(ready)]
        return ServerProcess("mooncake-holder", command, ready.exists)
