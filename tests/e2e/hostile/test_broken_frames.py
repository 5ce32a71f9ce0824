"""Frames cut, flipped, mixed or lying: the node lives, others are served, nothing stays behind."""

import random
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.e2e.nodes import MIB, AttackedNode, attacked_node, wait_for_rest
from tests.e2e.reference_client import RawConnection, client_hello
from tests.unit.transport import golden_vectors
from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Entry, MalformedError, Request

CHUNK = 512 * 1024
REQUESTS = [data for data, _ in golden_vectors.read("requests.txt").values()]


@pytest.fixture(params=[1, 2])
def node(request: pytest.FixtureRequest) -> Iterator[AttackedNode]:
    with attacked_node(shard_count=request.param) as running:
        with RawConnection(running.port) as client:
            client.put(b"witness", b"unharmed")
        yield running
        wait_for_rest(running)
        with RawConnection(running.port) as client:
            assert client.get(b"witness") == b"unharmed"


def attack(port: int, data: bytes) -> bytes:
    """Send bytes behind a good hello, end the sending side, and return all that the node says."""
    with RawConnection(port) as client:
        with suppress(OSError):  # The node may have closed already.
            client.send(data)
            client.socket.shutdown(socket.SHUT_WR)
        said = bytearray()
        while True:
            try:
                part = client.socket.recv(1 << 16)
            except ConnectionResetError:
                part = b""
            said += part
            if not part:
                return bytes(said)


def read_completions(said: bytes) -> None:
    """Whatever was sent, what the node answers is whole and well formed."""
    while said:
        length = wire.HEADER_BYTES + wire.body_length(said)
        completion = wire.decode_completion(said[:length])
        said = said[length + completion.data_length :]


def harmful(rng: random.Random) -> bytes:
    """A few good requests with their data, of which one byte or another is not."""
    stream = bytearray()
    for _ in range(rng.randint(1, 4)):
        request = rng.choice(REQUESTS)
        length = struct.unpack_from("<Q", request, 16)[0]
        stream += request + rng.randbytes(length)
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(4)
        at = rng.randrange(min(len(stream), 2_000))
        if kind == 0:
            stream[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del stream[at:]
        elif kind == 2:
            stream[at : at + rng.randrange(64)] = rng.randbytes(rng.randrange(64))
        else:
            stream[at:at] = rng.choice(REQUESTS)
        if not stream:
            break
    return bytes(stream)


def resealed(rng: random.Random) -> bytes:
    """A request with wrong bytes under a right CRC, so that they are looked at."""
    capsule = bytearray(rng.choice(REQUESTS))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(4, len(capsule))
        capsule[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return wire.sealed(bytes(capsule[4:])) + rng.randbytes(rng.choice((0, 5, 40_000)))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_streams(node: AttackedNode, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(250):
        read_completions(attack(node.port, harmful(rng)))


@pytest.mark.parametrize("seed", range(4))
def test_lies_under_a_right_crc(node: AttackedNode, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(400):
        read_completions(attack(node.port, resealed(rng)))


@pytest.mark.parametrize("seed", range(2))
def test_damaged_hellos(node: AttackedNode, seed: int) -> None:
    rng = random.Random(seed)
    hello = client_hello("default", "x", shard=1, credits_=5).encode()
    for _ in range(300):
        damaged = bytearray(hello)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        with RawConnection(node.port, greet=False) as client:
            with suppress(OSError):
                client.send(bytes(damaged[: rng.randrange(1, len(damaged) + 1)]))
                client.socket.shutdown(socket.SHUT_WR)
            try:
                answer = client.read_hello()
            except (EOFError, ConnectionResetError):
                continue
            assert answer.second != 0
            assert answer.message


def test_random_bytes(node: AttackedNode) -> None:
    rng = random.Random(7)
    for size in (1, 15, 16, 31, 32, 1_000, 200_000):
        with RawConnection(node.port, greet=False) as client:
            with suppress(OSError):
                client.send(rng.randbytes(size))
                client.socket.shutdown(socket.SHUT_WR)
            # Most of it is taken for a Valkey client's lines, and answered with errors.
            with suppress(ConnectionResetError):
                while client.socket.recv(65_536):
                    pass
            assert client.at_end()
        attack(node.port, rng.randbytes(size))


def test_a_capsule_cut_at_every_byte_leaves_nothing(node: AttackedNode) -> None:
    for request in REQUESTS:
        for length in range(0, len(request), 3):
            assert attack(node.port, request[:length]) == b""


@pytest.mark.parametrize("size", [300, 9_000])
def test_a_put_cut_at_every_byte_leaves_no_trace(node: AttackedNode, size: int) -> None:
    value = bytes(range(1, 251)) * 40
    entry = wire.put_entry(b"cut", value[:size], CHUNK)
    stream = Request(wire.PUT, 1, [entry], size).encode() + value[:size]
    step = 1 if size < 1_000 else 37
    for length in range(0, len(stream), step):
        assert attack(node.port, stream[:length]) == b""
    wait_for_rest(node)
    with RawConnection(node.port) as client:
        assert client.get(b"cut") is None
        assert client.put(b"cut", b"now").fields["result"] == 0


@pytest.mark.parametrize("length", [2**32 - 1, 2**32, 2**40, 2**63, 2**64 - 1])
def test_lengths_of_gigabytes_cost_nothing(node: AttackedNode, length: int) -> None:
    lies = [
        Request(wire.PUT, 1, [Entry(b"k", {"value_length": length, "room": length})], length),
        Request(
            wire.PUT,
            1,
            [Entry(b"k", {"value_length": length, "room": length, "checksum_count": 2**32 - 1})],
            length,
        ),
        Request(
            wire.APPEND,
            1,
            [Entry(b"k", {"value_length": 1, "room": 1, "at": length}, [5])],
            1,
        ),
        Request(wire.GET_RANGE, 1, [Entry(b"witness", {"offset": length, "length": length})]),
        Request(200 - 128, 1, [], length),
    ]
    for lie in lies:
        said = attack(node.port, lie.encode() + bytes(100))
        read_completions(said)
        assert node.counters()["reserved_bytes"] <= 64 * MIB
    wait_for_rest(node)


def test_two_streams_mixed_into_one(node: AttackedNode) -> None:
    """Two puts whose bytes alternate, as a client with two threads and no lock would send them."""
    one = Request(wire.PUT, 1, [wire.put_entry(b"a", b"1" * 500, CHUNK)], 500).encode() + b"1" * 500
    two = Request(wire.PUT, 2, [wire.put_entry(b"b", b"2" * 500, CHUNK)], 500).encode() + b"2" * 500
    for part in (1, 7, 32, 100, 400):
        mixed = b"".join(
            one[at : at + part] + two[at : at + part] for at in range(0, len(one), part)
        )
        read_completions(attack(node.port, mixed))
        with RawConnection(node.port) as client:
            assert client.get(b"a") in (None, b"1" * 500)
            assert client.get(b"b") in (None, b"2" * 500)


def test_the_attack_can_tell_a_malformed_answer() -> None:
    with pytest.raises(MalformedError):
        read_completions(b"\x01" * 40)


def test_the_last_word_arrives_however_much_was_sent_behind_the_fault(node: AttackedNode) -> None:
    spoiled = bytearray(REQUESTS[0])
    spoiled[0] ^= 1  # Of its CRC.
    for _ in range(20):
        with RawConnection(node.port) as client:
            client.send(bytes(spoiled) + bytes(1 << 20))
            said = b""
            while part := client.socket.recv(1 << 16):  # A reset would raise.
                said += part
        assert b"CRC does not match" in said


def test_a_refused_hello_is_told_why_however_much_was_sent_behind_it(node: AttackedNode) -> None:
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", node.port), timeout=10) as client:
            client.sendall(client_hello("absent").encode() + bytes(1 << 20))
            said = b""
            while part := client.recv(1 << 16):
                said += part
        assert b"absent" in said
