"""A node's UNIX socket: who comes by it, what is told about them, and what crashes leave behind."""

import asyncio
import re
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

import pytest

import kvstrata
from tests.e2e.command import Node, StartNode, run, wait_for

LARGE = bytes(range(256)) * (20 << 12)  # 20 MiB: more than any socket's buffers hold.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "node.sock"


@pytest.fixture
def listening(start_node: StartNode, tmp_path: Path, path: Path) -> Node:
    return start(start_node, tmp_path, path)


def start(start_node: StartNode, tmp_path: Path, path: Path, *arguments: str) -> Node:
    file = tmp_path / "node.toml"
    file.write_text(f'[node]\nunix_path = "{path}"\n')
    return start_node("--config", str(file), "--memory", "96MiB", *arguments)


def test_both_clients_find_it_and_use_it_for_everything(listening: Node, path: Path) -> None:
    with kvstrata.connect(listening.url, transport="unix") as store:
        assert store.transport == ("unix", f"the node is on this host, at {path}")
        store.put("large", LARGE)
        buffer = bytearray(len(LARGE))
        assert store.get_into("large", buffer) == len(LARGE)
        assert buffer == LARGE

    async def talk() -> bytes | None:
        async with kvstrata.connect_async(listening.url, transport="unix") as store:
            assert store.transport.name == "unix"
            await store.put_many({f"{i}": LARGE[:i] for i in range(0, 1 << 18, 1 << 12)})
            return await store.get("large")

    assert asyncio.run(talk()) == LARGE


def test_info_and_metrics_tell_what_carries_the_connections(listening: Node, path: Path) -> None:
    found = listening.run("info", "--json").json()
    assert found["unix_path"] == str(path)
    assert found["transport"]["name"] == "shm"
    text = listening.run("info").text
    assert re.search(rf"UNIX socket +{path}", text)
    assert re.search(r"connections +0 tcp, 0 unix, 1 shm", text)
    by_tcp, by_unix = (f"{listening.url}?transport={name}" for name in ("tcp", "unix"))

    def counted() -> set[str]:
        with urlopen(f"{listening.http}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {line for line in lines if line.startswith("kvstrata_connections_open{")}

    urls = (by_tcp, by_tcp, by_tcp, by_unix, by_unix, listening.url)
    with ExitStack() as stack:
        for url in urls:
            stack.enter_context(kvstrata.connect(url))
        tcp, unix, shm = (
            f'kvstrata_connections_open{{transport="{name}"}}' for name in ("tcp", "unix", "shm")
        )
        wait_for(lambda: counted() == {f"{tcp} 3.0", f"{unix} 2.0", f"{shm} 1.0"})


def test_a_crash_leaves_a_socket_that_the_next_start_takes_over(
    start_node: StartNode, tmp_path: Path, path: Path
) -> None:
    node = start(start_node, tmp_path, path)
    port = node.url.rpartition(":")[2]
    with kvstrata.connect(node.url) as store:
        store.put("key", b"value")
        node.signal(signal.SIGKILL)
        node.wait()
        assert path.is_socket()
        with pytest.raises(kvstrata.UnavailableError):
            store.get("key")
        again = start(start_node, tmp_path, path, "--port", port)
        assert store.get("key") is None
        assert store.transport.name == "shm"
        again.signal(signal.SIGTERM)
        again.wait()
    assert not path.exists()


def test_of_two_nodes_on_one_path_the_second_says_so_and_ends(
    listening: Node, tmp_path: Path, path: Path
) -> None:
    file = tmp_path / "node.toml"
    second = run("serve", "--port", "0", "--no-http", "--memory", "16MiB", "--config", file)
    assert second.code != 0
    assert f"listens on the UNIX socket {path}" in second.error
    with kvstrata.connect(listening.url, transport="unix") as store:
        store.put("key", b"value")


def test_a_path_that_leads_to_another_node_is_not_taken(
    listening: Node, start_node: StartNode, path: Path
) -> None:
    """As where two containers have the same path."""
    other_path = path.with_name("other.sock")
    other = start(start_node, path.parent, other_path)
    other_path.rename(path)
    with kvstrata.connect(listening.url) as store:
        assert store.transport == ("tcp", f"{path} leads to another node")
        store.put("key", b"value")
    with kvstrata.connect(other.url) as store:
        assert store.get("key") is None


def test_an_idle_peer_that_vanishes_and_one_that_only_closes_its_side(
    listening: Node, path: Path
) -> None:
    """Both ends of a UNIX stream are told otherwise than TCP's: nothing of it may be left."""
    for _ in range(50):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            client.shutdown(socket.SHUT_WR)
            assert client.makefile("rb").read() == b"+PONG\r\n"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"PING\r\nPING\r\n")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))

    def open_now() -> int:
        counters = listening.run("info", "--json").json()["statistics"]
        return int(counters["shards"][0]["connections_open"])

    wait_for(lambda: open_now() == 1)  # Its own.
