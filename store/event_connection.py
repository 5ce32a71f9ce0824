"""A connection driven by an asyncio loop: many operations in flight, woken by its descriptor.

Works with any loop that has add_reader and add_writer. Nothing here runs in a thread.
"""

import asyncio

from kvstrata import _kernel
from kvstrata.store.statuses import OK


class EventConnection:
    """Owns a native connection for as long as the loop runs."""

    def __init__(self, connection: _kernel.Connection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._descriptor = connection.fileno()
        self._waiting: dict[_kernel.Operation, asyncio.Future[None]] = {}
        self._scheduled = False
        self._writing = False
        self._retired = False
        self._loop.add_reader(self._descriptor, self._progress)
        self._watched = True

    @property
    def usable(self) -> bool:
        """Whether further operations may be given to it."""
        return self._watched and not self._retired and self._connection.status == OK

    @property
    def shard_count(self) -> int:
        """How many shards the node has."""
        return self._connection.shard_count

    @property
    def value_bytes_max(self) -> int:
        """Bytes of the largest value that the node could hold."""
        return self._connection.value_bytes_max

    @property
    def chunk_bytes(self) -> int:
        """How the node cuts values for checksums."""
        return self._connection.chunk_bytes

    async def execute(self, operation: _kernel.Operation, timeout: float) -> bool:
        """Submit, and wait until it has ended.

        Operations submitted within one turn of the loop go out together.

        Returns:
            False if it has not ended within the timeout. It may still be carried out then, and
            the connection takes no further ones.
        """
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting[operation] = future
        self._connection.submit(operation)
        self._schedule()
        timer = self._loop.call_later(timeout, _wake, future)
        try:
            await future
            done = operation.done  # As it is now: to close the connection would end it as well.
        finally:
            timer.cancel()
            self._waiting.pop(operation, None)
            self._close_if_last()
        if not done:  # The peer may be dead: what waits here may still end, but no more comes.
            self._retired = True
            self._close_if_last()
        return done

    def tend(self) -> None:
        """Have the node forget regions that were closed."""
        if self.usable:
            self._connection.tend()
            self._schedule()

    def close(self) -> None:
        """Close at once: what is in flight ends as CLOSED, and no buffer is touched any more."""
        if self._watched:
            self._watched = False
            self._loop.remove_reader(self._descriptor)
            self._loop.remove_writer(self._descriptor)
        self._connection.close()
        for future in self._waiting.values():
            _wake(future)

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._progress)

    def _progress(self) -> None:
        self._scheduled = False
        if not self._watched:
            return
        try:
            ended = self._connection.progress()
        except BaseException:  # Raised by memory that could not be had for a value.
            self.close()
            raise
        for operation in ended:
            if (future := self._waiting.get(operation)) is not None:
                _wake(future)
        if self._connection.status != OK:
            self.close()
            return
        if self._connection.unfinished:
            self._schedule()
        if self._connection.wants_write != self._writing:
            self._writing = not self._writing
            if self._writing:
                self._loop.add_writer(self._descriptor, self._progress)
            else:
                self._loop.remove_writer(self._descriptor)

    def _close_if_last(self) -> None:
        if self._retired and not self._waiting:
            self.close()


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
