"""A Valkey server for measurement: one thread, nothing written to disk."""

import re
import socket
from typing import Self

from bench.peers import setup
from bench.probe import Probe
from bench.process import ServerProcess, accepts_connections, free_port


class ValkeyServer(ServerProcess):
    """Built with libc malloc (as its package ships it): to be said beside its memory figures."""

    def __init__(self, port: int) -> None:
        self.port = port
        command = [str(setup.valkey_server()), "--port", str(port), "--bind", "127.0.0.1"]
        command += ["--save", "", "--appendonly", "no"]
        super().__init__(f"valkey-{port}", command, lambda: accepts_connections(port))

    @classmethod
    def start(cls) -> Self:
        return cls(free_port())

    def client(self, module: str) -> Probe:
        """A measuring client, `bench.contestants.MODULE`, in a process of its own."""
        return Probe(setup.PYTHON, module, ["--port", str(self.port)])

    def used_memory_bytes(self) -> int:
        """Valkey's own count, `used_memory`: values, keys and what it needs to find them."""
        match = re.search(rb"^used_memory:(\d+)", self._info(b"memory"), re.MULTILINE)
        if match is None:
            raise RuntimeError("INFO memory of Valkey has no used_memory")
        return int(match[1])

    def _info(self, section: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=10.0) as connection:
            connection.sendall(b"INFO %b\r\nQUIT\r\n" % section)
            parts = iter(lambda: connection.recv(65536), b"")
            return b"".join(parts)
