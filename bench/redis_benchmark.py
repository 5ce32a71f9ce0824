"""redis-benchmark as the client: one load, and what it says of it. Knows no server's insides."""

import csv
import subprocess
from dataclasses import dataclass
from enum import StrEnum

CONNECTION_COUNT = 50
RUN_S_MAX = 120.0


class Command(StrEnum):
    """The tests of redis-benchmark that are run, under the names that it prints."""

    GET = "GET"
    SET = "SET"


@dataclass(frozen=True)
class Load:
    """Requests on random keys of `key_count`, `pipeline_depth` at a time on each connection."""

    command: Command
    value_bytes: int
    key_count: int
    request_count: int
    pipeline_depth: int = 1

    def __str__(self) -> str:
        pipeline = f", pipeline {self.pipeline_depth}" if self.pipeline_depth > 1 else ""
        return f"{self.command} {_size(self.value_bytes)}{pipeline}"

    def arguments(self, port: int) -> list[str]:
        """The command line that puts this load on a server of this machine."""
        return [
            *("redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "--csv"),
            *("-t", self.command.lower(), "-d", str(self.value_bytes)),
            *("-c", str(CONNECTION_COUNT), "-P", str(self.pipeline_depth)),
            *("-n", str(self.request_count), "-r", str(self.key_count)),
        ]


def key_name(index: int) -> bytes:
    """The key that redis-benchmark's own tests ask for under this random number."""
    return b"key:%012d" % index


def run(port: int, load: Load) -> float:
    """Put the load on a server and wait for its end. Returns requests a second.

    Raises:
        RuntimeError: the server refused a request or could not be reached.
        subprocess.TimeoutExpired: it took longer than `RUN_S_MAX` seconds.
    """
    finished = subprocess.run(
        load.arguments(port), capture_output=True, text=True, check=False, timeout=RUN_S_MAX
    )
    if finished.returncode != 0:
        said = finished.stderr.strip() or finished.stdout.strip()
        raise RuntimeError(f"redis-benchmark ended with {finished.returncode} in {load}: {said}")
    return requests_per_s(finished.stdout, load.command)


def requests_per_s(output: str, command: Command) -> float:
    """Read the rate of one test from what `redis-benchmark --csv` printed.

    Raises:
        ValueError: there is no row of that test, or no rate in it.
    """
    for row in csv.DictReader(output.splitlines()):
        if row.get("test") == command:
            rate = float(row.get("rps") or "nan")
            if rate > 0:
                return rate
    raise ValueError(f"redis-benchmark told no rate of {command}: {output!r}")


def _size(size_bytes: int) -> str:
    for unit, unit_bytes in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= unit_bytes:
            return f"{size_bytes // unit_bytes} {unit}"
    return f"{size_bytes} B"
