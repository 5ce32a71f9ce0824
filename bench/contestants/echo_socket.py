"""Bytes there and bytes back over a bare socket: what no store on sleeping threads can be below."""

import argparse
import socket
import struct

from bench.contestants.filled import fill
from bench.contestants.loop import Contestant, serve

_HEAD = struct.Struct("<II")
# About what a capsule takes beside the value.
_REQUEST_BYTES, _REPLY_BYTES = 96, 56


class EchoSocket(Contestant):
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30.0)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reply = memoryview(bytearray(_REPLY_BYTES))

    def put(self, key: str, value: memoryview) -> None:
        del key
        self._socket.sendmsg((_HEAD.pack(len(value), _REPLY_BYTES), value))
        fill(self._socket, self._reply)

    def get_into(self, key: str, buffer: memoryview) -> int:
        del key
        self._socket.sendall(_HEAD.pack(_REQUEST_BYTES, len(buffer)) + bytes(_REQUEST_BYTES))
        fill(self._socket, buffer)
        return len(buffer)

    def delete_many(self, keys: list[str]) -> None:
        """Nothing was stored."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    serve(EchoSocket(parser.parse_args().port))
