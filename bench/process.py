"""A server's process: started, waited for, weighed and stopped within bounds.

Knows nothing of what the server speaks; `ready` tells when it may be used.
"""

import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.peers.setup import ROOT

LOGS = ROOT / "build" / "bench"
START_S_MAX = 30.0
STOP_S_MAX = 10.0


class ServerProcess:
    """A child process whose output goes to build/bench/NAME.log; a context manager."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        ready: Callable[[], bool],
    ) -> None:
        """Start `command` and wait until `ready()` holds.

        Raises:
            RuntimeError: the process ended, or was not ready within `START_S_MAX` seconds.
        """
        LOGS.mkdir(parents=True, exist_ok=True)
        self.name = name
        self._log = LOGS / f"{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
            )
        self.pid = self._process.pid
        try:
            self._wait_until(ready)
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ask the process to end, and kill it if it has not after `STOP_S_MAX` seconds."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def cpu_s(self) -> float:
        """CPU seconds used so far by all threads, ended ones too, user and system together.

        The sum of utime and stime in /proc/PID/stat, but in nanoseconds instead of ticks.
        """
        # What clock_getcpuclockid(3) answers for a process, which Python has no call for.
        return time.clock_gettime(~self.pid << 3 | 2)

    def resident_bytes(self) -> dict[str, int]:
        """The resident set by kind, in bytes: `arena`, and beside it `anonymous` and `file`.

        A store's arena is told by its flag: it is left out of core dumps.
        """
        sums = {"arena": 0, "anonymous": 0, "file": 0}
        anonymous = resident = 0
        for line in Path(f"/proc/{self.pid}/smaps").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name == "Rss":
                resident = int(rest.split()[0]) * 1024
            elif name == "Anonymous":
                anonymous = int(rest.split()[0]) * 1024
            elif name == "VmFlags" and "dd" in rest.split():
                sums["arena"] += resident
            elif name == "VmFlags":
                sums["anonymous"] += anonymous
                sums["file"] += resident - anonymous
        return sums

    def _wait_until(self, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_S_MAX
        while not ready():
            if self._process.poll() is not None:
                code = self._process.returncode
                raise RuntimeError(f"{self.name} ended with {code}; {self._log}:\n{self._tail()}")
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"{self.name} not ready after {START_S_MAX} s; {self._log}:\n{self._tail()}"
                )
            time.sleep(0.05)

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]


def free_port() -> int:
    """A loopback TCP port that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def accepts_connections(port: int) -> bool:
    """Whether something listens on a loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True
