"""Values of every length that is special, through every command that takes or returns them."""

import random
import threading
from collections.abc import Iterator

import pytest

from tests.differential.client import Client
from tests.differential.resp import encode_command
from tests.e2e.nodes import MIB, AttackedNode, attacked_node, wait_for_rest

KIB = 1024
CHUNK = 512 * KIB
# Around what is received as it comes, what a record holds, what a chunk holds; and several chunks.
LENGTHS = [0, 1, 8 * KIB, 16_383, 16_384, 16_385, CHUNK - 1, CHUNK, CHUNK + 1, 3 * MIB + 5]


@pytest.fixture(scope="module", params=[1, 4])
def node(request: pytest.FixtureRequest) -> Iterator[AttackedNode]:
    with attacked_node(shard_count=request.param, memory_bytes=256 * MIB) as running:
        yield running
        wait_for_rest(running)


@pytest.fixture(params=[2, 3])
def client(node: AttackedNode, request: pytest.FixtureRequest) -> Iterator[Client]:
    with Client(node.port) as opened:
        opened.call(b"HELLO", b"%d" % request.param)
        opened.call(b"FLUSHALL")
        yield opened


def text(client: Client, *arguments: bytes) -> bytes | None:
    reply = client.call(*arguments)
    assert reply is not None
    assert not reply.is_error, reply.raw
    return reply.text


def texts(client: Client, *arguments: bytes) -> list[bytes | None]:
    reply = client.call(*arguments)
    assert reply is not None
    assert reply.items is not None, reply.raw
    return [item.text for item in reply.items]


@pytest.mark.parametrize("length", LENGTHS)
def test_what_was_stored_comes_back(client: Client, length: int) -> None:
    one, other = (random.Random(seed).randbytes(length) for seed in (1, 2))
    stores: list[tuple[bytes, ...]] = [
        (b"SET", b"k", one),
        (b"SET", b"k", one, b"EX", b"100"),
        (b"SETEX", b"k", b"100", one),
        (b"PSETEX", b"k", b"100000", one),
        (b"MSET", b"k", one, b"l", other),
        (b"SETNX", b"new", one),
        (b"MSETNX", b"{m}1", one, b"{m}2", other),
        (b"MSETEX", b"2", b"{n}1", one, b"{n}2", other, b"EX", b"100"),
    ]
    for arguments in stores:
        text(client, *arguments)
        key = next(word for word in arguments[1:] if not word.isdigit())
        assert text(client, b"GET", key) == one, arguments[0]
    assert texts(client, b"MGET", b"{m}2", b"{n}2", b"none", b"k") == [other, other, None, one]


@pytest.mark.parametrize("length", LENGTHS)
def test_what_is_read_and_changed(client: Client, length: int) -> None:
    one, other = (random.Random(seed).randbytes(length) for seed in (1, 2))
    text(client, b"SET", b"k", one)
    assert text(client, b"STRLEN", b"k") == b"%d" % length
    assert text(client, b"GETRANGE", b"k", b"1", b"-2") == one[1:-1]
    assert text(client, b"GETRANGE", b"k", b"-20000", b"-1") == one[-20_000:]
    assert text(client, b"GETEX", b"k", b"EX", b"100") == one
    assert text(client, b"SET", b"k", other, b"IFEQ", one) == b"OK"
    assert text(client, b"SET", b"k", one, b"GET") == other
    assert text(client, b"GETSET", b"k", other) == one
    assert text(client, b"DELIFEQ", b"k", other + b"!") == b"0"
    assert text(client, b"APPEND", b"k", one) == b"%d" % (2 * length)
    assert text(client, b"GET", b"k") == other + one
    assert text(client, b"ECHO", one) == one
    assert text(client, b"GETDEL", b"k") == other + one
    assert text(client, b"EXISTS", b"k") == b"0"


def test_within_a_transaction(client: Client) -> None:
    value = random.Random(3).randbytes(MIB + 1)
    text(client, b"MULTI")
    for arguments in [(b"SET", b"k", value), (b"GET", b"k"), (b"APPEND", b"k", b"x")]:
        assert text(client, *arguments) == b"QUEUED"
    assert texts(client, b"EXEC") == [b"OK", value, b"%d" % (MIB + 2)]


def test_a_pipeline_that_is_cut_anywhere(client: Client) -> None:
    """Sent in pieces of any size, while the replies are read."""
    chance = random.Random(4)
    values = [chance.randbytes(length) for length in LENGTHS * 2]
    stream = b"".join(
        encode_command([b"SET", b"k%d" % (number % 7), value])
        + encode_command([b"GET", b"k%d" % (number % 7)])
        for number, value in enumerate(values)
    )

    def send() -> None:
        at = 0
        while at < len(stream):
            size = chance.choice([1, 3, 100, 16_384, 70_000, MIB])
            client.send(stream[at : at + size])
            at += size

    sender = threading.Thread(target=send)
    sender.start()
    for value in values:
        stored, read = client.receive(), client.receive()
        assert stored is not None
        assert stored.text == b"OK"
        assert read is not None
        assert read.text == value
    sender.join(timeout=10)
