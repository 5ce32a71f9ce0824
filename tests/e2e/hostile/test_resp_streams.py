"""Valkey's protocol cut, lying, or from who vanishes: the node lives, nothing stays behind."""

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest

from kvstrata import _kernel
from tests.differential.client import Client
from tests.differential.resp import encode_command
from tests.e2e.nodes import MIB, AttackedNode, attacked_node, wait_for_rest, wait_until

WITNESS = b"witness", b"unharmed"
KINDS = [
    False,
    pytest.param(
        True,
        marks=pytest.mark.skipif(
            not _kernel.uring_is_usable(), reason="io_uring does not work here"
        ),
    ),
]


@pytest.fixture(params=KINDS, ids=["epoll", "io_uring"])
def uring(request: pytest.FixtureRequest) -> bool:
    kind: bool = request.param
    return kind


@pytest.fixture(params=[1, 3], ids=["one shard", "three shards"])
def node(request: pytest.FixtureRequest, uring: bool) -> Iterator[AttackedNode]:
    with attacked_node(shard_count=request.param, uring=uring) as running:
        with Client(running.port) as client:
            client.call(b"SET", *WITNESS)
        yield running
        wait_for_rest(running)
        with Client(running.port) as client:
            reply = client.call(b"GET", WITNESS[0])
            assert reply is not None
            assert reply.text == WITNESS[1]


def attack(port: int, data: bytes) -> bytes:
    """Send bytes, end the sending side, and return all that the node says."""
    said = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        with suppress(OSError):  # The node may have closed already.
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            while part := peer.recv(1 << 16):
                said += part
    return bytes(said)


def test_who_ends_the_sending_side_gets_all_replies(node: AttackedNode) -> None:
    for count in (1, 20, 3_000):
        lines = b"".join(b"SET key%d value\r\n" % number for number in range(count))
        assert attack(node.port, lines + b"MGET key0 witness\r\nSET half") == (
            b"+OK\r\n" * count + b"*2\r\n$5\r\nvalue\r\n$8\r\nunharmed\r\n"
        )


def test_who_ends_the_sending_side_within_a_transaction_is_gone(node: AttackedNode) -> None:
    assert attack(node.port, b"MULTI\r\nSET key value\r\n") == b"+OK\r\n+QUEUED\r\n"
    wait_until(lambda: node.counters()["connections_open"] == 0, 5, "closed")


@pytest.mark.parametrize(
    ("last", "answer"),
    [
        (b"QUIT\r\nPING\r\n", b"+OK\r\n"),
        (b"*1\r\nlie\r\n", b"-ERR Protocol error: expected '$', got 'l'\r\n"),
    ],
    ids=["quits", "lies"],
)
def test_who_ends_the_conversation_gets_all_replies(
    node: AttackedNode, last: bytes, answer: bytes
) -> None:
    """Those too that other shards are still making: the node's end of the stream waits for them."""
    for count in (1, 20, 300):
        lines = b"".join(b"SET key%d value\r\n" % number for number in range(count))
        with socket.create_connection(("127.0.0.1", node.port), timeout=10) as peer:
            peer.sendall(lines + last)
            said = bytearray()
            while part := peer.recv(1 << 16):
                said += part
        assert bytes(said) == b"+OK\r\n" * count + answer


def test_transactions_that_follow_each_other_closely(node: AttackedNode) -> None:
    """What one waits for is not what the one before it brings home."""
    for number in range(20):
        watch = b"WATCH key%d\r\n" % number
        once = b"MULTI\r\nGET key%d\r\nEXEC\r\n%sMULTI\r\nDISCARD\r\n" % (number, watch)
        answers = b"+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n+OK\r\n+OK\r\n+OK\r\n"
        assert attack(node.port, once * 50) == answers * 50


def vanish(peer: socket.socket) -> None:
    """Close with a reset instead of an orderly end."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def value_of(port: int, key: bytes) -> bytes | None:
    with Client(port) as client:
        reply = client.call(b"GET", key)
        assert reply is not None
        return reply.text


def test_commands_cut_at_every_byte(node: AttackedNode) -> None:
    command = encode_command([b"SET", b"cut", bytes(range(256))])
    for length in range(len(command)):
        assert attack(node.port, command[:length]) == b""
    assert value_of(node.port, b"cut") is None


def test_arguments_split_over_reads(node: AttackedNode) -> None:
    stream = encode_command([b"SET", b"split", b"a\r\nb"]) + encode_command([b"GET", b"split"])
    expected = b"+OK\r\n$4\r\na\r\nb\r\n"
    for step in (1, 2, 7):
        with socket.create_connection(("127.0.0.1", node.port), timeout=10) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(0, len(stream), step):
                peer.sendall(stream[at : at + step])
            said = b""
            while len(said) < len(expected):
                said += peer.recv(1 << 16)
            assert said == expected


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (b"*2147483648\r\n", b"invalid multibulk length"),
        (b"*99999999999999999999\r\n", b"invalid multibulk length"),
        (b"*2\r\n$3\r\nGET\r\n$536870913\r\n", b"invalid bulk length"),
        (b"*2\r\n$3\r\nGET\r\n$18446744073709551615\r\n", b"invalid bulk length"),
        (b"*2\r\n$3\r\nGET\r\n$-1\r\n", b"invalid bulk length"),
        (b"*1\r\n:4\r\n", b"expected '$', got ':'"),
        (b"*1\r\n$4\r\nPINGxx", b"invalid CRLF"),
        (b"GET 'open\r\n", b"unbalanced quotes"),
        (b"G" * 70_000, b"too big inline request"),
    ],
)
def test_lies_about_lengths_are_told_and_cost_nothing(
    node: AttackedNode, lie: bytes, words: bytes
) -> None:
    said = attack(node.port, b"PING\r\n" + lie + b"PING\r\n" * 10)
    assert said.startswith(b"+PONG\r\n-ERR Protocol error: ")
    assert words in said
    assert said.count(b"PONG") == 1
    assert node.counters()["reserved_bytes"] == 0


def test_values_announced_and_never_sent_give_their_memory_back(node: AttackedNode) -> None:
    """Within the bound for who stalls, though the peers live on."""
    announced = b"*3\r\n$3\r\nSET\r\n$7\r\nstalled\r\n$%d\r\n" % (8 * MIB) + bytes(100_000)
    peers = []
    for _ in range(3):
        peer = socket.create_connection(("127.0.0.1", node.port), timeout=10)
        peer.sendall(announced)
        peers.append(peer)
    wait_until(lambda: node.counters()["connections_dropped_slow"] == len(peers), 10, "dropped")
    wait_until(lambda: node.counters()["reserved_bytes"] == 0, 5, "given back")
    assert value_of(node.port, b"stalled") is None
    for peer in peers:
        peer.close()


@pytest.mark.parametrize("begun", ["", "multi", "watch and multi"])
@pytest.mark.parametrize("ends", [vanish, socket.socket.close])
def test_who_dies_in_a_large_set_leaves_the_old_value(
    node: AttackedNode, begun: str, ends: object
) -> None:
    assert callable(ends)
    with Client(node.port) as client:
        client.call(b"SET", b"victim", b"old")
    opening = {"": b"", "multi": b"MULTI\r\n", "watch and multi": b"WATCH victim\r\nMULTI\r\n"}
    whole = encode_command([b"SET", b"victim", bytes(4 * MIB)])
    for cut in (len(whole) // 2, len(whole) - 1, 40):
        peer = socket.create_connection(("127.0.0.1", node.port), timeout=10)
        peer.sendall(opening[begun] + whole[:cut])
        ends(peer)
    wait_for_rest(node)
    assert value_of(node.port, b"victim") == b"old"


def test_who_dies_before_exec_has_done_nothing(node: AttackedNode) -> None:
    queued = b"WATCH dead\r\nMULTI\r\nSET dead 1\r\nINCR dead\r\n"
    for _ in range(50):
        peer = socket.create_connection(("127.0.0.1", node.port), timeout=10)
        peer.sendall(queued)
        vanish(peer)
    assert attack(node.port, queued) == b"+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n"
    wait_for_rest(node)
    assert value_of(node.port, b"dead") is None


def test_storms_of_connections(node: AttackedNode) -> None:
    before = node.counters()["connections_accepted"]
    for number in range(300):
        peer = socket.create_connection(("127.0.0.1", node.port), timeout=10)
        if number % 3:
            peer.sendall(b"PING\r\n" * (number % 5))
        vanish(peer)
    wait_for_rest(node)
    assert node.counters()["connections_accepted"] - before <= 300
    assert attack(node.port, b"PING\r\nQUIT\r\nPING\r\n") == b"+PONG\r\n+OK\r\n"
