"""A KVStrata node for measurement: `kvstrata serve`, with one shard unless that is the question."""

import sys
from pathlib import Path
from typing import Self

import kvstrata
from bench.probe import Probe
from bench.process import ServerProcess, accepts_connections, free_port

MEMORY = "4GiB"
COMMAND = Path(sys.executable).with_name("kvstrata")


class StoreServer(ServerProcess):
    """One node; `spin` is the shard's adaptive spinning and that of the clients made here."""

    def __init__(self, port: int, http_port: int, *, spin: bool, shard_count: int) -> None:
        self.port = port
        self._spin = spin
        command = [str(COMMAND), "serve", "--port", str(port), "--shards", str(shard_count)]
        command += ["--http-port", str(http_port), "--memory", MEMORY]
        command += ["--spin" if spin else "--no-spin"]
        super().__init__(f"kvstrata-{port}", command, lambda: accepts_connections(port))

    @classmethod
    def start(cls, *, spin: bool, shard_count: int = 1) -> Self:
        return cls(free_port(), free_port(), spin=spin, shard_count=shard_count)

    def url(self, *, verify: bool = True) -> str:
        """By TCP, as the peers are reached."""
        flags = f"spin={self._spin:d}&verify={verify:d}"
        return f"kvstrata://127.0.0.1:{self.port}?transport=tcp&{flags}"

    def client(self, *, verify: bool = True) -> Probe:
        """A measuring client in a process of its own."""
        return Probe(sys.executable, "kvstrata_client", ["--url", self.url(verify=verify)])

    def arena_used_bytes(self) -> int:
        """Bytes of the arena that records and values take, cells and extents together."""
        return self._count("cell_bytes") + self._count("extent_bytes")

    def loop_stall_count(self) -> int:
        """How often an event loop took longer than 200 us for one turn since the start."""
        return self._count("loop_stalls")

    def _count(self, name: str) -> int:
        with kvstrata.connect(self.url()) as store:
            shards: list[dict[str, int]] = store.admin("statistics")["shards"]
        return sum(shard[name] for shard in shards)
