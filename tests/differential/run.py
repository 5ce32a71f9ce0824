"""Runs one sequence of commands on two servers side by side, and makes what fails short."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from tests.differential.client import Client
from tests.differential.commands import Step
from tests.differential.comparison import KnownDifference, alike, walks_through
from tests.differential.resp import Reply

# Settings outlive FLUSHALL, and a sequence changes them.
CLEANING: Final = (
    (b"FLUSHALL",),
    (b"CONFIG", b"SET", b"maxmemory", b"0"),
    (b"CONFIG", b"SET", b"maxmemory-policy", b"noeviction"),
    (b"SLOWLOG", b"RESET"),
)

SHORTENING_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Difference:
    """The first step whose replies are not alike; None stands for a connection that was closed."""

    number: int
    step: Step
    theirs: Reply | None
    ours: Reply | None

    def __str__(self) -> str:
        replies = [reply.raw[:500] if reply else b"(closed)" for reply in (self.theirs, self.ours)]
        return (
            f"step {self.number}, {self.step}\n  Valkey   {replies[0]!r}\n  KVStrata {replies[1]!r}"
        )


@dataclass(slots=True)
class _Pair:
    """One client of each server; they are sent the same."""

    valkey: Client
    node: Client
    version: int
    queued: list[tuple[bytes, ...]] = field(default_factory=list)

    def greet(self) -> None:
        self.queued.clear()
        for client in (self.valkey, self.node):
            client.call(b"HELLO", b"%d" % self.version)

    def call(self, arguments: tuple[bytes, ...]) -> tuple[Reply | None, Reply | None]:
        """A walk through all keys is made to its end: how many steps it takes, no one can say."""
        if walks_through(arguments):
            return self.valkey.scan(*arguments), self.node.scan(*arguments)
        return self.valkey.call(*arguments), self.node.call(*arguments)

    def reopen(self) -> None:
        self.valkey.reopen()
        self.node.reopen()
        self.greet()


class Comparison:
    """Two servers, by their ports on this machine, and the differences that are known."""

    def __init__(
        self, valkey_port: int, node_port: int, known: Sequence[KnownDifference] = ()
    ) -> None:
        self._ports = valkey_port, node_port
        self._known = known

    def run(self, steps: Sequence[Step], version: int) -> Difference | None:
        """Clean both servers, run `steps` in RESP `version`, and return the first difference."""
        with ExitStack() as stack:
            pairs: dict[int, _Pair] = {}
            for number in {step.client for step in steps}:
                clients = [stack.enter_context(Client(port)) for port in self._ports]
                pairs[number] = _Pair(clients[0], clients[1], version)
                pairs[number].greet()
            for client in (pairs[steps[0].client].valkey, pairs[steps[0].client].node):
                for command in CLEANING:
                    client.call(*command)
            for number, step in enumerate(steps):
                pair = pairs[step.client]
                theirs, ours = pair.call(step.arguments)
                if not self._alike(pair, step.arguments, theirs, ours):
                    return Difference(number, step, theirs, ours)
                if theirs is None or step.arguments[0].upper() == b"QUIT":
                    pair.reopen()
                time.sleep(step.pause_s)
        return None

    def _alike(
        self, pair: _Pair, arguments: tuple[bytes, ...], theirs: Reply | None, ours: Reply | None
    ) -> bool:
        if theirs is None or ours is None:
            return theirs is ours
        if theirs.raw == b"+QUEUED\r\n":
            pair.queued.append(arguments)
            return self._one_alike(arguments, theirs, ours)
        if arguments[0].upper() in {b"EXEC", b"DISCARD", b"RESET", b"QUIT"}:
            queued, pair.queued = pair.queued, []
            if theirs.items is not None:
                return self._all_alike(queued, theirs, ours)
        return self._one_alike(arguments, theirs, ours)

    def _all_alike(self, queued: list[tuple[bytes, ...]], theirs: Reply, ours: Reply) -> bool:
        """The replies of a transaction's commands, each as its command has it."""
        assert theirs.items is not None
        if ours.items is None or len(ours.items) != len(queued):
            return False
        return len(theirs.items) == len(queued) and all(
            map(self._one_alike, queued, theirs.items, ours.items)
        )

    def _one_alike(self, arguments: tuple[bytes, ...], theirs: Reply, ours: Reply) -> bool:
        return alike(arguments, theirs, ours) or any(
            known.excuses(arguments, ours, theirs) for known in self._known
        )


def shortened(steps: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """Leave out of a failing sequence what it fails without: halves first, single steps last.

    What is found within some seconds has to do.
    """
    deadline = time.monotonic() + SHORTENING_S
    size = len(steps) // 2
    while size > 0:
        at = 0
        while at < len(steps) and time.monotonic() < deadline:
            rest = steps[:at] + steps[at + size :]
            if rest and fails(rest):
                steps = rest
            else:
                at += size
        size //= 2
    return steps


def explain(comparison: Comparison, steps: list[Step], version: int, difference: Difference) -> str:
    """What a failed test says: the shortest sequence found, and where it differs."""
    steps = steps[: difference.number + 1]
    last = steps[-1]

    def fails(rest: list[Step]) -> bool:
        found = comparison.run(rest, version)
        return found is not None and found.step == last

    steps = shortened(steps, fails)
    found = comparison.run(steps, version) or difference
    lines = "\n".join(f"  {step}" for step in steps)
    return f"RESP{version}; these {len(steps)} commands show it:\n{lines}\n{found}"
