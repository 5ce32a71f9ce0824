"""Peers that are slow, silent or greedy: only they suffer from it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.e2e.nodes import MIB, AttackedNode, attacked_node, wait_for_rest, wait_until
from tests.e2e.reference_client import RawConnection, client_hello
from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Entry, Request

CHUNK = 512 * 1024
# The node waits half a second for a stalled peer and looks ten times a second.
DROPPED_WITHIN_S = 5.0
# A bystander's call, on a machine that also runs the attack and other tests.
SERVED_WITHIN_S = 2.0


@pytest.fixture(params=[1, 2])
def node(request: pytest.FixtureRequest) -> Iterator[AttackedNode]:
    with attacked_node(shard_count=request.param) as running:
        with RawConnection(running.port) as client:
            client.put(b"large", bytes(4 * MIB))
            client.put(b"small", b"value")
        yield running
        wait_for_rest(running)


def assert_others_are_served(node: AttackedNode) -> None:
    with RawConnection(node.port) as client:
        for index in range(20):
            begun = time.monotonic()
            assert client.get(b"small") == b"value"
            client.put(b"bystander%d" % index, bytes(1_000))
            assert time.monotonic() - begun < SERVED_WITHIN_S


def narrow_client(port: int, receive_bytes: int = 128 * 1024) -> RawConnection:
    """A client whose kernel takes little on its behalf."""
    client = RawConnection(port)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    return client


def flood(client: RawConnection, data: bytes) -> None:
    """Send over and over, reading nothing, until the node takes no more."""
    client.socket.settimeout(2.0)
    deadline = time.monotonic() + 15
    with suppress(OSError):  # A timeout, or the node has closed.
        while time.monotonic() < deadline:
            client.socket.send(data)


def test_a_reader_of_100_mib_that_does_not_read_is_dropped(node: AttackedNode) -> None:
    with narrow_client(node.port) as client:
        client.begin(wire.GET, [wire.get_entry(b"large", 4 * MIB)] * 25)
        assert_others_are_served(node)
        wait_until(
            lambda: node.counters()["connections_dropped_slow"] == 1, DROPPED_WITHIN_S, "dropped"
        )
    wait_for_rest(node)


def test_a_slow_reader_pins_only_what_it_reads(node: AttackedNode) -> None:
    """What is replaced and deleted meanwhile becomes free once the slow reader is gone."""
    with narrow_client(node.port) as client:
        client.begin(wire.GET, [wire.get_entry(b"large", 4 * MIB)] * 8)
        with RawConnection(node.port) as writer:
            writer.call(wire.DELETE, wire.keys_only([b"large"]))
            wait_until(lambda: node.counters()["connections_dropped_slow"] == 1, DROPPED_WITHIN_S)
            wait_until(lambda: node.counters()["extent_bytes"] < MIB, what="the extents are free")


def test_a_reader_above_the_minimum_rate_gets_everything(node: AttackedNode) -> None:
    with narrow_client(node.port) as client:
        client.begin(wire.GET, [wire.get_entry(b"large", 4 * MIB)] * 4)
        header = client.receive(wire.HEADER_BYTES)
        completion = wire.decode_completion(header + client.receive(wire.body_length(header)))
        assert completion.data_length == 16 * MIB
        for _ in range(16):
            assert client.receive(MIB) == bytes(MIB)
            time.sleep(0.1)
    assert node.counters()["connections_dropped_slow"] == 0


@pytest.mark.parametrize("command", ["get small", "scan", "stat", "unknown", "get large"])
def test_floods_of_commands_whose_answers_nobody_reads(node: AttackedNode, command: str) -> None:
    requests = {
        "get small": Request(wire.GET, 1, [wire.get_entry(b"small", 10)] * 8),
        "get large": Request(wire.GET, 1, [wire.get_entry(b"large", 4 * MIB)]),
        "scan": Request(wire.SCAN, 1, [Entry(b"", {"count": 100})]),
        "stat": Request(wire.STAT, 1, wire.keys_only([b"small"] * 32)),
        "unknown": Request(99, 1),
    }
    block = requests[command].encode() * 2_000
    with narrow_client(node.port) as client:
        sender = threading.Thread(target=flood, args=(client, block))
        sender.start()
        assert_others_are_served(node)
        sender.join()
        # Read from only as far as its answers had room, or as its credits went; then dropped.
        wait_until(lambda: dropped_count(node) == 1, DROPPED_WITHIN_S, "dropped")


def dropped_count(node: AttackedNode) -> int:
    counters = node.counters()
    closed = counters["connections_accepted"] - counters["connections_open"]
    assert counters["connections_dropped_budget"] == 0
    for_a_reason = (
        counters["connections_dropped_slow"] + counters["connections_dropped_protocol"] > 0
    )
    bystanders = 2
    return closed - bystanders if for_a_reason else 0


def test_small_commands_are_served_beside_bulk_transfers(node: AttackedNode) -> None:
    """Readers that keep every turn of the loop full do not keep the answers of others back."""
    stop = threading.Event()

    def read_bulk() -> None:
        with RawConnection(node.port) as client:
            while not stop.is_set():
                client.begin(wire.GET, [wire.get_entry(b"large", 4 * MIB)])
                header = client.receive(wire.HEADER_BYTES)
                completion = wire.decode_completion(
                    header + client.receive(wire.body_length(header))
                )
                client.receive(completion.data_length)

    readers = [threading.Thread(target=read_bulk) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        assert_others_are_served(node)
    finally:
        stop.set()
        for reader in readers:
            reader.join()


def test_a_put_that_stalls_gives_its_memory_back(node: AttackedNode) -> None:
    size = 8 * MIB
    entry = wire.put_entry(b"stalled", bytes(size), CHUNK)
    with RawConnection(node.port) as client:
        client.send(Request(wire.PUT, 1, [entry], size).encode() + bytes(100))
        wait_until(lambda: node.counters()["reserved_bytes"] >= size, what="memory reserved")
        assert_others_are_served(node)
        wait_until(lambda: node.counters()["reserved_bytes"] == 0, DROPPED_WITHIN_S, "given back")
        assert client.at_end()
    assert node.counters()["connections_dropped_slow"] == 1
    with RawConnection(node.port) as client:
        assert client.get(b"stalled") is None


def test_many_stalled_puts_do_not_keep_others_from_writing(node: AttackedNode) -> None:
    """Together they reserve more than there is; whoever sends gets the memory within the bound."""
    size = 8 * MIB
    entry = wire.put_entry(b"stalled", bytes(size), CHUNK)
    request = Request(wire.PUT, 1, [entry], size).encode()
    with ExitStack() as stack:
        for _ in range(20):
            client = stack.enter_context(RawConnection(node.port))
            client.send(request + bytes(100))
        with RawConnection(node.port) as writer:
            begun = time.monotonic()
            for index in range(8):
                assert writer.put(b"w%d" % index, bytes(MIB)).status in (0, 6, 7)
            assert time.monotonic() - begun < 20
            wait_until(lambda: node.counters()["reserved_bytes"] == 0, 20, "given back")
            wait_until(lambda: writer.put(b"after", bytes(8 * MIB)).status == 0, 20, "room again")


def test_connections_that_say_half_a_hello_are_dropped(node: AttackedNode) -> None:
    hello = client_hello().encode()
    for length in (1, 15, 16, 17, len(hello) - 1):
        with RawConnection(node.port, greet=False) as client:
            client.send(hello[:length])
            begun = time.monotonic()
            assert client.at_end()
            assert time.monotonic() - begun < DROPPED_WITHIN_S
    assert node.counters()["connections_dropped_slow"] == 5


def test_a_connection_that_was_opened_ahead_of_need_is_kept(node: AttackedNode) -> None:
    with RawConnection(node.port, greet=False) as client:
        time.sleep(1.2)  # More than twice the time that a stalled peer gets.
        assert client.greet(client_hello()).second == 0


def test_half_a_capsule_is_dropped(node: AttackedNode) -> None:
    capsule = Request(wire.EXISTS, 1, wire.keys_only([b"k" * 1_000] * 100)).encode()
    for length in (1, 31, 32, 33, len(capsule) - 1):
        with RawConnection(node.port) as client:
            client.send(capsule[:length])
            assert client.at_end()
    assert node.counters()["connections_dropped_slow"] == 5


def test_an_idle_connection_is_kept(node: AttackedNode) -> None:
    with RawConnection(node.port) as client:
        client.put(b"k", b"v")
        time.sleep(1.2)  # More than twice the time that a stalled peer gets.
        assert client.get(b"k") == b"v"


def test_a_busy_client_whose_capsules_lie_across_reads_is_kept(node: AttackedNode) -> None:
    """At any moment it is in the middle of a capsule, yet it never stalls."""
    keys = wire.keys_only([b"k" * 900] * 500)
    capsule = Request(wire.EXISTS, 1, keys).encode()
    with RawConnection(node.port) as client:
        client.send(capsule[:1_000])
        deadline = time.monotonic() + 2.0
        while time.monotonic() < deadline:
            client.send(capsule[1_000:] + capsule[:1_000])
            assert client.read_completion()[0].status == 0
    assert node.counters()["connections_dropped_slow"] == 0


def test_half_capsules_of_many_connections_are_bounded() -> None:
    with attacked_node(buffer_bytes_max=4 * MIB, stall_ms_max=10_000) as node, ExitStack() as stack:
        capsule = Request(wire.EXISTS, 1, wire.keys_only([b"k" * 2_000] * 500)).encode()
        for _ in range(40):
            client = stack.enter_context(RawConnection(node.port))
            try:
                client.send(capsule[:-1])
            except (BrokenPipeError, ConnectionResetError):
                continue
        wait_until(lambda: node.counters()["connections_dropped_budget"] >= 30)
        assert node.counters()["buffered_bytes"] <= 4 * MIB
        with RawConnection(node.port) as client:
            assert client.put(b"k", b"v").status == 0
    # The fixture's wait is not for this node: its connections are closed by now.


def test_clients_that_vanish_with_answers_due(node: AttackedNode) -> None:
    for _ in range(50):
        client = RawConnection(node.port)
        client.begin(wire.GET, [wire.get_entry(b"large", 4 * MIB)] * 4)
        client.socket.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00" + bytes(4)
        )
        client.close()  # With a reset instead of an orderly end.
    assert_others_are_served(node)
