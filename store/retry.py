"""Whether, and when, a call that failed may be sent again. Waits for nothing itself.

Two cases, both within the call's timeout:
- BUSY: the node did nothing; again after a jittered pause that doubles.
- CLOSED: the connection broke. Again if nothing had reached the wire, or if the call only reads.
  A put is not sent again: the first may have arrived, and a second could overwrite what another
  writer has put since.
"""

import random
from time import monotonic
from typing import Final

from kvstrata import _kernel
from kvstrata.store.statuses import BUSY

_PAUSE_S_FIRST: Final = 0.002
_PAUSE_S_MAX: Final = 0.25
# A node that breaks connections this often is not well; more tries would only hide it.
_BREAK_COUNT_MAX: Final = 3


class Attempts:
    """The tries of one call.

    Args:
        timeout: seconds for all tries and pauses together.
        started: `time.monotonic()` at the begin of the first.
    """

    __slots__ = ("_breaks", "_deadline", "_pause", "timeout")

    def __init__(self, timeout: float, started: float | None = None) -> None:
        self.timeout = timeout
        self._deadline = (monotonic() if started is None else started) + timeout
        self._pause = _PAUSE_S_FIRST
        self._breaks = 0

    def remaining(self) -> float:
        """Seconds left, at least a millisecond: what is begun gets a chance to fail by itself."""
        return max(self._deadline - monotonic(), 0.001)

    def pause(self, status: int, *, safe: bool) -> float | None:
        """Seconds to wait before the next try, or None if there is to be none.

        Args:
            status: what the last try ended with.
            safe: whether it does no harm to send the call again after its connection broke.
        """
        if status == BUSY:
            wait = self._pause * random.uniform(0.5, 1.0)
            self._pause = min(self._pause * 2, _PAUSE_S_MAX)
        elif status == _kernel.CLOSED and safe and self._breaks < _BREAK_COUNT_MAX:
            self._breaks += 1
            wait = 0.0
        else:
            return None
        return wait if monotonic() + wait < self._deadline else None
