"""Debian's prometheus-redis-exporter: what it reports of a node is what was done."""

import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest

from tests.differential.client import Client
from tests.e2e.command import StartNode
from tests.e2e.resp_clients.programs import debian_program, port_of

MEMORY = 32 << 20  # What `start_node` gives a node.


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


@pytest.fixture(params=["1", "3"], ids=["one shard", "three shards"])
def node_port(start_node: StartNode, request: pytest.FixtureRequest) -> int:
    return port_of(start_node("--shards", request.param))


@pytest.fixture
def exporter(node_port: int) -> Iterator[str]:
    """The address of its metrics."""
    program = debian_program("prometheus-redis-exporter", "prometheus-redis-exporter")
    listen = f"127.0.0.1:{free_port()}"
    addresses = ("-web.listen-address", listen, "-redis.addr", f"redis://127.0.0.1:{node_port}")
    options = ("-export-client-list", "-include-config-metrics", "-include-system-metrics")
    with subprocess.Popen(
        [program, *addresses, *options], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as process:
        yield f"http://{listen}/metrics"
        process.terminate()
        process.wait(timeout=10)


def scrape(address: str) -> dict[str, float]:
    """All figures by name and labels; waits for the exporter to listen."""
    deadline = time.monotonic() + 10
    while True:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                lines = answer.read().decode().splitlines()
            break
        except OSError:
            assert time.monotonic() < deadline, "the exporter does not listen"
            time.sleep(0.02)
    figures = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(figure) for name, _, figure in figures}


def test_figures_are_those_of_what_was_done(node_port: int, exporter: str) -> None:
    with Client(node_port) as client:
        for n in range(40):
            client.call(b"SET", b"k%d" % n, bytes(50_000))
        for n in range(60):
            client.call(b"GET", b"k%d" % n)
        for n in range(10):
            client.call(b"EXPIRE", b"k%d" % n, b"1000")
        client.call(b"INCR", b"k0")
        time.sleep(0.5)  # The gauges are refreshed some times a second.
        figures = scrape(exporter)
    assert figures["redis_up"] == 1
    assert figures['redis_db_keys{db="db0"}'] == 40
    assert figures['redis_db_keys_expiring{db="db0"}'] == 10
    assert figures['redis_commands_total{cmd="set"}'] == 40
    assert figures['redis_commands_total{cmd="get"}'] == 60
    assert figures["redis_keyspace_hits_total"] == 40
    assert figures["redis_keyspace_misses_total"] == 20
    assert figures["redis_commands_processed_total"] >= 111
    assert figures['redis_errors_total{err="ERR"}'] >= 1
    assert 40 * 50_000 < figures["redis_memory_used_bytes"] < MEMORY
    assert figures["redis_connected_clients"] == 2
    assert figures['redis_exporter_last_scrape_error{err=""}'] == 0
    assert figures["redis_uptime_in_seconds"] >= 0
    assert figures["redis_net_input_bytes_total"] > 40 * 50_000
