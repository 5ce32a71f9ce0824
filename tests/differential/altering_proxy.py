"""Stands before a server and alters what it replies: a difference that a comparison must find."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def altering_proxy(port: int, reply: bytes, altered: bytes) -> Iterator[int]:
    """Relay connections to `port`, with `altered` for `reply`; gives the port to connect to."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        opened: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    server = socket.create_connection(("127.0.0.1", port))
                    opened.extend((client, server))
                    threading.Thread(target=relay, args=(client, server, b"", b"")).start()
                    threading.Thread(target=relay, args=(server, client, reply, altered)).start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            # A listener that is only closed leaves its thread in accept().
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=5)
            for each in opened:
                each.close()


def relay(source: socket.socket, sink: socket.socket, old: bytes, new: bytes) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data.replace(old, new) if old else data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
