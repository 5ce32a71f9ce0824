"""Receiving as many bytes as a buffer has, for contestants on bare sockets."""

import socket


def fill(connection: socket.socket, buffer: memoryview) -> None:
    """Receive until the buffer is full.

    Raises:
        ConnectionError: the server closed the connection before.
    """
    received = 0
    while received < len(buffer):
        count = connection.recv_into(buffer[received:])
        if count == 0:
            raise ConnectionError("the server closed the connection")
        received += count
