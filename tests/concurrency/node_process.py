"""A node in a process of its own, which tests may stop and kill."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Self

from kvstrata.store.config import NodeConfig, PoolConfig
from kvstrata.store.node import RunningNode


class NodeProcess:
    """Runs from its construction; `restart` brings it back on the same port, empty."""

    def __init__(self, memory: str = "64MiB", shards: int = 2) -> None:
        self._arguments = [memory, str(shards)]
        self.port = 0
        self.restart()

    def restart(self) -> None:
        """Start again after `kill`."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self.port), *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    @property
    def url(self) -> str:
        return f"kvstrata://127.0.0.1:{self.port}"

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Neither reads nor writes within the block, while its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def main() -> None:
    port, memory, shards = sys.argv[1:]
    config = NodeConfig.model_validate({"port": int(port), "memory": memory, "shards": int(shards)})
    with RunningNode(config, {"default": PoolConfig()}) as node:
        print(node.port, flush=True)
        sys.stdin.read()  # Ends with the test's process, however that ends.


if __name__ == "__main__":
    main()
