"""What a peer of the HTTP server may take: a number of connections, and time."""

import contextlib
import socket
import time
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI, Response

from kvstrata.cluster import http_server
from kvstrata.cluster.http_server import HttpServer
from kvstrata.store import limits
from kvstrata.store.config import HttpConfig

LARGE = bytes(32 << 20)  # More than socket buffers hold.


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    monkeypatch.setattr(limits, "HTTP_CONNECTION_COUNT_MAX", 4)
    monkeypatch.setattr(http_server, "_EXCHANGE_S_MAX", 1.0)
    api = FastAPI()

    @api.get("/small")
    async def small() -> str:
        return "small"

    @api.get("/large")
    async def large() -> Response:
        return Response(LARGE)

    server = HttpServer(api, HttpConfig(port=0))
    server.start()
    yield server
    server.stop()


@contextlib.contextmanager
def connected(server: HttpServer, data: bytes) -> Iterator[socket.socket]:
    """A connection on which so much of a request was sent."""
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        yield connection


def status(server: HttpServer) -> int:
    with httpx.Client(timeout=20, trust_env=False) as client:
        return client.get(f"{server.url}/small").status_code


def received_until_closed(connection: socket.socket) -> int:
    """Bytes that come until the server closes; it must."""
    received = 0
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(1 << 20):
            received += len(data)
    return received


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET /small HTTP/1.1\r\nHo",
        b"GET /small HTTP/1.1\r\nHost: a\r\n\r\nGET /sm",
    ],
    ids=["nothing", "half_a_request", "half_a_second_request"],
)
def test_a_request_has_to_arrive_in_time(server: HttpServer, data: bytes) -> None:
    started = time.monotonic()
    with connected(server, data) as connection:
        received_until_closed(connection)
        assert 0.9 < time.monotonic() - started < 4


def trickle(connection: socket.socket) -> None:
    for _ in range(100):
        connection.sendall(b"X-A: b\r\n")
        time.sleep(0.1)


def test_a_request_that_trickles_in_is_cut_off(server: HttpServer) -> None:
    started = time.monotonic()
    with connected(server, b"GET /small HTTP/1.1\r\n") as connection:
        with pytest.raises(ConnectionError):
            trickle(connection)
        assert time.monotonic() - started < 4


def test_an_answer_has_to_be_taken_in_time(server: HttpServer) -> None:
    with connected(server, b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n") as connection:
        time.sleep(2.5)
        assert received_until_closed(connection) < len(LARGE)
    assert status(server) == 200


def test_a_connection_in_use_is_kept(server: HttpServer) -> None:
    peers = set()
    with httpx.Client(timeout=20, trust_env=False) as client:
        for _ in range(5):
            response = client.get(f"{server.url}/small")
            assert response.status_code == 200
            peers.add(response.extensions["network_stream"].get_extra_info("client_addr"))
            time.sleep(0.4)
    assert len(peers) == 1


def test_connections_that_stall_keep_nobody_out(server: HttpServer) -> None:
    with contextlib.ExitStack() as stack:
        half = b"GET /small HTTP/1.1\r\nHo"
        stalled = [stack.enter_context(connected(server, half)) for _ in range(20)]
        assert status(server) == 200
        for connection in stalled[:16]:  # At most four are there at a time.
            connection.settimeout(0.5)
            assert received_until_closed(connection) == 0
