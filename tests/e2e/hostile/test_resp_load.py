"""Much at once over Valkey's protocol: deep pipelines, large replies nobody reads, kills."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kvstrata import _kernel
from tests.differential.client import Client
from tests.differential.resp import encode_command
from tests.e2e.command import Node, StartNode
from tests.e2e.hostile.test_crowds import IDLE_BYTES_MAX, open_files
from tests.e2e.nodes import MIB, NodeProcess, node_process, wait_for_rest, wait_until

DEPTH = 100_000
REPLY_BYTES = 100 * MIB
# A bystander's call, on a machine that also runs the attack and other tests.
SERVED_WITHIN_S = 2.0
MANY_KEYS = 50_000


@pytest.fixture(params=[False, True], ids=["epoll", "io_uring"])
def uring(request: pytest.FixtureRequest) -> bool:
    if request.param and not _kernel.uring_is_usable():
        pytest.skip("io_uring does not work here")
    kind: bool = request.param
    return kind


@pytest.fixture(params=[(1, False), (3, True)], ids=["one shard, epoll", "three, io_uring"])
def node(request: pytest.FixtureRequest) -> Iterator[NodeProcess]:
    shard_count, wants_uring = request.param
    uring = wants_uring and _kernel.uring_is_usable()
    with node_process(shard_count=shard_count, uring=uring) as running:
        yield running
        wait_for_rest(running)


def assert_others_are_served(port: int, times: int = 20) -> None:
    with Client(port) as client:
        for number in range(times):
            begun = time.monotonic()
            client.call(b"SET", b"bystander%d" % number, b"v")
            reply = client.call(b"GET", b"bystander%d" % number)
            assert reply is not None
            assert reply.text == b"v"
            assert time.monotonic() - begun < SERVED_WITHIN_S


def receive_all(peer: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size and (part := peer.recv(1 << 18)):
        received += part
    return bytes(received)


@pytest.mark.slow  # It measures memory, of which sanitizers keep what was freed.
def test_a_pipeline_of_100_000_commands(node: NodeProcess) -> None:
    """Replies come in order, and the node holds no more than a connection may."""
    before = node.resident_bytes()
    commands = b"".join(b"SET k%d %d\r\nGET k%d\r\n" % (n, n, n) for n in range(DEPTH // 2))
    expected = b"".join(b"+OK\r\n$%d\r\n%d\r\n" % (len(str(n)), n) for n in range(DEPTH // 2))
    with socket.create_connection(("127.0.0.1", node.port), timeout=20) as peer:
        sender = threading.Thread(target=peer.sendall, args=(commands,))
        sender.start()
        assert_others_are_served(node.port)
        received = receive_all(peer, len(expected))
        sender.join()
    assert received == expected
    assert node.resident_bytes() - before < 16 * MIB


@pytest.mark.parametrize("command", ["GET", "MGET"])
def test_a_reader_of_100_mib_that_does_not_read_is_dropped(node: NodeProcess, command: str) -> None:
    with Client(node.port) as client:
        client.call(b"SET", b"large", bytes(4 * MIB))
    count = REPLY_BYTES // (4 * MIB)
    stream = (
        encode_command([b"GET", b"large"]) * count
        if command == "GET"
        else encode_command([b"MGET", *([b"large"] * count)])
    )
    before = node.resident_bytes()
    with socket.create_connection(("127.0.0.1", node.port), timeout=10) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 128 * 1024)
        peer.sendall(stream)
        assert_others_are_served(node.port)
        assert node.resident_bytes() - before < 16 * MIB
        wait_until(lambda: node.counters()["connections_dropped_slow"] == 1, 8, "dropped")
    wait_for_rest(node)


def test_a_reader_of_100_mib_that_reads_gets_all(node: NodeProcess) -> None:
    value = bytes(range(256)) * (4 * MIB // 256)
    with Client(node.port) as client:
        client.call(b"SET", b"large", value)
    expected = b"*25\r\n" + (b"$%d\r\n" % len(value) + value + b"\r\n") * 25
    with socket.create_connection(("127.0.0.1", node.port), timeout=10) as peer:
        peer.sendall(encode_command([b"MGET", *([b"large"] * 25)]))
        assert receive_all(peer, len(expected)) == expected
    assert node.counters()["connections_dropped_slow"] == 0


def test_all_keys_are_listed_while_others_are_served(node: NodeProcess) -> None:
    with socket.create_connection(("127.0.0.1", node.port), timeout=20) as peer:
        for first in range(0, MANY_KEYS, 5_000):
            numbers = range(first, first + 5_000)
            peer.sendall(b"".join(b"SET key:%d v\r\n" % n for n in numbers))
            assert receive_all(peer, 5_000 * 5) == b"+OK\r\n" * 5_000
        listing = threading.Thread(target=list_keys, args=(node.port, 3))
        listing.start()
        assert_others_are_served(node.port, 50)
        listing.join()


def list_keys(port: int, times: int) -> None:
    with Client(port) as client:
        for _ in range(times):
            reply = client.call(b"KEYS", b"key:*")
            assert reply is not None
            assert reply.items is not None
            assert len({each.text for each in reply.items}) == MANY_KEYS


@pytest.mark.slow
@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.soak)])
def test_idle_clients_cost_little_and_stay(count: int, uring: bool) -> None:
    with (
        open_files(count + 500),
        node_process(connection_count_max=count + 10, shard_count=2, uring=uring) as node,
        ExitStack() as stack,
    ):
        before = node.resident_bytes()
        idle = []
        for _ in range(count):
            idle.append(stack.enter_context(Client(node.port)))
            # At once: who has not said which protocol it speaks is soon taken for stalled.
            idle[-1].call(b"SET", b"k", b"v")
        assert node.counters()["connections_open"] == count
        # Buffers that all connections share are touched meanwhile.
        assert node.resident_bytes() - before < count * IDLE_BYTES_MAX + 8 * MIB
        time.sleep(1)  # Longer than a stalled peer may be.
        for client in idle[:: count // 50]:
            reply = client.call(b"GET", b"k")
            assert reply is not None
            assert reply.text == b"v"
        stack.close()
        wait_for_rest(node)


@pytest.fixture
def whole_node(start_node: StartNode, uring: bool, tmp_path: Path) -> Node:
    """One with all that answers CLIENT KILL."""
    file = tmp_path / "node.toml"
    file.write_text(f'[node]\nio = "{"io_uring" if uring else "epoll"}"\n')
    return start_node("--config", str(file), "--shards", "2")


def test_others_are_killed_under_load(whole_node: Node) -> None:
    port = int(whole_node.url.rpartition(":")[2])
    ended = []

    def load() -> None:
        with Client(port) as client:
            while client.call(b"SET", b"loaded", bytes(100_000)) is not None:
                pass
            ended.append(True)

    threads = [threading.Thread(target=load) for _ in range(6)]
    with Client(port) as killer:
        for thread in threads:
            thread.start()
        killed, deadline = 0, time.monotonic() + 10
        while killed < len(threads):
            reply = killer.call(b"CLIENT", b"KILL", b"TYPE", b"normal")
            assert reply is not None
            killed += reply.integer
            assert time.monotonic() < deadline
        for thread in threads:
            thread.join(10)
        assert len(ended) == len(threads)
        assert_others_are_served(port)


def test_who_kills_itself_is_told_so(whole_node: Node) -> None:
    port = int(whole_node.url.rpartition(":")[2])
    with ExitStack() as stack:
        others = [stack.enter_context(Client(port)) for _ in range(5)]
        for other in others:
            other.call(b"PING")
        killer = stack.enter_context(Client(port))
        reply = killer.call(b"CLIENT", b"KILL", b"TYPE", b"normal", b"SKIPME", b"no")
        assert reply is not None
        assert reply.integer == 6
        assert killer.receive() is None
        assert all(other.receive() is None for other in others)
