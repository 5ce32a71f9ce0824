"""Nodes to be attacked: native ones without Python around them, with short limits."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kvstrata import _kernel
from kvstrata.store.admin import AdminDesk

MIB: Final = 1 << 20
STALL_MS: Final = 500
OPTIONS: Final[dict[str, Any]] = {
    "host": "127.0.0.1",
    "port": 0,
    "shard_count": 1,
    "memory_bytes": 64 * MIB,
    "populate_full": False,
    "huge_pages": "off",
    "spin_us": 0,
    "uring": _kernel.uring_is_usable(),
    "credits": 128,
    "connection_count_max": 4_096,
    "connection_bytes_max": MIB,
    "buffer_bytes_max": 32 * MIB,
    "minimum_rate": 64 * 1024,
    "stall_ms_max": STALL_MS,
}
READ, WRITE, ADMINISTER = 1, 2, 4


def pool(name: str = "default", **settings: Any) -> _kernel.PoolOptions:  # noqa: ANN401
    """A pool that anyone may use, unless `settings` say otherwise."""
    chosen: dict[str, Any] = {
        "immutable": False,
        "eviction": "lru",
        "quota_bytes": 0,
        "ttl_ms_default": 0,
        "retained_bytes_max": 0,
        "secrets": [],
        "open_rights": READ | WRITE,
    }
    return _kernel.PoolOptions(name, **(chosen | settings))


class AttackedNode:
    """A node in this process, and what its counters say.

    Unless it `answers`, administrative commands wait until their deadline.
    """

    def __init__(
        self,
        pools: list[_kernel.PoolOptions],
        *,
        answers: bool = True,
        unix_path: str = "",
        **options: Any,  # noqa: ANN401
    ) -> None:
        self.native = _kernel.Node(_kernel.NodeOptions(**(OPTIONS | options)), pools)
        if unix_path:
            self.native.listen_unix(unix_path)
        self._desk = AdminDesk(self.native) if answers else None
        self.native.start()
        if self._desk is not None:
            self._desk.start()

    @property
    def port(self) -> int:
        return self.native.port

    def counters(self) -> dict[str, int]:
        return sum_counters(self.native.statistics())

    def stop(self, timeout_ms: int = 5_000) -> bool:
        """False if transfers were cut off."""
        if self._desk is not None:
            self._desk.stop()
            self._desk = None
        return self.native.stop(timeout_ms)


@contextmanager
def attacked_node(
    *pools: _kernel.PoolOptions,
    **options: Any,  # noqa: ANN401
) -> Iterator[AttackedNode]:
    node = AttackedNode(list(pools) or [pool()], **options)
    try:
        yield node
    finally:
        node.stop()


class NodeProcess:
    """A node in a process of its own, to be killed, or measured from outside."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("node_process.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self._ask(json.dumps(OPTIONS | options)))

    @property
    def pid(self) -> int:
        return self._process.pid

    def counters(self) -> dict[str, int]:
        return sum_counters(json.loads(self._ask("statistics")))

    def resident_bytes(self) -> int:
        """Of the heap and the like; not the arena, which is left out of core dumps ("dd")."""
        total = anonymous = 0
        for line in Path(f"/proc/{self.pid}/smaps").read_text(encoding="utf-8").splitlines():
            name, _, rest = line.partition(":")
            if name == "Anonymous":
                anonymous = int(rest.split()[0]) * 1024
            elif name == "VmFlags" and "dd" not in rest.split():
                total += anonymous
        return total

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(timeout=10)

    def terminate(self) -> int:
        """Ends it with SIGTERM; returns the exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=10)

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


@contextmanager
def node_process(**options: Any) -> Iterator[NodeProcess]:  # noqa: ANN401
    node = NodeProcess(**options)
    try:
        yield node
    finally:
        node.close()


def sum_counters(statistics: Any) -> dict[str, int]:  # noqa: ANN401
    """Counters of memory and all shards by name; those of the pool `default` as `default.name`."""
    total = {name: value for name, value in statistics["memory"].items() if name != "huge_pages"}
    for shard in statistics["shards"]:
        for name, value in shard.items():
            if isinstance(value, int):
                total[name] = total.get(name, 0) + value
    for name, value in statistics["pools"].get("default", {}).items():
        total[f"default.{name}"] = int(value)
    return total


def wait_until(condition: Callable[[], object], seconds: float = 10.0, what: str = "") -> None:
    """Look every few milliseconds; fails the test when it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or condition}"
        time.sleep(0.005)


def wait_for_rest(node: AttackedNode | NodeProcess, connections: int = 0) -> dict[str, int]:
    """Wait until nothing of the attackers is left in the node: no buffer, no reservation."""

    def rests() -> bool:
        now = node.counters()
        held = now["buffered_bytes"], now["reserved_bytes"]
        return held == (0, 0) and now["connections_open"] == connections

    wait_until(rests, what=f"{node.counters()}")
    return node.counters()
