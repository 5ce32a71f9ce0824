"""A KVStrata node for measurement: `kvstrata serve` with one shard, as a peer's server is."""

import sys
from pathlib import Path
from typing import Any, Self

import kvstrata
from bench.probe import Probe
from bench.process import ServerProcess, accepts_connections, free_port

MEMORY = "4GiB"
COMMAND = Path(sys.executable).with_name("kvstrata")


class StoreServer(ServerProcess):
    """One node; `spin` is the shard's adaptive spinning and that of the clients made here."""

    def __init__(self, port: int, http_port: int, *, spin: bool) -> None:
        self.port = port
        self._spin = spin
        command = [str(COMMAND), "serve", "--port", str(port), "--shards", "1"]
        command += ["--http-port", str(http_port), "--memory", MEMORY]
        command += ["--spin" if spin else "--no-spin"]
        super().__init__(f"kvstrata-{port}", command, lambda: accepts_connections(port))

    @classmethod
    def start(cls, *, spin: bool) -> Self:
        return cls(free_port(), free_port(), spin=spin)

    def url(self, *, verify: bool = True) -> str:
        return f"kvstrata://127.0.0.1:{self.port}?spin={self._spin:d}&verify={verify:d}"

    def client(self, *, verify: bool = True) -> Probe:
        """A measuring client in a process of its own."""
        return Probe(sys.executable, "kvstrata_client", ["--url", self.url(verify=verify)])

    def arena_used_bytes(self) -> int:
        """Bytes of the arena that extents of values take."""
        used: int = self._info()["memory"]["arena_used_bytes"]
        return used

    def loop_stall_count(self) -> int:
        """How often an event loop took longer than 200 us for one turn since the start."""
        count: int = self._info()["loops"]["stall_count"]
        return count

    def _info(self) -> dict[str, Any]:
        with kvstrata.connect(self.url()) as store:
            return store.info()
