"""The connections of a blocking store: opened when needed, used by one thread at a time.

Idle connections lie in one stack per shard, the last used on top, so that few are kept warm and
the others age. Taking and putting back are a `deque`'s pop and append, which are atomic: the lock
is for opening, waiting and closing only. A child process after a fork drops what it inherited
without a word to the node, and opens its own.
"""

import os
import threading
import weakref
from collections import deque
from time import monotonic
from typing import Final

from kvstrata import _kernel
from kvstrata.store import limits
from kvstrata.store.dialer import Dialer
from kvstrata.store.errors import BusyError, UsageError
from kvstrata.store.statuses import OK
from kvstrata.store.url import Target

_CONNECTION_COUNT_MAX: Final = 64  # Threads beyond that wait for one another.
_IDLE_S_MAX: Final = 60.0
# A connection that rested longer is looked at before use: the node may have gone meanwhile.
_TRUSTED_S: Final = 1.0


def closed_store(target: Target) -> UsageError:
    """What a call of a closed store raises."""
    return UsageError(f"the store {target} is closed: connect again")


class Lane:
    """A connection with what the pool must know about it."""

    __slots__ = ("__weakref__", "connection", "shard", "used_at")

    def __init__(self, connection: _kernel.Connection, shard: int) -> None:
        self.connection = connection
        self.shard = shard
        self.used_at = monotonic()


class ConnectionPool:
    """Connections to one node; thread-safe.

    Opens the first at once, to learn how many shards there are, how large a value may be and how
    it is cut for checksums.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.dialer = Dialer(target)
        self.shard_count = 1
        self.value_bytes_max = 0
        self.chunk_bytes = 0
        self._reset()
        first = self._open(0, target.timeout)
        self.shard_count = first.connection.shard_count
        self.value_bytes_max = first.connection.value_bytes_max
        self.chunk_bytes = first.connection.chunk_bytes
        self._idle = _stacks(self.shard_count)
        self.release(first)
        _pools.add(self)

    def shard_of(self, key: bytes) -> int:
        """The shard that owns the key (PROTOCOL.md, "Slots and shards")."""
        return _kernel.key_slot(key) * self.shard_count // limits.SLOT_COUNT

    def acquire(self, shard: int, timeout: float) -> Lane:
        """A connection for this thread alone, best to that shard.

        Raises:
            UsageError: the pool is closed.
            BusyError: all connections were in use until the timeout.
            UnavailableError: a new one could not be opened.
        """
        now = monotonic()
        try:
            lane = self._idle[shard].pop()
        except IndexError:
            return self._acquire_slowly(shard, now + timeout)
        if now - lane.used_at > _TRUSTED_S and not _alive(lane):
            self.discard(lane)
            return self.acquire(shard, timeout)
        lane.used_at = now
        return lane

    def release(self, lane: Lane) -> None:
        """Put a sound connection back."""
        self._idle[lane.shard].append(lane)
        if self._waiting_count or self._closed or lane.used_at > self._sweep_at:
            self._release_slowly(lane.used_at)

    def discard(self, lane: Lane) -> None:
        """Close a connection that is not to be used again."""
        lane.connection.close()
        with self._changed:
            self._lanes.discard(lane)
            self._changed.notify()

    def tend(self) -> None:
        """Have the node forget regions that were closed: now over connections that are idle, over
        the others when they end what they are at.
        """
        for idle in self._idle:
            for _ in range(len(idle)):
                try:
                    lane = idle.popleft()
                except IndexError:
                    break
                lane.connection.execute((), round(self.target.timeout * 1000))
                idle.append(lane)

    def doubt(self) -> None:
        """Close the idle connections: one broke, so the node may have been restarted."""
        for idle in self._idle:
            self._close_idle(idle, monotonic())

    def close(self) -> None:
        """Close what is idle, and each connection in use when it comes back."""
        self._closed = True
        self.doubt()
        with self._changed:
            self._changed.notify_all()

    def forget(self) -> None:
        """In a forked child: the connections are the parent's."""
        for lane in list(self._lanes):
            lane.connection.abandon()
        closed = self._closed
        self._reset()
        self._closed = closed

    def _reset(self) -> None:
        self._closed = False
        # All, in use or not; one that a signal's exception made its thread drop counts no more.
        self._lanes: weakref.WeakSet[Lane] = weakref.WeakSet()
        self._idle = _stacks(self.shard_count)
        self._changed = threading.Condition()
        self._waiting_count = 0
        self._opening_count = 0
        self._sweep_at = monotonic() + _IDLE_S_MAX

    def _acquire_slowly(self, shard: int, deadline: float) -> Lane:
        """Open another; where there are as many as may be, take any or wait for one."""
        with self._changed:
            self._waiting_count += 1
            try:
                while len(self._lanes) + self._opening_count >= _CONNECTION_COUNT_MAX:
                    if (lane := self._steal()) is not None:
                        return lane
                    if not self._changed.wait(deadline - monotonic()):
                        raise BusyError(
                            f"all {_CONNECTION_COUNT_MAX} connections to {self.target} were in use"
                            " until the timeout: use fewer threads, or a longer timeout"
                        )
                if self._closed:
                    raise closed_store(self.target)
                self._opening_count += 1
            finally:
                self._waiting_count -= 1
        try:
            return self._open(shard, deadline - monotonic())
        finally:
            with self._changed:
                self._opening_count -= 1
                self._changed.notify()

    def _open(self, shard: int, timeout: float) -> Lane:
        wanted = shard if self.shard_count > 1 else None
        lane = Lane(self.dialer.open(wanted, timeout), shard)
        self._lanes.add(lane)
        return lane

    def _steal(self) -> Lane | None:
        """An idle connection to any shard: each serves every key."""
        for idle in self._idle:
            if idle:
                return idle.pop()
        return None

    def _release_slowly(self, now: float) -> None:
        if self._closed:
            self.doubt()
        elif now > self._sweep_at:
            self._sweep_at = now + _IDLE_S_MAX / 2
            for idle in self._idle:
                self._close_idle(idle, now - _IDLE_S_MAX)
        with self._changed:
            self._changed.notify()

    def _close_idle(self, idle: deque[Lane], used_before: float) -> None:
        """Close from the bottom of the stack, where the longest unused lie."""
        while True:
            try:
                lane = idle.popleft()
            except IndexError:
                return
            if lane.used_at > used_before:
                idle.appendleft(lane)
                return
            self.discard(lane)


def _stacks(count: int) -> list[deque[Lane]]:
    return [deque() for _ in range(count)]


def _alive(lane: Lane) -> bool:
    """Whether the node has neither closed the connection nor sent what nobody asked for."""
    lane.connection.progress()
    return lane.connection.status == OK


_pools: "weakref.WeakSet[ConnectionPool]" = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


os.register_at_fork(after_in_child=_forget_all)
