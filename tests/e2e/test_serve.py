"""The node process: how it starts, what it says, how it ends."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import kvstrata
from kvstrata.cluster.open_files import files_beside_connections
from tests.e2e.command import COMMAND, Node, StartNode, environment, run, stuck_reader, wait_for

pytestmark = pytest.mark.slow


def test_the_start_tells_what_was_chosen(start_node: StartNode) -> None:
    log = start_node().log
    for words in ("data", "http", "shards", "memory", "huge pages", "spin", "pools", "access"):
        assert words in log
    assert "32 MiB (from argument)" in log
    assert "this machine only" in log


def test_logs_for_machines(start_node: StartNode) -> None:
    node = start_node("--log-format", "json")
    node.signal(signal.SIGTERM)
    assert node.wait() == 0
    lines = [json.loads(line) for line in node.log.splitlines()]
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    assert lines[-1]["message"] == "stopped"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it(start_node: StartNode, number: signal.Signals) -> None:
    node = start_node()
    with kvstrata.connect(node.url) as store:
        store.put("k", b"v")
        node.signal(number)
        assert node.wait() == 0
    assert f"stopping on {number.name}" in node.log


def test_transfers_under_way_end_within_the_bound(start_node: StartNode) -> None:
    """A peer that stops reading in mid-transfer holds a stop up, but no longer than told."""
    node = start_node("--stop-timeout", "1s")
    with stuck_reader(node):
        started = time.monotonic()
        node.signal(signal.SIGTERM)
        assert node.wait() == 0
        assert time.monotonic() - started < 15


def test_a_second_signal_stops_it_at_once(start_node: StartNode) -> None:
    node = start_node("--stop-timeout", "1h")
    with stuck_reader(node):
        node.signal(signal.SIGTERM)
        wait_for(lambda: "stopping on" in node.log)
        node.signal(signal.SIGTERM)
        assert node.wait() == 1
    assert "stopped at once" in node.log


def test_clients_are_told_of_a_kill(start_node: StartNode) -> None:
    node = start_node()
    with kvstrata.connect(node.url, timeout=2) as store:
        store.put("k", b"v")
        node.signal(signal.SIGKILL)
        assert node.wait() == -signal.SIGKILL
        with pytest.raises(kvstrata.UnavailableError):
            store.get("k")


def test_a_port_in_use_is_told(node: Node) -> None:
    port = node.url.rpartition(":")[2]
    done = run("serve", "--port", port, "--no-http", "--memory", "32MiB")
    assert done.code == 1
    assert port in done.error.splitlines()[-1]
    http_port = node.http.rpartition(":")[2]
    done = run("serve", "--port", "0", "--http-port", http_port, "--memory", "32MiB")
    assert done.code == 1
    assert "cannot listen for HTTP" in done.error.splitlines()[-1]


@pytest.mark.parametrize("option", ["--host", "--http-host"])
def test_beyond_loopback_it_wants_secrets(option: str) -> None:
    done = run("serve", "--port", "0", "--http-port", "0", option, "0.0.0.0")
    assert done.code == 2
    assert "set a secret" in done.error
    assert "--insecure" in done.error


def test_beyond_loopback_every_pool_wants_secrets(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text('[pools.default]\nadmin = "s"\n[pools.open]\n')
    done = run("serve", "--port", "0", "--host", "0.0.0.0", "--no-http", "-c", path)
    assert done.code == 2
    assert "'open'" in done.error


def test_insecure_is_an_explicit_word(start_node: StartNode) -> None:
    # All of 127/8 is loopback; 0.0.0.0 is not, and still only this machine is asked here.
    node = start_node("--host", "0.0.0.0", "--insecure", "--no-http")
    assert "ANYBODY" in node.log
    port = node.url.rpartition(":")[2]
    with kvstrata.connect(f"kvstrata://127.0.0.1:{port}") as store:
        assert store.get("k") is None


def test_settings_from_everywhere(start_node: StartNode, tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text('[node]\nmemory = "64MiB"\nshards = 2\n')
    node = start_node("--config", str(path))  # --memory and --shards are given, and win.
    assert "32 MiB (from argument)" in node.log


def limited(open_files: int) -> subprocess.Popen[str]:
    """A node that may have so many files open, and may not allow itself more."""
    command = ["sh", "-c", f'ulimit -n {open_files}; exec "$@"', "sh", *COMMAND, "serve"]
    options = ["--port", "0", "--no-http", "--memory", "32MiB", "--shards", "1"]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*command, *options], stdout=pipe, stderr=pipe, text=True, env=environment()
    )


def test_a_low_limit_of_open_files_bounds_connections() -> None:
    with limited(files_beside_connections(1) + 20) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[1]
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(kvstrata.connect(url)).put("k", b"v")
            with pytest.raises(kvstrata.BusyError):
                kvstrata.connect(url, timeout=1)
        process.terminate()
        _, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "at most 20 INSTEAD OF 16,384 (node.connections_max)" in log
    assert "ulimit -n" in log


def test_a_limit_of_open_files_without_room_ends_with_2() -> None:
    with limited(files_beside_connections(1)) as process:
        _, log = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "ulimit -n" in log


def test_a_wrong_setting_ends_with_2() -> None:
    done = run("serve", "--memory", "much")
    assert done.code == 2
    assert "node.memory (from argument)" in done.error


@pytest.mark.parametrize(
    "text",
    [
        'pools.a.quota = "99999999TiB"',
        "pools.a.quota = 18446744073709551616",
        'node.connection_memory_max = "999999999TiB"',
        "node.minimum_rate = 99999999999999999999",
        'node.host = "a\\u0000b"',
        'pools.a.read_file = "/dev/zero"',
        'node.pools_file = "/nowhere/pools.json"',
    ],
)
def test_a_hostile_setting_ends_with_2(tmp_path: Path, text: str) -> None:
    path = tmp_path / "node.toml"
    path.write_text(text)
    done = run("serve", "-c", path, "--port", "0", "--no-http", "--memory", "32MiB")
    assert done.code == 2
    assert done.error.startswith("error: ")


def test_a_binary_file_of_secrets_ends_with_2(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"\xff\xfe")
    done = run("serve", "--admin-secret-file", path, "--port", "0", "--no-http")
    assert done.code == 2
    assert "is not UTF-8 text" in done.error


def test_a_fifo_for_secrets_blocks_neither_commands_nor_the_stop(
    start_node: StartNode, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    node = start_node()
    with kvstrata.connect(node.url, timeout=5) as store:
        with pytest.raises(kvstrata.UsageError, match="not a regular file"):
            store.admin("pool_create", {"name": "f", "settings": {"write_file": str(fifo)}})
        assert list(store.admin("pools")) == ["default"]
    node.signal(signal.SIGTERM)
    assert node.wait() == 0


def test_pools_outlive_a_restart(start_node: StartNode, tmp_path: Path) -> None:
    pools_file = str(tmp_path / "pools.json")
    node = start_node("--pools-file", pools_file)
    assert node.run("pool", "create", "kept", "--kind", "immutable").code == 0
    node.signal(signal.SIGTERM)
    assert node.wait() == 0
    assert os.stat(pools_file).st_mode & 0o077 == 0  # Secrets are in it.
    again = start_node("--pools-file", pools_file)
    assert again.run("pool", "show", "kept", "--json").json()["kind"] == "immutable"
