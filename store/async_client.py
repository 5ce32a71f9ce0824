"""The asyncio client: as `Store`, with coroutines. One loop, a few connections, no threads.

Calls share one connection per shard, with many operations in flight. A call that fills memory of
the caller has a connection to itself meanwhile: when such a call is cancelled or times out, that
connection is closed before the call returns, so nothing is written into memory that the caller has
back, and no other call suffers.
"""

import asyncio
import builtins
import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from kvstrata import _kernel
from kvstrata.store import batch_operations, limits, operations, retention, streams, tensors, url
from kvstrata.store.batch_operations import Pairs
from kvstrata.store.buffers import Memory, Tensor, check_nbytes
from kvstrata.store.call import Call
from kvstrata.store.client import target_from
from kvstrata.store.connection_pool import closed_store
from kvstrata.store.dialer import Dialer
from kvstrata.store.errors import BusyError, ChangedError
from kvstrata.store.event_connection import EventConnection
from kvstrata.store.file_content import put_file
from kvstrata.store.operations import Key
from kvstrata.store.payloads import Payload
from kvstrata.store.results import KeyInfo, ObjectStat, Outcome, PutResult, RangeResult, Transport
from kvstrata.store.retention import AsyncRetention
from kvstrata.store.retry import Attempts
from kvstrata.store.statuses import BUSY, failure

O = TypeVar("O", bound=_kernel.Operation)  # noqa: E741
T = TypeVar("T")

# Calls that fill memory of the caller, and go on at the same time.
_EXCLUSIVE_COUNT_MAX = 16
# A connection keeps to the timeout by itself, and tells better why; so it gets the time to do so.
_TELLING_S = 0.05


def connect_async(
    address: str | None = None,
    *,
    pool: str | None = None,
    secret: str | None = None,
    timeout: float | None = None,
    verify: bool | None = None,
    transport: str | None = None,
    client_name: str | None = None,
) -> "AsyncStore":
    """A store for asyncio: `store = await connect_async()`, or `async with connect_async()`.

    Arguments and exceptions are those of `connect`; a loop never spins.
    """
    return AsyncStore(
        target_from(address, pool, secret, timeout, verify, False, transport, client_name)
    )


class AsyncStore:
    """Puts and gets objects. Belongs to the loop in which it is first used; not thread-safe.

    Methods are those of `Store`, where they are described. A call may be cancelled at any time; a
    write may have taken place nevertheless. What is put must not change until the call has ended.
    """

    def __init__(self, target: url.Target) -> None:
        self._target = target
        self._dialer = Dialer(target)
        self._shard_count = 1
        self._value_bytes_max = 0
        self._chunk_bytes = 0
        self._shared: dict[int, EventConnection] = {}
        self._opening: dict[int, asyncio.Lock] = {}
        self._exclusive: list[EventConnection] = []  # Idle ones, the last used on top.
        self._lent: set[EventConnection] = set()  # Exclusive ones in use.
        self._exclusive_free = asyncio.Semaphore(_EXCLUSIVE_COUNT_MAX)
        self._closed = False

    @property
    def url(self) -> str:
        """Where the store is, without its secret."""
        return str(self._target)

    @property
    def transport(self) -> Transport:
        """How bytes travel, and why so; "none" before the first call."""
        return self._dialer.transport

    @property
    def value_bytes_max(self) -> int:
        """See `Store.value_bytes_max`."""
        return self._value_bytes_max

    def __await__(self) -> Generator[Any, None, Self]:
        return self._open().__await__()

    async def put(
        self,
        key: Key,
        value: Memory,
        ttl: float | None = None,
        if_absent: bool = False,
        timeout: float | None = None,
    ) -> PutResult:
        """See `Store.put`."""
        return await self._run(operations.put(key, value, ttl, if_absent), timeout)

    async def get(self, key: Key, timeout: float | None = None) -> bytes | None:
        """See `Store.get`."""
        return await self._run(operations.get(key), timeout)

    async def get_into(self, key: Key, buffer: Memory, timeout: float | None = None) -> int | None:
        """See `Store.get_into`."""
        return await self._run(operations.get_into(key, buffer), timeout)

    async def get_range(
        self, key: Key, offset: int, length: int, timeout: float | None = None
    ) -> bytes | None:
        """See `Store.get_range`."""
        return await self._run(operations.get_range(key, offset, length), timeout)

    async def get_range_into(
        self, key: Key, offset: int, buffer: Memory, timeout: float | None = None
    ) -> RangeResult | None:
        """See `Store.get_range_into`."""
        return await self._run(operations.get_range_into(key, offset, buffer), timeout)

    async def put_tensor(
        self,
        key: Key,
        tensor: Tensor,
        ttl: float | None = None,
        if_absent: bool = False,
        timeout: float | None = None,
    ) -> PutResult:
        """See `Store.put_tensor`."""
        attributes = tensors.describe(tensor)
        return await self._run(operations.put(key, tensor, ttl, if_absent, attributes), timeout)

    async def get_tensor(
        self,
        key: Key,
        framework: Literal["numpy", "torch"] = "numpy",
        timeout: float | None = None,
    ) -> tensors.Array | None:
        """See `Store.get_tensor`."""
        return await self._run(operations.get_tensor(key, framework), timeout)

    async def exists(self, key: Key, timeout: float | None = None) -> bool:
        """See `Store.exists`."""
        return await self._run(operations.exists(key), timeout)

    async def stat(self, key: Key, timeout: float | None = None) -> ObjectStat | None:
        """See `Store.stat`."""
        return await self._run(operations.stat(key), timeout)

    async def delete(self, key: Key, timeout: float | None = None) -> bool:
        """See `Store.delete`."""
        return await self._run(operations.delete(key), timeout)

    async def expire(self, key: Key, seconds: float | None, timeout: float | None = None) -> bool:
        """See `Store.expire`."""
        return await self._run(operations.expire(key, seconds), timeout)

    async def append(self, key: Key, data: Memory, at: int, timeout: float | None = None) -> int:
        """See `Store.append`."""
        return await self._run(operations.append(key, data, at), timeout)

    async def put_many(
        self,
        pairs: Pairs,
        ttl: float | None = None,
        if_absent: bool = False,
        timeout: float | None = None,
    ) -> list[Outcome]:
        """See `Store.put_many`."""
        return await self._run(batch_operations.put_many(pairs, ttl, if_absent), timeout)

    async def get_many(
        self, keys: Iterable[Key], timeout: float | None = None
    ) -> list[bytes | None]:
        """See `Store.get_many`."""
        return await self._run(batch_operations.get_many(keys), timeout)

    async def get_many_into(
        self, keys: Iterable[Key], buffers: Iterable[Memory], timeout: float | None = None
    ) -> list[int | None]:
        """See `Store.get_many_into`."""
        return await self._run(batch_operations.get_many_into(keys, buffers), timeout)

    async def exists_many(self, keys: Iterable[Key], timeout: float | None = None) -> list[bool]:
        """See `Store.exists_many`."""
        return await self._run(batch_operations.exists_many(keys), timeout)

    async def delete_many(self, keys: Iterable[Key], timeout: float | None = None) -> list[bool]:
        """See `Store.delete_many`."""
        return await self._run(batch_operations.delete_many(keys), timeout)

    async def expire_many(
        self, keys: Iterable[Key], seconds: float | None, timeout: float | None = None
    ) -> list[bool]:
        """See `Store.expire_many`."""
        return await self._run(batch_operations.expire_many(keys, seconds), timeout)

    async def prefix_length(self, keys: Iterable[Key], timeout: float | None = None) -> int:
        """See `Store.prefix_length`."""
        return await self._run(batch_operations.prefix_length(keys), timeout)

    async def retain_many(
        self, keys: Iterable[Key], ttl: float, hard: bool = False, timeout: float | None = None
    ) -> AsyncRetention:
        """See `Store.retain_many`."""
        call = retention.retain_many(keys, ttl, hard)
        found = await self._run(call, timeout)
        retained = AsyncRetention(self._run, found)
        if hard and (refusal := retention.hard_refusal(call.keys, found)):
            async with retained:
                raise refusal
        return retained

    async def scan(self, prefix: Key = b"", timeout: float | None = None) -> AsyncIterator[KeyInfo]:
        """See `Store.scan`."""
        cursor = 0
        while True:
            page, cursor = await self._run(operations.scan(prefix, cursor), timeout)
            for info in page:
                yield info
            if cursor == 0:
                return

    async def put_file(
        self,
        key: Key,
        path: str | PathLike[str],
        ttl: float | None = None,
        if_absent: bool = False,
        timeout: float | None = None,
    ) -> PutResult:
        """See `Store.put_file`."""
        most, chunk = self._value_bytes_max, self._chunk_bytes
        call = await asyncio.to_thread(put_file, key, path, ttl, if_absent, most, chunk)
        return await self._run(call, timeout)

    async def get_file(
        self,
        key: Key,
        path: str | PathLike[str],
        timeout: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int | None:
        """See `Store.get_file`."""
        place = Path(path)
        seconds = self._target.timeout if timeout is None else url.check_timeout(timeout)
        for _ in range(streams.restart_count_max(place)):
            with contextlib.suppress(ChangedError):
                return await self._copy(key, place, seconds, progress)
        return await self._copy(key, place, seconds, progress)

    def allocate(self, nbytes: int) -> _kernel.Region:
        """See `Store.allocate`."""
        return _kernel.Region(self._dialer.regions, check_nbytes(nbytes), self._tend)

    def _tend(self) -> None:
        """Have the node forget regions that were closed."""
        for connection in [*self._shared.values(), *self._exclusive, *self._lent]:
            connection.tend()

    async def admin(
        self, command: str, payload: Payload | None = None, timeout: float | None = None
    ) -> Payload:
        """See `Store.admin`."""
        return await self._run(operations.admin(command, payload), timeout)

    async def info(self, timeout: float | None = None) -> Payload:
        """See `Store.info`."""
        return await self.admin("info", timeout=timeout)

    async def close(self) -> None:
        """Close all connections; calls under way fail with UnavailableError."""
        self._closed = True
        for connection in [*self._shared.values(), *self._exclusive, *self._lent]:
            connection.close()
        self._shared.clear()
        self._exclusive.clear()

    async def __aenter__(self) -> Self:
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncStore {self.url}>"

    async def _open(self) -> Self:
        """Connect, and learn the node's limits."""
        first = await self._shared_connection(0, Attempts(self._target.timeout))
        self._shard_count = first.shard_count
        self._value_bytes_max = first.value_bytes_max
        self._chunk_bytes = first.chunk_bytes
        return self

    async def _run(self, call: Call[O, T], timeout: float | None) -> T:
        """Try until there is an outcome or no further try is allowed."""
        attempts = Attempts(self._target.timeout if timeout is None else url.check_timeout(timeout))
        while True:
            operation = call.build()
            try:
                done = await self._execute(operation, call, attempts)
            except BusyError:  # No connection to be had: as if the node had said so.
                pause = attempts.pause(BUSY, safe=True)
                if pause is None:
                    raise
                await asyncio.sleep(pause)
                continue
            if not done:
                raise call.failed(_kernel.TIMED_OUT)
            status = call.settle(operation)
            pause = attempts.pause(status, safe=call.safe or operation.unsent)
            if pause is None:
                return call.result(operation)
            await asyncio.sleep(pause)

    async def _copy(
        self,
        key: Key,
        path: Path,
        timeout: float,
        progress: Callable[[int, int], None] | None,
    ) -> int | None:
        piece = bytearray(streams.PIECE_BYTES)
        reading = streams.Reading(key)
        if not reading.accept(await self.get_range_into(key, 0, piece, timeout)):
            return None
        with contextlib.ExitStack() as stack:
            opening = streams.replacing(path, timeout)
            file = await asyncio.to_thread(stack.enter_context, opening)  # May wait for a pipe.
            written = 0
            while True:
                part = memoryview(piece)[: reading.offset - written]
                await asyncio.to_thread(file.write_all, part)
                written = reading.offset
                if progress is not None:
                    progress(written, reading.size)
                if reading.ended:
                    await asyncio.to_thread(file.to_disk)
                    return reading.size
                reading.accept(await self.get_range_into(key, reading.offset, piece, timeout))

    async def _execute(self, operation: O, call: Call[O, T], attempts: Attempts) -> bool:
        if call.fills:
            return await self._execute_alone(operation, attempts)
        shard = 0
        if self._shard_count > 1 and call.key is not None:
            shard = _kernel.key_slot(call.key) * self._shard_count // limits.SLOT_COUNT
        connection = self._shared.get(shard)
        if connection is None or not connection.usable:
            connection = await self._shared_connection(shard, attempts)
        return await connection.execute(operation, attempts.remaining())

    async def _execute_alone(self, operation: _kernel.Operation, attempts: Attempts) -> bool:
        try:
            async with asyncio.timeout(attempts.remaining()):
                await self._exclusive_free.acquire()
        except builtins.TimeoutError:
            return False
        try:
            connection = await self._exclusive_connection(attempts)
            self._lent.add(connection)
            try:
                return await connection.execute(operation, attempts.remaining())
            finally:
                self._lent.discard(connection)
                if operation.done and connection.usable:
                    self._exclusive.append(connection)
                else:  # From here on nobody writes into the caller's memory.
                    connection.close()
        finally:
            self._exclusive_free.release()

    async def _exclusive_connection(self, attempts: Attempts) -> EventConnection:
        while self._exclusive:
            connection = self._exclusive.pop()
            if connection.usable:
                return connection
        async with self._connecting(attempts):
            return await self._connect(None, attempts)

    async def _shared_connection(self, shard: int, attempts: Attempts) -> EventConnection:
        """The one to that shard, opened by the first who needs it."""
        opening = self._opening.setdefault(shard, asyncio.Lock())
        async with self._connecting(attempts), opening:
            connection = self._shared.get(shard)
            if connection is None or not connection.usable:
                wanted = shard if self._shard_count > 1 else None
                connection = await self._connect(wanted, attempts)
                self._shared[shard] = connection
            return connection

    @contextlib.asynccontextmanager
    async def _connecting(self, attempts: Attempts) -> AsyncIterator[None]:
        """Bound what no connection can: waiting for a thread, or for a call that connects."""
        try:
            async with asyncio.timeout(attempts.remaining() + _TELLING_S) as limit:
                yield
        except builtins.TimeoutError:
            if not limit.expired():  # The connection's own.
                raise
            why = "no thread of the loop's executor was free, or another call was still connecting"
            raise failure(_kernel.TIMED_OUT, f"connecting to {self._target}", why) from None

    async def _connect(self, shard: int | None, attempts: Attempts) -> EventConnection:
        if self._closed:
            raise closed_store(self._target)
        loop = asyncio.get_running_loop()
        remaining = attempts.remaining()
        opened = await loop.run_in_executor(None, self._dialer.open, shard, remaining)
        return EventConnection(opened)
