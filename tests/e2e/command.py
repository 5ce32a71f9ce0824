"""Real processes on loopback: the `kvstrata` command, and nodes that it runs."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kvstrata
from kvstrata import _kernel

COMMAND = (sys.executable, "-m", "kvstrata")
_ARGUMENTS = ["--port", "0", "--http-port", "0", "--memory", "32MiB", "--shards", "1", "--no-spin"]
START_S_MAX = 60
RUN_S_MAX = 60


def environment(**variables: str) -> dict[str, str]:
    """This process's variables without any that configure kvstrata, and those given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KVSTRATA_")}
    return kept | variables


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended."""

    code: int
    output: bytes
    error: str

    @property
    def text(self) -> str:
        return self.output.decode()

    def json(self) -> Any:  # noqa: ANN401
        """What a command with --json printed; it must have succeeded."""
        assert self.code == 0, self.error
        return json.loads(self.output)


def run(
    *arguments: object, input: bytes = b"", variables: dict[str, str] | None = None
) -> Finished:
    """Run a command to its end."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=input,
        capture_output=True,
        timeout=RUN_S_MAX,
        env=environment(**(variables or {})),
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return Finished(done.returncode, done.stdout, done.stderr.decode())


class Node:
    """`kvstrata serve` in a process of its own, on ports that were free.

    What comes `before` the command line runs it.
    """

    def __init__(self, folder: Path, *arguments: str, before: Sequence[str] = ()) -> None:
        self.log_path = folder / "node.log"
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [*before, *COMMAND, "serve", *_ARGUMENTS, *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(),
            )
        assert self.process.stdout is not None
        # The stream ends with the process, and pytest's own timeout bounds a start that hangs.
        words = self.process.stdout.readline().split()
        assert words[:1] == ["ready"], self.log
        self.url = words[1]
        self.http = words[2] if len(words) > 2 else ""

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = 30) -> int:
        return self.process.wait(timeout)

    def run(self, *arguments: object, input: bytes = b"") -> Finished:
        """Run a command on this node."""
        return run(*arguments, input=input, variables={"KVSTRATA_URL": self.url})

    def end(self) -> None:
        """Kill it if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(START_S_MAX)
        if self.process.stdout is not None:
            self.process.stdout.close()


StartNode = Callable[..., Node]


@contextlib.contextmanager
def stuck_reader(node: Node) -> Iterator[None]:
    """A client that has asked for more than socket buffers hold, and reads no further."""
    with kvstrata.connect(node.url) as store:
        store.put("large", bytes(16 << 20))
    connection = _kernel.Connection(
        "127.0.0.1",
        int(node.url.rpartition(":")[2]),
        pool="default",
        secret="",
        client_name="stuck",
        credits=1,
        shard=None,
        verify=True,
        spin_us=0,
        timeout_ms=10_000,
    )
    connection.submit(_kernel.Get(b"large"))
    connection.progress()  # Sends the command.
    select.select([connection.fileno()], [], [], 10)
    yield
    connection.close()


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Look again and again until the condition holds; fail if that takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
