"""Peers and limits that could make a node's loop go round for nothing, or work for nobody."""

import os
import resource
import socket
import struct
import time
from contextlib import ExitStack

import pytest

from tests.e2e.nodes import (
    MIB,
    STALL_MS,
    AttackedNode,
    NodeProcess,
    attacked_node,
    node_process,
    pool,
    wait_until,
)
from tests.e2e.reference_client import RawConnection, RefusedError, client_hello
from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Request

VALUE_BYTES = 20_000
# A tick every 100 ms, and what else may happen; a loop that spins makes 100,000 turns and more.
TURNS_PER_S_MAX = 1_000


def turns_per_s(node: AttackedNode | NodeProcess) -> float:
    before, begun = node.counters()["loop_turns"], time.monotonic()
    time.sleep(0.3)
    return (node.counters()["loop_turns"] - before) / (time.monotonic() - begun)


def test_a_peer_that_is_done_with_leaves_the_loop_quiet() -> None:
    spoiled = bytearray(Request(wire.NOOP, 9_999, [], 0, 0).encode())
    spoiled[0] ^= 1
    with attacked_node(connection_bytes_max=8 * MIB, stall_ms_max=20 * STALL_MS) as node:
        with RawConnection(node.port) as client:
            for index in range(5):
                client.put(b"%d" % index, bytes(VALUE_BYTES))
        entries = [wire.get_entry(b"%d" % index, VALUE_BYTES) for index in range(5)]
        clients = [RawConnection(node.port) for _ in range(20)]
        for number, client in enumerate(clients):
            # So much that the last of it goes out only when there is room again.
            for command in range(30 + 2 * number):
                client.send(Request(wire.GET, command, entries, 0, 0).encode())
            client.send(bytes(spoiled))
        time.sleep(0.2)
        for client in clients:
            while client.socket.recv(1 << 18):
                pass
        assert turns_per_s(node) < TURNS_PER_S_MAX
        for client in clients:
            client.close()


def begin_put(client: RawConnection, key: bytes, size: int) -> bytes:
    """Announce a value and send its first bytes; returns the rest."""
    entry = wire.put_entry(key, bytes(size), client.chunk_bytes)
    client.send(Request(wire.PUT, 1, [entry], size).encode() + bytes(100))
    return bytes(size - 100)


def waiting_put_count(node: AttackedNode) -> int:
    return node.counters()["memory_waits"]


def test_a_peer_that_vanished_while_its_put_waits_leaves_the_loop_quiet() -> None:
    small = pool("small", quota_bytes=10 * MIB)
    with (
        attacked_node(pool(), small, stall_ms_max=20 * STALL_MS) as node,
        RawConnection(node.port, client_hello("small")) as holder,
    ):
        begin_put(holder, b"k", 8 * MIB)
        wait_until(lambda: node.counters()["reserved_bytes"] >= 8 * MIB)
        writer = RawConnection(node.port, client_hello("small"))
        begin_put(writer, b"new", 8 * MIB)
        wait_until(lambda: waiting_put_count(node) > 0)
        with_reset = struct.pack("ii", 1, 0)
        writer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, with_reset)
        writer.close()
        time.sleep(0.1)
        assert turns_per_s(node) < 2 * TURNS_PER_S_MAX  # Looks for room each millisecond.


def test_a_put_that_waits_for_its_pools_quota_holds_up_no_other_pool() -> None:
    pools = [pool("first", quota_bytes=10 * MIB), pool("second", quota_bytes=10 * MIB)]
    with (
        attacked_node(pool(), *pools, stall_ms_max=20 * STALL_MS) as node,
        RawConnection(node.port, client_hello("first")) as first_holder,
        RawConnection(node.port, client_hello("first")) as first,
        RawConnection(node.port, client_hello("second")) as second_holder,
        RawConnection(node.port, client_hello("second")) as second,
    ):
        begin_put(first_holder, b"k", 8 * MIB)
        rest = begin_put(second_holder, b"k", 8 * MIB)
        wait_until(lambda: node.counters()["reserved_bytes"] >= 16 * MIB)
        # The holders themselves may have waited for memory at first.
        before = waiting_put_count(node)
        begin_put(first, b"new", 8 * MIB)
        wait_until(lambda: waiting_put_count(node) == before + 1)
        behind = begin_put(second, b"new", 8 * MIB)
        wait_until(lambda: waiting_put_count(node) == before + 2)
        second_holder.send(rest)  # It is stored, so there is something to evict.
        second.send(behind)
        assert second.read_completion()[0].status == 0


@pytest.mark.slow
def test_answers_of_other_shards_are_made_only_as_far_as_the_budget() -> None:
    credit_count, budget = 1_024, MIB
    with node_process(
        shard_count=2, credits=credit_count, connection_bytes_max=budget, memory_bytes=64 * MIB
    ) as node:
        with RawConnection(node.port) as client:
            for index in range(1_000):
                client.put(b"%d" % index + bytes(3_900), b"")
        before = node.resident_bytes()
        with RawConnection(node.port, client_hello(shard=0, credits_=credit_count)) as client:
            second_shard = wire.Entry(b"", {"cursor": 1 << 58, "count": 4_096})
            client.send(
                b"".join(
                    Request(wire.SCAN, number, [second_shard], 0, 0).encode()
                    for number in range(credit_count)
                )
            )
            time.sleep(1)
            assert node.resident_bytes() - before < 8 * budget


def test_no_burst_gets_past_the_limit_of_connections() -> None:
    limit = 10
    with attacked_node(connection_count_max=limit, shard_count=2) as node:
        greeted: list[RawConnection] = []
        for _ in range(5 * limit):
            try:
                greeted.append(RawConnection(node.port))
            except (RefusedError, ConnectionError):
                continue
        assert len(greeted) == limit
        for client in greeted:
            client.close()
        wait_until(lambda: node.counters()["connections_open"] == 0)
        with RawConnection(node.port) as client:
            assert client.put(b"k", b"v").status == 0


@pytest.mark.slow  # And UBSan looks at memory through descriptors, of which there are none.
def test_peers_that_no_descriptor_is_left_for_wait_and_are_served_later() -> None:
    room = 5
    with node_process(shard_count=2) as node, ExitStack() as waiting:
        taken = len(os.listdir(f"/proc/{node.pid}/fd"))
        _, hard = resource.prlimit(node.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (taken + room, hard))
        served = [RawConnection(node.port) for _ in range(room)]
        for _ in range(3):
            waiting.enter_context(socket.create_connection(("127.0.0.1", node.port)))
        assert turns_per_s(node) < TURNS_PER_S_MAX
        assert node.counters()["connections_open"] == room
        assert served[0].put(b"k", b"v").status == 0
        for client in served:
            client.close()
        with RawConnection(node.port) as client:
            assert client.get(b"k") == b"v"
