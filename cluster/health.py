"""Whether a node can serve: one check a reason why it could not."""

import threading
import time
from collections.abc import Callable
from typing import Final

from kvstrata.cluster.counters import Counters

# An idle shard wakes once a second; a turn of a busy one takes well under a millisecond.
STUCK_S: Final = 5.0


class Health:
    """Judges a node by its counters; thread-safe.

    A shard answers if its loop has turned since a look at least `STUCK_S` ago.
    """

    def __init__(
        self,
        counters: Callable[[], Counters],
        clock: Callable[[], float] = time.monotonic,
        *,
        populate_full: bool,
    ) -> None:
        self._counters = counters
        self._clock = clock
        self._populate_full = populate_full
        self._turned: dict[int, tuple[int, float]] = {}  # By shard: its turns, and since when.
        self._stopping = False
        self._lock = threading.Lock()

    def stopping(self) -> None:
        """From now on the node takes no new work."""
        self._stopping = True

    def failures(self) -> dict[str, str]:
        """Why the node cannot serve, in words by the check's name; empty if it can."""
        counters = self._counters()
        found = {
            "accepting": "the node is stopping" if self._stopping else "",
            "memory": self._memory(counters),
            "shards": self._shards(counters),
        }
        return {name: words for name, words in found.items() if words}

    def _memory(self, counters: Counters) -> str:
        memory = counters.memory
        wanted = memory["segment_count"] if self._populate_full else 1
        if memory["populated_count"] < wanted:
            return (
                f"{memory['populated_count']} of {wanted} segments of memory are populated;"
                " wait, or set node.populate to used"
            )
        return ""

    def _shards(self, counters: Counters) -> str:
        now = self._clock()
        stuck = []
        with self._lock:
            for number, shard in enumerate(counters.shards):
                turns, since = self._turned.get(number, (-1, now))
                if shard["loop_turns"] != turns:
                    self._turned[number] = (shard["loop_turns"], now)
                elif now - since > STUCK_S:
                    stuck.append(f"{number} for {now - since:.0f} s")
        return f"the loops of these shards have not turned: {', '.join(stuck)}" if stuck else ""
