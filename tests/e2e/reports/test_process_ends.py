"""How nodes and clients end: asked, killed, forked; nobody hangs, and a successor can start."""

import os
import threading
import time
from pathlib import Path

import pytest

import kvstrata
from tests.e2e.nodes import MIB, attacked_node, node_process
from tests.e2e.reference_client import RawConnection
from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Request

CHUNK = 512 * 1024


def half_a_put(port: int) -> RawConnection:
    client = RawConnection(port)
    entry = wire.put_entry(b"k", bytes(4 * MIB), CHUNK)
    client.send(Request(wire.PUT, 1, [entry], 4 * MIB).encode() + bytes(MIB))
    return client


def test_sigterm_during_transfers_ends_in_bound() -> None:
    with (
        node_process(stall_ms_max=60_000) as node,
        half_a_put(node.port),
        RawConnection(node.port) as reader,
    ):
        reader.put(b"large", bytes(8 * MIB))
        reader.begin(wire.GET, [wire.get_entry(b"large", 8 * MIB)] * 4)
        begun = time.monotonic()
        assert node.terminate() == 3  # Cut off: the node gave them two seconds.
        assert time.monotonic() - begun < 8


def test_sigterm_without_transfers_ends_at_once() -> None:
    with node_process() as node, RawConnection(node.port) as client:
        client.put(b"k", b"v")
        begun = time.monotonic()
        assert node.terminate() == 0
        assert time.monotonic() - begun < 5
        assert client.at_end()


def test_a_stopping_node_finishes_what_goes_on() -> None:
    with attacked_node(stall_ms_max=60_000) as node, half_a_put(node.port) as client:
        outcome: list[bool] = []
        stopper = threading.Thread(target=lambda: outcome.append(node.stop(20_000)))
        stopper.start()
        time.sleep(0.2)
        client.send(bytes(3 * MIB))
        completion, _ = client.read_completion()
        assert [each.status for each in completion.outcomes] == [0]
        stopper.join(timeout=20)
        assert outcome == [True]


def test_kill_9_restart_same_port() -> None:
    """A node killed under load leaves nothing that keeps the next one from its port."""
    with (
        node_process(memory_bytes=256 * MIB) as first,
        half_a_put(first.port) as writer,
        RawConnection(first.port) as reader,
    ):
        reader.put(b"k", b"v")
        first.kill()
        with node_process(port=first.port) as second, RawConnection(second.port) as client:
            assert second.port == first.port
            assert client.hello.attributes()[20] != reader.hello.attributes()[20]
            assert client.get(b"k") is None
            assert client.put(b"k", b"new").status == 0
        assert writer.at_end()


def test_a_node_leaves_no_threads_and_descriptors() -> None:
    def open_count() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def serve_once(shard_count: int) -> None:
        with attacked_node(shard_count=shard_count) as node, RawConnection(node.port) as client:
            client.put(b"k", bytes(MIB))

    serve_once(1)
    before = open_count()
    serve_once(1)
    serve_once(4)
    assert open_count() == before


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
# A forked child of a threaded process may hang in a sanitizer's allocator: hence slow.
@pytest.mark.slow
def test_fork_beside_a_node_leaves_the_node_alone() -> None:
    """A child has neither the shards' threads nor their connections; its end disturbs nobody."""
    with attacked_node() as node, RawConnection(node.port) as client:
        client.put(b"k", b"v")
        child = os.fork()
        if child == 0:
            os._exit(0 if Path("/proc/self/task").exists() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert client.get(b"k") == b"v"
        with RawConnection(node.port) as other:
            assert other.put(b"k", b"after").status == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
# A forked child of a threaded process may hang in a sanitizer's allocator: hence slow.
@pytest.mark.slow
def test_fork_in_client() -> None:
    """A child of a program that uses a store has connections of its own, and takes none away."""
    with attacked_node() as node, kvstrata.connect(f"kvstrata://127.0.0.1:{node.port}") as store:
        store.put("k", b"of the parent")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if store.get("k", timeout=10) == b"of the parent" else 2
                store.put("child", b"of the child", timeout=10)
            finally:
                os._exit(code)
        assert store.get("k") == b"of the parent"
        assert os.waitpid(child, 0)[1] == 0
        assert store.get("child") == b"of the child"
