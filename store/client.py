"""The blocking client: a `Store` is one pool of one node, used from any number of threads."""

import io
import time
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Literal, Self, TypeVar

from kvstrata import _kernel
from kvstrata.store import batch_operations, config, operations, retention, tensors, url
from kvstrata.store.batch_operations import Pairs
from kvstrata.store.buffers import REFUSALS, Memory, Tensor, check_nbytes
from kvstrata.store.call import Call
from kvstrata.store.connection_pool import ConnectionPool
from kvstrata.store.errors import BusyError
from kvstrata.store.file_content import put_file
from kvstrata.store.operations import Key
from kvstrata.store.payloads import Payload
from kvstrata.store.results import KeyInfo, ObjectStat, Outcome, PutResult, RangeResult, Transport
from kvstrata.store.retention import Retention
from kvstrata.store.retry import Attempts
from kvstrata.store.statuses import BUSY, NOT_FOUND, OK
from kvstrata.store.streams import copy_to_file, open_object

O = TypeVar("O", bound=_kernel.Operation)  # noqa: E741
T = TypeVar("T")


def connect(
    address: str | None = None,
    *,
    pool: str | None = None,
    secret: str | None = None,
    timeout: float | None = None,
    verify: bool | None = None,
    spin: bool | int | None = None,
    transport: str | None = None,
    client_name: str | None = None,
) -> "Store":
    """Connect to a node. Arguments go before what the URL says.

    Args:
        address: `kvstrata://pool:secret@host:18400?timeout=2&spin=0`; None: KVSTRATA_URL, or else
            a node on this host.
        pool: name of the pool; `default` if neither it nor the URL says another.
        secret: the pool's secret, if it has one.
        timeout: seconds that a call may take unless it says otherwise; 10.
        verify: whether checksums of values are verified on arrival; True.
        spin: whether to look for a reply for a few microseconds before sleeping, or for how many;
            True: lower latency for some processor time.
        transport: "tcp"; "shm", shared memory, or "unix", a UNIX socket, both for a node on
            this host; "auto", the best that works. `Store.transport` tells which that is.
        client_name: text for the node's operator; host name and process id.

    Raises:
        UsageError: an argument or the URL is not right.
        DeniedError: the secret is wrong, or the pool does not exist.
        UnavailableError: no node answers there, or not by that transport.
    """
    return Store(target_from(address, pool, secret, timeout, verify, spin, transport, client_name))


def target_from(
    address: str | None,
    pool: str | None,
    secret: str | None,
    timeout: float | None,
    verify: bool | None,
    spin: bool | int | None,
    transport: str | None,
    client_name: str | None,
) -> url.Target:
    """Where `connect` and `connect_async` go with these arguments."""
    said = url.parse(address or config.url_from_environment() or url.DEFAULT_URL)
    return url.changed(
        said,
        pool=pool,
        secret=secret,
        timeout=timeout,
        verify=verify,
        spin=spin,
        transport=transport,
        client_name=client_name,
    )


class Store:
    """Puts and gets objects. Thread-safe; after a fork the child may go on using it.

    Keys are bytes or str (UTF-8). `timeout` is in seconds and bounds the whole call with its
    retries; None takes the store's. Every call may raise `UnavailableError` (`BusyError`,
    `TimeoutError`), `DeniedError`, and `UsageError` for arguments that are not right.
    """

    def __init__(self, target: url.Target) -> None:
        self._target = target
        self._timeout = target.timeout
        self._timeout_ms = round(target.timeout * 1000)
        self._pool = ConnectionPool(target)

    @property
    def url(self) -> str:
        """Where the store is, without its secret."""
        return str(self._target)

    @property
    def transport(self) -> Transport:
        """How bytes travel, and why so: "shm", "unix" or "tcp"."""
        return self._pool.dialer.transport

    @property
    def value_bytes_max(self) -> int:
        """Bytes of the largest value that the node could hold; a pool's quota may allow less."""
        return self._pool.value_bytes_max

    def put(
        self,
        key: Key,
        value: Memory,
        ttl: float | None = None,
        if_absent: bool = False,
        timeout: float | None = None,
    ) -> PutResult:
        """Put a value under a key; it is visible whole, or not at all.

        Args:
            key: up to 4096 bytes.
            value: bytes, bytearray, memoryview, mmap, or an array of numpy or torch in host
                memory; its elements must lie in one piece.
            ttl: seconds until it expires; None: the pool's default; math.inf: never.
            if_absent: leave an object that is there as it is; the result then is `existed`.

        Raises:
            ImmutableError: the key exists in an immutable pool.
            NoSpaceError: the pool is full and may not evict.
            TooLargeError: the value is larger than the pool could ever hold.
        """
        if ttl is None and not if_absent:
            try:
                if type(key) is str:
                    key = key.encode()
                operation = _kernel.Put(key, value)  # type: ignore[arg-type]
            except REFUSALS:  # Told in words, or made into what can be taken, below.
                pass
            else:
                started = self._execute(operation, key, timeout)  # type: ignore[arg-type]
                if operation.status == OK:
                    return operations.put_result(operation, key, 0)  # type: ignore[arg-type]
                call = operations.put(key, value, ttl, if_absent)
                return self._finish(call, timeout, operation, started)
        return self._run(operations.put(key, value, ttl, if_absent), timeout)

    def get(self, key: Key, timeout: float | None = None) -> bytes | None:
        """The value, or None where the key is absent.

        Raises:
            CorruptError: the value did not arrive as it was put.
        """
        try:
            if type(key) is str:
                key = key.encode()
            operation = _kernel.Get(key)
        except REFUSALS:
            return self._run(operations.get(key), timeout)
        started = self._execute(operation, key, timeout)  # type: ignore[arg-type]
        if operation.status == OK:
            return operation.value  # type: ignore[return-value]
        if operation.status == NOT_FOUND:
            return None
        return self._finish(operations.get(key), timeout, operation, started)

    def get_into(self, key: Key, buffer: Memory, timeout: float | None = None) -> int | None:
        """Receive the value straight into the buffer.

        Args:
            buffer: bytearray, writable memoryview, mmap, or an array of numpy or torch in host
                memory, in one piece. It may be larger than the value.

        Returns:
            The value's size in bytes, or None where the key is absent.

        Raises:
            TooSmallError: the buffer is smaller than the value; `size` tells the true size.
            CorruptError: the value did not arrive as it was put; the buffer's content is void.
        """
        try:
            if type(key) is str:
                key = key.encode()
            operation = _kernel.Get(key, buffer)  # type: ignore[arg-type]
        except REFUSALS:
            return self._run(operations.get_into(key, buffer), timeout)
        started = self._execute(operation, key, timeout)  # type: ignore[arg-type]
        if operation.status == OK:
            return operation.length
        if operation.status == NOT_FOUND:
            return None
        return self._finish(operations.get_into(key, buffer), timeout, operation, started)

    def get_range(
        self, key: Key, offset: int, length: int, timeout: float | None = None
    ) -> bytes | None:
        """Bytes of the value from `offset`, fewer where it ends; None where the key is absent."""
        return self._run(operations.get_range(key, offset, length), timeout)

    def get_range_into(
        self, key: Key, offset: int, buffer: Memory, timeout: float | None = None
    ) -> RangeResult | None:
        """Fill the buffer from `offset` of the value; None where the key is absent."""
        return self._run(operations.get_range_into(key, offset, buffer), timeout)

    def put_tensor(
        self,
        key: Key,
        tensor: Tensor,
        ttl: float | None = None,
        if_absent: bool = False,
        timeout: float | None = None,
    ) -> PutResult:
        """Put an array of numpy or torch with its dtype and shape. Otherwise as `put`."""
        attributes = tensors.describe(tensor)
        return self._run(operations.put(key, tensor, ttl, if_absent, attributes), timeout)

    def get_tensor(
        self,
        key: Key,
        framework: Literal["numpy", "torch"] = "numpy",
        timeout: float | None = None,
    ) -> tensors.Array | None:
        """A new array with the dtype and shape it was put with; None where the key is absent.

        Raises:
            UsageError: it was not put as a tensor, or the framework has no such dtype.
        """
        return self._run(operations.get_tensor(key, framework), timeout)

    def exists(self, key: Key, timeout: float | None = None) -> bool:
        """Whether the key is there."""
        return self._run(operations.exists(key), timeout)

    def stat(self, key: Key, timeout: float | None = None) -> ObjectStat | None:
        """What the node knows about the object; None where the key is absent."""
        return self._run(operations.stat(key), timeout)

    def delete(self, key: Key, timeout: float | None = None) -> bool:
        """Remove the object. Returns whether it was there."""
        return self._run(operations.delete(key), timeout)

    def expire(self, key: Key, seconds: float | None, timeout: float | None = None) -> bool:
        """Let the object expire after that time, or never. Returns whether it was there."""
        return self._run(operations.expire(key, seconds), timeout)

    def append(self, key: Key, data: Memory, at: int, timeout: float | None = None) -> int:
        """Add data behind the object's end, if that is at `at`; 0 creates it.

        Returns:
            The object's new length in bytes.

        Raises:
            MismatchError: it ends elsewhere; `length` tells where.
        """
        return self._run(operations.append(key, data, at), timeout)

    def put_many(
        self,
        pairs: Pairs,
        ttl: float | None = None,
        if_absent: bool = False,
        timeout: float | None = None,
    ) -> list[Outcome]:
        """Put many values, each as `put` does. What was done with each, in order.

        Raises:
            BatchError: some failed; `outcomes` has one element a key.
        """
        return self._run(batch_operations.put_many(pairs, ttl, if_absent), timeout)

    def get_many(self, keys: Iterable[Key], timeout: float | None = None) -> list[bytes | None]:
        """One value a key, in order; None where it is absent. Raises BatchError as `put_many`."""
        return self._run(batch_operations.get_many(keys), timeout)

    def get_many_into(
        self, keys: Iterable[Key], buffers: Iterable[Memory], timeout: float | None = None
    ) -> list[int | None]:
        """Receive each value into its buffer. Sizes, in order; None where a key is absent.

        Raises:
            BatchError: some failed, among them values larger than their buffer (TooSmallError).
        """
        return self._run(batch_operations.get_many_into(keys, buffers), timeout)

    def exists_many(self, keys: Iterable[Key], timeout: float | None = None) -> list[bool]:
        """Whether each key is there, in order."""
        return self._run(batch_operations.exists_many(keys), timeout)

    def delete_many(self, keys: Iterable[Key], timeout: float | None = None) -> list[bool]:
        """Remove the objects. Whether each was there, in order."""
        return self._run(batch_operations.delete_many(keys), timeout)

    def expire_many(
        self, keys: Iterable[Key], seconds: float | None, timeout: float | None = None
    ) -> list[bool]:
        """Let the objects expire after that time, or never. Whether each was there, in order."""
        return self._run(batch_operations.expire_many(keys, seconds), timeout)

    def prefix_length(self, keys: Iterable[Key], timeout: float | None = None) -> int:
        """How many of the keys exist, counted from the first up to the first that is absent."""
        return self._run(batch_operations.prefix_length(keys), timeout)

    def retain_many(
        self, keys: Iterable[Key], ttl: float, hard: bool = False, timeout: float | None = None
    ) -> Retention:
        """Keep the objects of these keys from eviction for `ttl` seconds, at most an hour.

        Softly, they are evicted last: only once the shard has nothing else of the pool to give.
        That is a wish: look at the outcomes for keys that could not be retained. Hard, they are not
        evicted at all. That is a promise, within the pool's `retained_max`, for which the admin
        right is needed; puts may find the node busy for it.

        Raises:
            BusyError: hard, and more than the pool may retain; nothing was retained.
            TooLargeError: hard, and an object alone is larger than that; nothing was retained.
        """
        call = retention.retain_many(keys, ttl, hard)
        found = self._run(call, timeout)
        retained = Retention(self._run, found)
        if hard and (refusal := retention.hard_refusal(call.keys, found)):
            with retained:  # What could be retained is given back.
                raise refusal
        return retained

    def scan(self, prefix: Key = b"", timeout: float | None = None) -> Iterator[KeyInfo]:
        """All keys with the prefix, with their sizes, in no order; some may come twice.

        Keys that are put or removed meanwhile may be met or not. `timeout` bounds each page.
        """
        cursor = 0
        while True:
            page, cursor = self._run(operations.scan(prefix, cursor), timeout)
            yield from page
            if cursor == 0:
                return

    def put_file(
        self,
        key: Key,
        path: str | PathLike[str],
        ttl: float | None = None,
        if_absent: bool = False,
        timeout: float | None = None,
    ) -> PutResult:
        """Put a file's content, without reading it into memory as a whole.

        It is read twice, first for its checksums. A pipe or a device is read once, into memory.

        Raises:
            OSError: the file cannot be read.
            ChangedError: the file was changed meanwhile; nothing was stored.
            TooLargeError: it has more bytes than the node could hold, or does not end before.
        """
        most, chunk = self._pool.value_bytes_max, self._pool.chunk_bytes
        return self._run(put_file(key, path, ttl, if_absent, most, chunk), timeout)

    def get_file(
        self,
        key: Key,
        path: str | PathLike[str],
        timeout: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int | None:
        """Write the value to a file, piece by piece; the file appears whole, or not at all.

        A file that is there keeps its mode, a link stays one. What is no regular file, such as a
        pipe or a device, receives the pieces as they come.

        Args:
            timeout: seconds for each piece of 8 MiB, and until somebody reads a pipe.
            progress: called after each piece with the bytes written and the value's size.

        Returns:
            The value's size, or None where the key is absent; there is no file then.

        Raises:
            ChangedError: the object kept being replaced while it was read.
            OSError: the file cannot be written.
            TimeoutError: nobody reads the pipe.
        """
        seconds = self._timeout if timeout is None else url.check_timeout(timeout)
        return copy_to_file(self, key, Path(path), seconds, progress)

    def open(
        self, key: Key, mode: Literal["rb", "wb", "ab"] = "rb", timeout: float | None = None
    ) -> io.BufferedIOBase:
        """The object as a binary file.

        "rb" reads by ranges, with readahead, and can seek. "wb" gathers what is written in memory
        and puts it when the file is closed, or nothing if the `with` block is left by an
        exception. "ab" appends in pieces.

        Raises:
            FileNotFoundError: "rb", and the key is absent.
        """
        return open_object(self, key, mode, timeout)

    def allocate(self, nbytes: int) -> _kernel.Region:
        """Memory that a node on this host copies values to and from itself, without a detour.

        It is the memory of `get_into`, `get_many_into`, `put` and `put_many` where these are to be
        fast: whole, or in slices of a view of it. With a node on another host, it is memory as any.

        Raises:
            UsageError: `nbytes` is below 1.
            MemoryError: there is not so much.
        """
        return _kernel.Region(self._pool.dialer.regions, check_nbytes(nbytes), self._pool.tend)

    def admin(
        self, command: str, payload: Payload | None = None, timeout: float | None = None
    ) -> Payload:
        """Run an administrative command of the node; `help` lists them."""
        return self._run(operations.admin(command, payload), timeout)

    def info(self, timeout: float | None = None) -> Payload:
        """What the node is: version, shards, memory, uptime in seconds."""
        return self.admin("info", timeout=timeout)

    def close(self) -> None:
        """Close all connections. Calls under way in other threads still end."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self.url}>"

    def _execute(
        self, operation: _kernel.Operation, key: bytes | None, timeout: float | None
    ) -> float:
        """One try over some connection. Returns when it began, on the monotonic clock."""
        if timeout is None:
            timeout, timeout_ms = self._timeout, self._timeout_ms
        else:
            timeout_ms = max(1, round(url.check_timeout(timeout) * 1000))
        pool = self._pool
        many = pool.shard_count > 1 and key is not None
        lane = pool.acquire(pool.shard_of(key) if many else 0, timeout)  # type: ignore[arg-type]
        try:
            lane.connection.execute_one(operation, timeout_ms)
        except BaseException:  # A signal's exception, mostly: the stream is in mid-flight.
            pool.discard(lane)
            raise
        if operation.status < _kernel.CLOSED:
            pool.release(lane)
        else:
            pool.discard(lane)
            pool.doubt()
        return lane.used_at

    def _run(self, call: Call[O, T], timeout: float | None) -> T:
        return self._finish(call, timeout, None, monotonic())

    def _finish(
        self, call: Call[O, T], timeout: float | None, operation: O | None, started: float
    ) -> T:
        """Try until there is an outcome or no further try is allowed.

        Args:
            operation: a first try that has ended already, if there was one.
            started: when that began.
        """
        attempts = Attempts(self._timeout if timeout is None else timeout, started)
        while True:
            if operation is None:
                operation = call.build()
                try:
                    self._execute(operation, call.key, attempts.remaining())
                except BusyError:  # No connection to be had: as if the node had said so.
                    pause = attempts.pause(BUSY, safe=True)
                    if pause is None:
                        raise
                    time.sleep(pause)
                    operation = None
                    continue
            status = call.settle(operation)
            pause = attempts.pause(status, safe=call.safe or operation.unsent)
            if pause is None:
                return call.result(operation)
            time.sleep(pause)
            operation = None
