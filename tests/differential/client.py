"""A connection over a plain socket: sends commands as given, returns replies as they come."""

import socket
from types import TracebackType
from typing import Final, Self

from tests.differential.resp import Reply, ReplyReader, encode_command

WAIT_S: Final = 10.0


class Client:
    """One connection to a server on this machine; a context manager."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    @property
    def own_address(self) -> bytes:
        """As the server sees it."""
        host, port = self._socket.getsockname()
        return f"{host}:{port}".encode()

    def call(self, *arguments: bytes) -> Reply | None:
        """Send one command and return its reply, or None where the server closed instead.

        Raises:
            TimeoutError: no reply within ten seconds.
        """
        self.send(encode_command(list(arguments)))
        return self.receive()

    def scan(self, *arguments: bytes) -> Reply | None:
        """Send a SCAN, and again with the cursor it returns, until it is through.

        Returns one reply with all keys; the first error, or None where the server closed.
        """
        keys: list[Reply] = []
        while (reply := self.call(*arguments)) is not None and reply.items is not None:
            cursor, found = reply.items
            assert cursor.text is not None
            keys += found.items or ()
            if cursor.text == b"0":
                return Reply("*", b"", items=(cursor, Reply("*", b"", items=tuple(keys))))
            arguments = arguments[0], cursor.text, *arguments[2:]
        return reply

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> Reply | None:
        try:
            return self._reader.read()
        except (EOFError, ConnectionResetError):
            return None

    def receive_rest(self, wait_s: float = 0.1) -> tuple[bytes, bool]:
        """Return what comes until nothing does for `wait_s`, and whether the server closed."""
        received = b""
        self._socket.settimeout(wait_s)
        try:
            while data := self._socket.recv(1 << 16):
                received += data
        except TimeoutError:
            return received, False
        except ConnectionResetError:
            pass
        finally:
            self._socket.settimeout(WAIT_S)
        return received, True

    def reopen(self) -> None:
        """Begin again with a new connection."""
        self._socket.close()
        self._open()

    def _open(self) -> None:
        self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=WAIT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = ReplyReader(lambda: self._socket.recv(1 << 16))
