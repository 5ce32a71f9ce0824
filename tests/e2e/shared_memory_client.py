"""A client through shared memory, over nothing but a socket and an mmap: what a stranger would
write, or somebody who means harm.
"""

import itertools
import mmap
import os
import socket
import struct
import time
from types import TracebackType
from typing import Final, Self

from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Completion, Entry, Hello, Request

WAIT_S: Final = 10.0
FEATURES: Final = 5  # The hello's attribute, and its bit for shared memory.
RINGS: Final = 1

# Where the lines lie, and what is in them (PROTOCOL.md, section 8).
SUBMISSION_WRITER, SUBMISSION_READER, COMPLETION_WRITER, COMPLETION_READER = range(128, 640, 128)
SLEEPS: Final = 8
FIRST_RING: Final = 4096


class RingConnection:
    """One connection whose rings are there."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(WAIT_S)
        self.socket.connect(path)
        self.socket.sendall(Hello(body=wire.attribute(FEATURES, RINGS)).encode())
        answer, descriptors, _, _ = socket.recv_fds(self.socket, 1 << 16, 4)
        self.hello = wire.decode_hello(answer)
        assert self.hello.number(FEATURES) == RINGS
        assert len(descriptors) == 1
        self.memory = mmap.mmap(descriptors[0], 0)
        os.close(descriptors[0])
        assert self.memory[:8] == b"KVSring\0"
        self.ring_bytes = struct.unpack_from("<I", self.memory, 12)[0]
        self._written = 0
        self._read = 0
        self._ids = itertools.count(1)

    def set_line(self, place: int, value: int) -> None:
        struct.pack_into("<Q", self.memory, place, value)

    def line(self, place: int) -> int:
        return int(struct.unpack_from("<Q", self.memory, place)[0])

    def ring_doorbell(self) -> None:
        self.socket.send(b"!")

    def send(self, data: bytes) -> None:
        """As much as fits; no more is needed here."""
        assert len(data) <= self.ring_bytes - (self._written - self.line(SUBMISSION_READER))
        for part, place in self._places(FIRST_RING, self._written, data):
            self.memory[place : place + len(part)] = part
        self._written += len(data)
        self.set_line(SUBMISSION_WRITER, self._written)
        self.ring_doorbell()

    def receive(self, count: int) -> bytes:
        """By looking again and again: it never says that it sleeps."""
        deadline = time.monotonic() + WAIT_S
        while self.line(COMPLETION_WRITER) - self._read < count:
            assert time.monotonic() < deadline, "no completion"
            time.sleep(0.001)
        base = FIRST_RING + self.ring_bytes
        places = self._places(base, self._read, bytes(count))
        data = b"".join(self.memory[place : place + len(part)] for part, place in places)
        self._read += count
        self.set_line(COMPLETION_READER, self._read)
        return data

    def _places(self, base: int, count: int, data: bytes) -> list[tuple[bytes, int]]:
        """The one or two parts of the data, and where in the memory they lie."""
        at = count % self.ring_bytes
        first = data[: self.ring_bytes - at]
        return [(first, base + at), (data[len(first) :], base)]

    def begin(self, opcode: int, entries: list[Entry], data: bytes = b"") -> None:
        self.send(Request(opcode, next(self._ids), entries, len(data)).encode() + data)

    def call(self, opcode: int, entries: list[Entry], data: bytes = b"") -> Completion:
        """A command whose outcomes come in one completion."""
        self.begin(opcode, entries, data)
        header = self.receive(wire.HEADER_BYTES)
        completion = wire.decode_completion(header + self.receive(wire.body_length(header)))
        self.received = self.receive(completion.data_length)
        return completion

    def add_region(self, descriptor: int, length: int, *, region: int = 1, rights: int = 3) -> int:
        """The status."""
        socket.send_fds(self.socket, [b"!"], [descriptor])
        entry = Entry(b"", fields={"rights": rights, "kind": 2, "rkey": region, "room": length})
        return self.call(wire.ADD_REGION, [entry]).outcomes[0].status

    def at_end(self) -> bool:
        """Whether the node ends the connection, soon."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            try:
                if not self.socket.recv(1 << 16):
                    return True
            except ConnectionResetError:  # It had not read all doorbells.
                return True
        return False

    def close(self) -> None:
        self.socket.close()
        self.memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()


def region_fields(offset: int, length: int, *, region: int = 1) -> dict[str, int]:
    """Those of a descriptor that names a place in a region."""
    return {"kind": 2, "rkey": region, "address": offset, "room": length}
