"""A node and its connections without a wire: the shapes of `_kernel.pyi`, and faults on demand.

For what a real node does not do when asked to: break at a chosen moment, be busy, stay silent.
"""

import itertools
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import pytest
from typing_extensions import Buffer

from kvstrata import _kernel

CLOSED = _kernel.CLOSED
TIMED_OUT = _kernel.TIMED_OUT
BUSY = 6
FOREVER = 2**64 - 1
CHUNK_BYTES = 1_000


TAKEN_OVER = (
    *("Get", "GetMany", "FileSource", "Put", "PutMany"),
    *("KeysOnly", "Retain", "Stat", "Scan", "Admin"),
)


@dataclass
class FakeNode:
    """What all connections of a test talk to.

    `faults` is used up one an operation: a status to end with, "unsent" for a connection that
    broke before anything was sent, or "silent" for an answer that does not come.
    """

    objects: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict)
    versions: dict[bytes, int] = field(default_factory=dict)
    retentions: set[bytes] = field(default_factory=set)  # Handles.
    refused: dict[bytes, int] = field(default_factory=dict)  # Status of keys not to be retained.
    faults: deque[int | str] = field(default_factory=deque)
    refusals: deque[int] = field(default_factory=deque)
    connections: list["FakeConnection"] = field(default_factory=list)
    requests: list["Request"] = field(default_factory=list)
    unix_path: str = ""
    stays_on_host: bool = True
    has_memory: bool = True  # To share.
    node_ids: dict[str, bytes] = field(default_factory=dict)  # By path; that of TCP is "".
    shard_count: int = 1
    value_bytes_max: int = 1 << 30

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Self:
        """Take the place of the native operations and connections, until the test ends."""
        node = self

        class Connection(FakeConnection):
            def __init__(self, _host: str, _port: int, **options: object) -> None:
                super().__init__(node, options)

        fakes = {name: globals()[name] for name in TAKEN_OVER}
        for name, fake in {**fakes, "Connection": Connection}.items():
            monkeypatch.setattr(_kernel, name, fake)
        return self


class Request(NamedTuple):
    operation: "FakeOperation"
    timeout_ms: int | None
    connection: "FakeConnection"


class FakeConnection:
    def __init__(self, node: FakeNode, options: dict[str, object]) -> None:
        self.node = node
        self.options = options
        self.status = node.refusals.popleft() if node.refusals else 0
        self.message = f"refused with {self.status}" if self.status else ""
        self.path = str(options["unix_path"])
        self.node_id = node.node_ids.get(self.path, b"")
        self.unix_path = node.unix_path
        self.stays_on_host = node.stays_on_host
        self.shares_memory = node.has_memory and options["regions"] is not None
        self.shard_count = node.shard_count
        self.value_bytes_max = node.value_bytes_max
        self.chunk_bytes = CHUNK_BYTES
        self.abandoned = False
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)
        self._submitted: list[FakeOperation] = []
        node.connections.append(self)

    def execute_one(self, operation: "FakeOperation", timeout_ms: int) -> None:
        self.node.requests.append(Request(operation, timeout_ms, self))
        self._perform(operation)

    def submit(self, operation: "FakeOperation") -> None:
        self.node.requests.append(Request(operation, None, self))
        self._submitted.append(operation)
        self._perform(operation)

    def _perform(self, operation: "FakeOperation") -> None:
        fault = self.node.faults.popleft() if self.node.faults else 0
        if self.status or fault in (CLOSED, TIMED_OUT, "unsent"):
            operation.unsent = fault == "unsent"
            self.status = CLOSED
            operation.end(TIMED_OUT if fault == TIMED_OUT else CLOSED)
        elif fault == "silent":
            pass
        elif isinstance(fault, int) and fault:
            operation.end(fault)
        else:
            operation.perform(self.node)

    def progress(self) -> list["FakeOperation"]:
        ended = [operation for operation in self._submitted if operation.done]
        self._submitted = [operation for operation in self._submitted if not operation.done]
        return ended

    def answer_silent(self) -> None:
        """Let what stayed silent be answered after all."""
        for operation in self._submitted:
            operation.perform(self.node)
        self._there.send(b"x")

    @property
    def wants_write(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._here.fileno()

    def close(self) -> None:
        self.status = CLOSED
        for operation in self._submitted:
            if not operation.done:
                operation.end(CLOSED)
        self._here.close()
        self._there.close()

    def abandon(self) -> None:
        self.abandoned = True
        self.close()


def as_bytes(keys: Sequence[bytes | str]) -> list[bytes]:
    names = [key.encode() if isinstance(key, str) else key for key in keys]
    for name in names:
        if not isinstance(name, bytes):
            raise TypeError("a key must be bytes or str")
        if len(name) > 4096:
            raise ValueError("a key is too long")
    return names


class FakeOperation:
    keys: list[bytes]

    def __init__(self) -> None:
        self.done = False
        self.status = 0
        self.message = ""
        self.unsent = False
        self.statuses: list[int] = []

    @property
    def status_set(self) -> int:
        return sum(1 << status for status in set(self.statuses))

    def end(self, status: int) -> None:
        self.done = True
        self.status = status
        self.statuses = [status] * len(self.keys)

    def perform_one(self, node: FakeNode, index: int, key: bytes, /) -> int:
        raise NotImplementedError

    def perform(self, node: FakeNode) -> None:
        self.statuses = [self.perform_one(node, i, key) for i, key in enumerate(self.keys)]
        self.done = True


class Single(FakeOperation):
    def __init__(self, key: bytes) -> None:
        super().__init__()
        if not isinstance(key, bytes):
            raise TypeError("a key must be bytes")
        self.keys = [key]

    def perform(self, node: FakeNode) -> None:
        super().perform(node)
        self.status = self.statuses[0]


class Get(Single):
    def __init__(
        self,
        key: bytes,
        buffer: Buffer | None = None,
        *,
        allocate: Callable[[int], Buffer] | None = None,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        super().__init__(key)
        self.sink = None if buffer is None else memoryview(buffer)
        if self.sink is not None and (self.sink.readonly or not self.sink.c_contiguous):
            raise BufferError("not writable and contiguous")
        self.allocate, self.offset, self.wanted = allocate, offset, length
        self.value: Buffer | None = None
        self.length, self.value_length, self.version = 0, 0, 0
        self.attributes = b""

    def perform_one(self, node: FakeNode, _index: int, key: bytes, /) -> int:
        if key not in node.objects:
            return 1
        value, self.attributes = node.objects[key]
        self.value_length, self.version = len(value), node.versions[key]
        if self.wanted is not None:
            value = value[self.offset : self.offset + self.wanted]
        if self.allocate is not None:
            self.value = self.allocate(len(value))
            memoryview(self.value).cast("B")[:] = value
        elif self.sink is None:
            self.value = value
        elif self.sink.nbytes < len(value):
            return 3
        else:
            self.sink.cast("B")[: len(value)] = value
        self.length = len(value)
        return 0


class GetMany(FakeOperation):
    def __init__(
        self, keys: Sequence[bytes | str], buffers: Sequence[Buffer] | None = None
    ) -> None:
        super().__init__()
        self.keys = as_bytes(keys)
        self.buffers = buffers
        self.values: list[Buffer | None] = [None] * len(self.keys)
        self.lengths: list[int | None] = [None] * len(self.keys)

    def perform_one(self, node: FakeNode, index: int, key: bytes, /) -> int:
        sink = None if self.buffers is None else self.buffers[index]
        one = Get(key, sink)
        status = one.perform_one(node, 0, key)
        self.values[index] = one.value
        self.lengths[index] = one.value_length if status in (0, 3) else None
        return status


class FileSource:
    def __init__(self, descriptor: int, length: int, checksums: Sequence[int]) -> None:
        self.descriptor, self.length, self.checksums = os.dup(descriptor), length, checksums

    def __del__(self) -> None:
        os.close(self.descriptor)

    def read(self) -> bytes | None:
        """None where a checksum does not match."""
        data = os.pread(self.descriptor, self.length, 0).ljust(self.length, b"\0")
        pieces = [data[i : i + CHUNK_BYTES] for i in range(0, self.length, CHUNK_BYTES)]
        return data if self.checksums == [*map(_kernel.chunk_checksum, pieces)] else None


class Put(Single):
    def __init__(
        self,
        key: bytes,
        value: Buffer | FileSource,
        *,
        ttl_ms: int = 0,
        if_absent: bool = False,
        append_at: int | None = None,
        attributes: bytes = b"",
    ) -> None:
        super().__init__(key)
        self.data: bytes | None
        if isinstance(value, FileSource):
            self.data = value.read()
        else:
            self.data = bytes(memoryview(value).cast("B")) if len(memoryview(value)) else b""
        self.ttl_ms, self.if_absent, self.append_at = ttl_ms, if_absent, append_at
        self.attributes = attributes
        self.result, self.value_length, self.version = 3, 0, 0

    def perform_one(self, node: FakeNode, _index: int, key: bytes, /) -> int:
        if self.data is None:
            return 11
        before, attributes = node.objects.get(key, (b"", self.attributes))
        exists = key in node.objects
        self.value_length, self.version = len(before), node.versions.get(key, 0)
        if self.if_absent and exists:
            return 2
        if self.append_at not in (None, len(before)):
            return 4
        whole = self.data if self.append_at is None else before + self.data
        attributes = self.attributes if self.append_at is None else attributes
        node.objects[key] = (whole, attributes)
        self.version = node.versions[key] = node.versions.get(key, 0) + 1
        self.value_length = len(whole)
        self.result = 2 if self.append_at is not None else int(exists)
        return 0


class PutMany(FakeOperation):
    def __init__(
        self,
        keys: Sequence[bytes | str],
        values: Sequence[Buffer],
        *,
        ttl_ms: int = 0,
        if_absent: bool = False,
    ) -> None:
        super().__init__()
        self.keys = as_bytes(keys)
        self.values, self.ttl_ms, self.if_absent = values, ttl_ms, if_absent
        self.results = [3] * len(self.keys)

    def perform_one(self, node: FakeNode, index: int, key: bytes, /) -> int:
        one = Put(key, self.values[index], if_absent=self.if_absent)
        status = one.perform_one(node, 0, key)
        self.results[index] = one.result
        return status


class KeysOnly(FakeOperation):
    def __init__(self, opcode: int, keys: Sequence[bytes | str], *, ttl_ms: int = 0) -> None:
        super().__init__()
        self.opcode, self.keys, self.ttl_ms = opcode, as_bytes(keys), ttl_ms

    def perform_one(self, node: FakeNode, _index: int, key: bytes, /) -> int:
        if self.opcode in (65, 66):
            known = key in node.retentions
            if self.opcode == 65:
                node.retentions.discard(key)
            return 0 if known else 1
        exists = key in node.objects
        if self.opcode == 18:
            node.objects.pop(key, None)
        return 0 if exists else 1

    @property
    def present(self) -> list[bool]:
        return [status == 0 for status in self.statuses]

    @property
    def prefix_length(self) -> int:
        return next((i for i, status in enumerate(self.statuses) if status), len(self.keys))


class Retain(FakeOperation):
    """All keys of an operation get one handle, and each operation another."""

    _handles = itertools.count(7)

    def __init__(self, keys: Sequence[bytes | str], *, ttl_ms: int, hard: bool) -> None:
        super().__init__()
        self.keys, self.ttl_ms, self.hard = as_bytes(keys), ttl_ms, hard
        self.handles = [0] * len(self.keys)
        self._handle = next(self._handles)

    def perform_one(self, node: FakeNode, index: int, key: bytes, /) -> int:
        if key not in node.objects:
            return 1
        if key in node.refused:
            return node.refused[key]
        node.retentions.add(self._handle.to_bytes(8, "little"))
        self.handles[index] = self._handle
        return 0


class Stat(Single):
    location, chunk_count, ttl_left_ms = 1, 1, FOREVER

    def perform_one(self, node: FakeNode, _index: int, key: bytes, /) -> int:
        if key not in node.objects:
            return 1
        value, self.attributes = node.objects[key]
        self.value_length, self.version = len(value), node.versions[key]
        return 0


class Scan(Single):
    def __init__(self, prefix: bytes, cursor: int, _count: int) -> None:
        super().__init__(prefix)
        self.prefix = prefix
        self.cursor = cursor

    def perform(self, node: FakeNode) -> None:
        """Pages of two keys."""
        found = sorted(key for key in node.objects if key.startswith(self.prefix))
        page = found[self.cursor : self.cursor + 2]
        self.keys = [(key, len(node.objects[key][0])) for key in page]  # type: ignore[misc]
        self.cursor = self.cursor + 2 if self.cursor + 2 < len(found) else 0
        self.done = True


class Admin(Single):
    def __init__(self, name: str, payload: bytes) -> None:
        super().__init__(name.encode())
        self.payload = payload

    def perform_one(self, _node: FakeNode, _index: int, _name: bytes, /) -> int:
        return 0
