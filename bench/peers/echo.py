"""The physical limit: two processes that wake each other over TCP and do nothing else.

`python -m bench.peers.echo PORT` answers each request with as many bytes as it asks for.
"""

import socket
import struct
import sys
from typing import Self

from bench.peers.setup import PYTHON
from bench.probe import Probe
from bench.process import ServerProcess, accepts_connections, free_port

HEAD = struct.Struct("<II")  # Bytes that follow in the request, and that the answer has.


class EchoServer(ServerProcess):
    """Sleeps in recv() until a request comes."""

    def __init__(self, port: int) -> None:
        self.port = port
        command = [str(PYTHON), "-m", "bench.peers.echo", str(port)]
        super().__init__(f"echo-{port}", command, lambda: accepts_connections(port))

    @classmethod
    def start(cls) -> Self:
        return cls(free_port())

    def client(self) -> Probe:
        return Probe(PYTHON, "echo_socket", ["--port", str(self.port)])


def _answer(connection: socket.socket) -> None:
    buffer = memoryview(bytearray(1 << 20))
    while received := connection.recv_into(buffer):
        while received < HEAD.size or received < HEAD.size + HEAD.unpack_from(buffer)[0]:
            count = connection.recv_into(buffer[received:])
            if count == 0:
                return
            received += count
        connection.sendall(buffer[: HEAD.unpack_from(buffer)[1]])


def _serve(port: int) -> None:
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _answer(connection)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
