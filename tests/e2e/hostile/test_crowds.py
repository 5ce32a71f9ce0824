"""Many peers at once: idle connections by the thousand, floods, clients killed while they write."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.nodes import MIB, NodeProcess, node_process, wait_for_rest, wait_until
from tests.e2e.reference_client import RawConnection, RefusedError
from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Request

CHUNK = 512 * 1024
# What an idle connection may cost the node beside the kernel's own memory.
IDLE_BYTES_MAX = 4_096


@contextmanager
def open_files(count: int) -> Iterator[None]:
    """This process and those it starts may have so many descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"only {hard} open files are allowed here, {count} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.soak)])
def test_idle_connections_cost_little_and_stay(count: int) -> None:
    with (
        open_files(count + 500),
        node_process(connection_count_max=count + 10, shard_count=2) as node,
        ExitStack() as stack,
    ):
        before = node.resident_bytes()
        idle = [stack.enter_context(RawConnection(node.port)) for _ in range(count)]
        assert node.counters()["connections_open"] == count
        assert node.resident_bytes() - before < count * IDLE_BYTES_MAX + MIB
        with RawConnection(node.port) as client:
            client.put(b"k", b"v")
            begun = time.monotonic()
            for _ in range(100):
                assert client.get(b"k") == b"v"
            assert time.monotonic() - begun < 5
        # They have been quiet for longer than a stalled peer may be, and still are served.
        time.sleep(1)
        for connection in idle[:: count // 50]:
            assert connection.get(b"k") == b"v"
        for connection in idle:
            connection.close()
        wait_for_rest(node)


def test_floods_of_connections_leave_nothing_behind() -> None:
    with node_process(connection_count_max=50) as node:
        served, refused = 0, 0
        with RawConnection(node.port) as bystander:
            bystander.put(b"k", b"v")
            deadline = time.monotonic() + 3
            while time.monotonic() < deadline:
                with ExitStack() as stack:
                    for _ in range(60):
                        try:
                            stack.enter_context(RawConnection(node.port))
                            served += 1
                        except (RefusedError, OSError, EOFError):
                            refused += 1
                assert bystander.get(b"k") == b"v"
        assert served > 50
        assert refused > 0
        counters = wait_for_rest(node)
        assert counters["connections_refused"] >= refused


@pytest.mark.slow
def test_floods_of_tiny_commands_are_answered_one_by_one() -> None:
    with node_process() as node, RawConnection(node.port) as client:
        before = node.resident_bytes()
        block = Request(wire.NOOP, 1).encode() * 1_000
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            client.send(block)
            with RawConnection(node.port) as other:
                begun = time.monotonic()
                other.put(b"k", b"v")
                assert time.monotonic() - begun < 2
            answers = client.receive(1_000 * wire.HEADER_BYTES)
            assert wire.decode_completion(answers[: wire.HEADER_BYTES]).status == 0
        assert node.resident_bytes() - before < 4 * MIB


WRITER = """
import sys
from tests.e2e.reference_client import RawConnection
from tests.unit.transport import reference_decoder as wire

port, size = int(sys.argv[1]), int(sys.argv[2])
client = RawConnection(port)
entry = wire.put_entry(b"victim", bytes(size), 512 * 1024)
client.send(wire.Request(wire.PUT, 1, [entry], size).encode() + bytes(size // 2))
print("half", flush=True)
client.receive(1)
"""


def kill_a_writer_mid_put(node: NodeProcess, size: int) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(node.port), str(size)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"half\n"
    finally:
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait(timeout=10)
        if writer.stdout is not None:
            writer.stdout.close()


@pytest.mark.parametrize("shard_count", [1, 3])
def test_writers_killed_mid_put_leave_no_trace(shard_count: int) -> None:
    # Far longer than the test: it is the end of the connection that frees the space.
    with node_process(stall_ms_max=60_000, shard_count=shard_count) as node:
        for _ in range(3):
            kill_a_writer_mid_put(node, 16 * MIB)
            wait_until(lambda: node.counters()["reserved_bytes"] == 0, 5, "reservation ended")
        counters = wait_for_rest(node)
        assert counters["extent_bytes"] == 0
        with RawConnection(node.port) as client:
            assert client.get(b"victim") is None
            assert client.put(b"victim", bytes(16 * MIB)).fields["result"] == 0
