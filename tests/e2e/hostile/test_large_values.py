"""Large values under way, which other threads move than the loop's, and ends of every kind."""

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.e2e.nodes import MIB, AttackedNode, attacked_node, wait_for_rest
from tests.e2e.reference_client import RawConnection
from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Request

CHUNK = 512 * 1024
SIZE = 4 * MIB
VALUE = random.Random(7).randbytes(SIZE)
SERVED_WITHIN_S = 5.0


@pytest.fixture(params=[1, 2])
def node(request: pytest.FixtureRequest) -> Iterator[AttackedNode]:
    with attacked_node(shard_count=request.param) as running:
        with RawConnection(running.port) as client:
            client.put(b"large", VALUE)
        yield running


def reset(client: RawConnection) -> None:
    """Vanish without a word: the peer's next read or write fails."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def half_a_put(client: RawConnection, key: bytes, sent_bytes: int) -> None:
    entry = wire.put_entry(key, VALUE, CHUNK)
    client.send(Request(wire.PUT, 1, [entry], SIZE).encode() + VALUE[:sent_bytes])


def test_peers_that_vanish_in_the_middle(node: AttackedNode) -> None:
    chance = random.Random(3)
    for round_number in range(15):
        with ExitStack() as stack:
            readers = [stack.enter_context(RawConnection(node.port)) for _ in range(3)]
            writers = [stack.enter_context(RawConnection(node.port)) for _ in range(2)]
            for reader in readers:
                reader.begin(wire.GET, [wire.get_entry(b"large", SIZE)] * 3)
                reader.receive(chance.randrange(1, 6 * MIB))
            for writer in writers:
                half_a_put(writer, b"half", chance.randrange(1, SIZE))
            for client in readers + writers:
                if chance.random() < 0.5:
                    reset(client)
                else:
                    client.close()
        with RawConnection(node.port) as client:
            assert client.get(b"large") == VALUE, round_number
            assert client.get(b"half") is None
    wait_for_rest(node)


def test_peers_that_read_nothing_hold_up_no_other(node: AttackedNode) -> None:
    """There is one thread for the bulk of a loop: it must never wait for a peer."""
    with ExitStack() as stack:
        for _ in range(8):
            idle = stack.enter_context(RawConnection(node.port))
            idle.begin(wire.GET, [wire.get_entry(b"large", SIZE)] * 8)
            half_a_put(stack.enter_context(RawConnection(node.port)), b"half", MIB)
        with RawConnection(node.port) as client:
            begun = time.monotonic()
            assert client.get(b"large") == VALUE
            client.put(b"another", VALUE)
            assert time.monotonic() - begun < SERVED_WITHIN_S
    wait_for_rest(node)


@pytest.mark.parametrize("timeout_ms", [0, 200])
def test_a_stop_in_the_middle(node: AttackedNode, timeout_ms: int) -> None:
    begun = threading.Barrier(5)

    def move(index: int) -> None:
        put = wire.put_entry(b"own%d" % index, VALUE, CHUNK)
        with RawConnection(node.port) as client, suppress(OSError, EOFError):
            begun.wait(10)
            status = 0
            while status == 0:  # Until it says that it stops, or says nothing more.
                client.call(wire.GET, [wire.get_entry(b"large", SIZE)])
                status = client.call(wire.PUT, [put], VALUE).status

    clients = [threading.Thread(target=move, args=(index,)) for index in range(4)]
    for client in clients:
        client.start()
    begun.wait(10)
    time.sleep(0.1)
    stopping = time.monotonic()
    node.stop(timeout_ms)
    assert time.monotonic() - stopping < SERVED_WITHIN_S
    for client in clients:
        client.join(10)
        assert not client.is_alive()
