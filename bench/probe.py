"""A contestant's process, seen from the measuring side: one question, one answer at a time.

Each contestant has a process of its own, so that none inherits another's memory, threads or
imports, and peers may live in another environment.
"""

import select
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.contestants.work import Outcome, Work
from bench.peers.setup import ROOT
from bench.process import LOGS

ANSWER_S_MAX = 120.0


class Probe:
    """Runs `bench.contestants.MODULE` under `python`; a context manager."""

    def __init__(self, python: str | Path, module: str, arguments: Sequence[str]) -> None:
        LOGS.mkdir(parents=True, exist_ok=True)
        self._log = LOGS / f"{module}.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", f"bench.contestants.{module}", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                text=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def ask(self, work: Work) -> Outcome:
        """Have `work` done and wait for it; see `begin` and `finish`."""
        self.begin(work)
        return self.finish()

    def begin(self, work: Work) -> None:
        """Start `work` without waiting, so that two contestants can run at once."""
        assert self._process.stdin is not None
        self._process.stdin.write(work.to_line() + "\n")
        self._process.stdin.flush()

    def finish(self) -> Outcome:
        """Wait for the work that was begun.

        Raises:
            RuntimeError: the contestant ended, or took longer than `ANSWER_S_MAX` seconds.
        """
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], ANSWER_S_MAX)
        line = self._process.stdout.readline() if readable else ""
        if not line:
            tail = self._log.read_text(errors="replace")[-2000:]
            what = "ended" if readable else f"gave no answer within {ANSWER_S_MAX} s"
            raise RuntimeError(f"the contestant {what}; {self._log}:\n{tail}")
        return Outcome.from_line(line)

    def stop(self) -> None:
        """Close its input, which ends it, and kill it if that does not."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(10.0)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
