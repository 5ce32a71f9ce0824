"""Runs an ASGI application in a thread of this process."""

import asyncio
import socket
import threading
from typing import Final

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from kvstrata.store import limits
from kvstrata.store.config import HttpConfig
from kvstrata.store.errors import InternalError

_EXCHANGE_S_MAX: Final = 10.0
_START_S_MAX: Final = 10.0
_STOP_S_MAX: Final = 2.0


class HttpServer:
    """Listens from its construction on.

    Raises:
        OSError: the address cannot be listened on.
    """

    def __init__(self, api: FastAPI, config: HttpConfig) -> None:
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        try:
            self._socket = socket.create_server((config.host, config.port), family=family)
        except OSError as error:
            raise OSError(
                error.errno,
                f"cannot listen for HTTP on {config.host} port {config.port}: {error.strerror};"
                " choose another --http-port, or 0 for any",
            ) from error
        self._host = config.host
        self._started = threading.Event()
        self._server = _Server(
            uvicorn.Config(
                api,
                http=_BoundedProtocol,
                ws="none",
                log_config=None,  # The process's own.
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=1,
            ),
            self._started,
        )
        self._thread = threading.Thread(target=self._serve, name="kvstrata-http", daemon=True)

    @property
    def url(self) -> str:
        """Where it listens, with the port that the system chose if that was left to it."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._socket.getsockname()[1]}"

    def start(self) -> None:
        """Begin to answer.

        Raises:
            InternalError: the server ended at once, or took too long.
        """
        self._thread.start()
        if not self._started.wait(_START_S_MAX):
            raise InternalError(f"HTTP on {self.url} did not start within {_START_S_MAX:.0f} s")

    def stop(self) -> None:
        """Answer what is under way, as far as that takes no more than two seconds, and end."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_STOP_S_MAX)
        self._socket.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])


class _Server(uvicorn.Server):
    """Tells when it has started; uvicorn itself would have to be asked again and again."""

    def __init__(self, config: uvicorn.Config, started: threading.Event) -> None:
        super().__init__(config)
        self._has_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._has_started.set()


class _BoundedProtocol(H11Protocol):
    """One connection. uvicorn bounds neither how many there are, nor how long a peer may take.

    From the start of the connection, or the end of the answer before, a peer has ten seconds to
    send a request and to take in its answer. Beyond the limit the connection that has taken longest
    goes: refusing the new one would let a few that stall keep probes out.
    """

    _deadline: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._deadline = self.loop.call_later(_EXCHANGE_S_MAX, transport.abort)
        if len(self.connections) > limits.HTTP_CONNECTION_COUNT_MAX:
            others = (each for each in self.connections if isinstance(each, _BoundedProtocol))
            slowest = min(others, key=lambda each: each._deadline.when())
            self.connections.discard(slowest)
            slowest.transport.abort()

    def on_response_complete(self) -> None:
        self._deadline.cancel()
        self._deadline = self.loop.call_later(_EXCHANGE_S_MAX, self.transport.abort)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        super().connection_lost(exc)
