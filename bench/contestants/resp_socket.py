"""RESP over a bare socket, received straight into the caller's memory.

The fastest that a Python client of Valkey can be for a value whose size is known: a library
client costs half as much again and more, so measuring one hides the server.
"""

import argparse
import socket

from bench.contestants.filled import fill
from bench.contestants.loop import Contestant, serve


class RespSocket(Contestant):
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30.0)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = memoryview(bytearray(16))
        self._tail = memoryview(bytearray(2))

    def put(self, key: str, value: memoryview) -> None:
        head = b"*3\r\n$3\r\nSET\r\n$%d\r\n%b\r\n$%d\r\n" % (len(key), key.encode(), len(value))
        self._send(head, value, b"\r\n")
        self._expect(b"+OK\r\n")

    def get_into(self, key: str, buffer: memoryview) -> int:
        self._socket.sendall(b"*2\r\n$3\r\nGET\r\n$%d\r\n%b\r\n" % (len(key), key.encode()))
        self._expect(b"$%d\r\n" % len(buffer), buffer, self._tail)
        return len(buffer)

    def delete_many(self, keys: list[str]) -> None:
        for key in keys:
            self._socket.sendall(b"*2\r\n$3\r\nDEL\r\n$%d\r\n%b\r\n" % (len(key), key.encode()))
            self._expect(b":1\r\n")

    def _send(self, *parts: bytes | memoryview) -> None:
        sent = self._socket.sendmsg(parts)
        for part in parts:
            self._socket.sendall(part[sent:])
            sent = max(0, sent - len(part))

    def _expect(self, reply: bytes, *rest: memoryview) -> None:
        """Receive `reply` and what follows it, in one call if it is all there."""
        head = self._head[: len(reply)]
        parts = (head, *rest)
        received = self._socket.recvmsg_into(parts)[0]
        for part in parts:
            fill(self._socket, part[received:])
            received = max(0, received - len(part))
        if head != reply:
            raise RuntimeError(f"expected {reply!r} of the server, got {bytes(head)!r}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    serve(RespSocket(parser.parse_args().port))
