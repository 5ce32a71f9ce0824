"""The capsule protocol in plain Python: an encoder and decoder written from PROTOCOL.md alone.

It shares no line with the product, so the two can only agree by both doing what the document says.
Fields lie in tables, in the order of the document's; integers are little-endian throughout.
"""

import dataclasses
import struct
from collections.abc import Iterable
from typing import Final

import xxhash

MAGIC: Final = b"\xcbKVS"
HELLO_PREFIX_BYTES: Final = 16
HEADER_BYTES: Final = 32
COMPLETION_BIT: Final = 128
REQUIRED_BIT: Final = 0x8000
MORE: Final = 1
IF_ABSENT: Final = 1
TTL_NEVER: Final = 2**64 - 1

NOOP, GET, GET_RANGE, PUT, APPEND = range(5)
EXISTS, PREFIX_LENGTH, DELETE, EXPIRE, STAT = range(16, 21)
SCAN: Final = 24
ADMIN: Final = 32
ADD_REGION, REMOVE_REGION = 40, 41
RETAIN, RELEASE, EXTEND = range(64, 67)
HARD: Final = 1
REGION: Final = 2  # Kind of a descriptor.

Fields = tuple[tuple[str, int], ...]

DESCRIPTOR: Final[Fields] = (
    ("kind", 1),
    ("reserved", 3),
    ("rkey", 4),
    ("address", 8),
    ("room", 8),
)
WRITE: Final[Fields] = (
    ("flags", 4),
    ("checksum_count", 4),
    ("value_length", 8),
    ("ttl", 8),
    ("at", 8),
    *DESCRIPTOR,
)
ENTRY_FIELDS: Final[dict[int, Fields]] = {
    GET: DESCRIPTOR,
    GET_RANGE: (("offset", 8), ("length", 8), *DESCRIPTOR),
    PUT: WRITE,
    APPEND: WRITE,
    EXPIRE: (("ttl", 8),),
    SCAN: (("cursor", 8), ("count", 4)),
    ADMIN: (("payload_length", 4),),
    ADD_REGION: (("rights", 4), *DESCRIPTOR),
    REMOVE_REGION: (("rights", 4), *DESCRIPTOR),
    RETAIN: (("ttl", 8), ("flags", 4)),
    EXTEND: (("ttl", 8),),
}
READ_OUTCOME: Final[Fields] = (
    ("status", 1),
    ("reserved", 1),
    ("attribute_length", 2),
    ("checksum_count", 4),
    ("value_length", 8),
    ("version", 8),
    ("offset", 8),
    ("length", 8),
)
WRITE_OUTCOME: Final[Fields] = (
    ("status", 1),
    ("result", 1),
    ("reserved", 6),
    ("value_length", 8),
    ("version", 8),
)
STATUS_OUTCOME: Final[Fields] = (("status", 1),)
OUTCOME_FIELDS: Final[dict[int, Fields]] = {
    GET: READ_OUTCOME,
    GET_RANGE: READ_OUTCOME,
    PUT: WRITE_OUTCOME,
    APPEND: WRITE_OUTCOME,
    EXISTS: STATUS_OUTCOME,
    PREFIX_LENGTH: (("count", 4),),
    DELETE: STATUS_OUTCOME,
    EXPIRE: STATUS_OUTCOME,
    STAT: (
        ("status", 1),
        ("location", 1),
        ("attribute_length", 2),
        ("chunk_count", 4),
        ("value_length", 8),
        ("version", 8),
        ("ttl_left", 8),
    ),
    SCAN: (("cursor", 8), ("key_count", 4)),
    ADMIN: (("status", 1), ("payload_length", 4)),
    ADD_REGION: STATUS_OUTCOME,
    REMOVE_REGION: STATUS_OUTCOME,
    RETAIN: (("status", 1), ("handle", 8)),
    RELEASE: STATUS_OUTCOME,
    EXTEND: STATUS_OUTCOME,
}
# Integers of hello attributes by type, with their sizes; all others are bytes.
HELLO_INTEGERS: Final = {3: 4, 4: 4, 5: 8, 6: 4, 16: 4, 17: 4, 18: 8, 21: 8, 22: 4, 23: 1}


class MalformedError(Exception):
    """The bytes are not what the document says they must be."""


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC_TABLE: Final = _crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def checksums(data: bytes, chunk_bytes: int, offset: int = 0) -> list[int]:
    """One XXH3-64 for each piece of `data`, which begins at `offset` of its object."""
    found = []
    while data:
        count = chunk_bytes - offset % chunk_bytes
        found.append(xxhash.xxh3_64_intdigest(data[:count]))
        data, offset = data[count:], offset + count
    return found


def slot(key: bytes) -> int:
    """The slot of a key: CRC16 (XMODEM), of the hash tag where there is one."""
    begin = key.find(b"{")
    end = key.find(b"}", begin + 1)
    if begin >= 0 and end > begin + 1:
        key = key[begin + 1 : end]
    crc = 0
    for byte in key:
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ (0x1021 if crc & 0x8000 else 0)) & 0xFFFF
    return crc % 16_384


class Reader:
    """Takes bytes off the front of a body, and never more than there are."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise MalformedError(f"{count} bytes wanted, {self.left} left")
        self._at += count
        return self._data[self._at - count : self._at]

    def integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def fields(self, table: Fields) -> dict[str, int]:
        return {name: self.integer(size) for name, size in table}

    def integers(self, count: int) -> list[int]:
        return [self.integer(8) for _ in range(count)]


def pack_fields(table: Fields, values: dict[str, int]) -> bytes:
    """Fields that `values` does not name are 0."""
    return b"".join(values.get(name, 0).to_bytes(size, "little") for name, size in table)


def attribute(type_: int, value: bytes | int, *, required: bool = False) -> bytes:
    if isinstance(value, int):
        value = value.to_bytes(HELLO_INTEGERS.get(type_, 8), "little")
    return struct.pack("<HH", type_ | (REQUIRED_BIT if required else 0), len(value)) + value


def attributes(data: bytes) -> dict[int, bytes]:
    """Values by type, the required bit cleared."""
    reader, found = Reader(data), {}
    while reader.left:
        type_ = reader.integer(2) & ~REQUIRED_BIT
        if type_ in found:
            raise MalformedError(f"attribute {type_} appears twice")
        found[type_] = reader.take(reader.integer(2))
    return found


# ---- hello ----


@dataclasses.dataclass
class Hello:
    """Of a client: the lowest and highest version. Of a node: the version chosen and the status."""

    first: int = 1
    second: int = 1
    body: bytes = b""

    def attributes(self) -> dict[int, bytes]:
        return attributes(self.body)

    def number(self, type_: int) -> int:
        return int.from_bytes(self.attributes()[type_], "little")

    @property
    def message(self) -> str:
        return self.attributes().get(19, b"").decode()

    def encode(self) -> bytes:
        head = MAGIC + struct.pack("<HHI", self.first, self.second, len(self.body))
        return head + struct.pack("<I", crc32c(head + self.body)) + self.body


def hello_body_length(prefix: bytes) -> int:
    length: int = struct.unpack_from("<I", prefix, 8)[0]
    if prefix[:4] != MAGIC or length > 16_384:
        raise MalformedError(f"not a hello: {prefix.hex()}")
    return length


def decode_hello(data: bytes) -> Hello:
    first, second, length, crc = struct.unpack_from("<HHII", data, 4)
    if hello_body_length(data) != len(data) - HELLO_PREFIX_BYTES:
        raise MalformedError(f"a body of {length} bytes in {len(data)}")
    if crc != crc32c(data[:12] + data[HELLO_PREFIX_BYTES:]):
        raise MalformedError("the hello's CRC does not match")
    return Hello(first, second, data[HELLO_PREFIX_BYTES:])


# ---- capsules ----


@dataclasses.dataclass
class Entry:
    key: bytes = b""
    fields: dict[str, int] = dataclasses.field(default_factory=dict)
    checksums: list[int] = dataclasses.field(default_factory=list)
    payload: bytes = b""
    attributes: bytes = b""
    term: int = 0

    def encode(self, opcode: int) -> bytes:
        counts = {"checksum_count": len(self.checksums), "payload_length": len(self.payload)}
        return b"".join(
            (
                struct.pack("<HHI", len(self.key), len(self.attributes), self.term),
                pack_fields(ENTRY_FIELDS.get(opcode, ()), counts | self.fields),
                struct.pack(f"<{len(self.checksums)}Q", *self.checksums),
                self.payload,
                self.key,
                self.attributes,
            )
        )


@dataclasses.dataclass
class Request:
    opcode: int
    command_id: int = 0
    entries: list[Entry] = dataclasses.field(default_factory=list)
    data_length: int = 0
    deadline_ms: int = 0
    attributes: bytes = b""
    flags: int = 0

    def encode(self) -> bytes:
        body = b"".join(entry.encode(self.opcode) for entry in self.entries) + self.attributes
        head = struct.pack(
            "<BBHIIQII",
            self.opcode,
            self.flags,
            len(self.entries),
            self.command_id,
            len(body),
            self.data_length,
            self.deadline_ms,
            len(self.attributes),
        )
        return sealed(head + body)


@dataclasses.dataclass
class Outcome:
    fields: dict[str, int] = dataclasses.field(default_factory=dict)
    checksums: list[int] = dataclasses.field(default_factory=list)
    attributes: bytes = b""
    payload: bytes = b""
    keys: list[tuple[bytes, int]] = dataclasses.field(default_factory=list)

    @property
    def status(self) -> int:
        return self.fields["status"]

    def encode(self, opcode: int) -> bytes:
        counts = {
            "checksum_count": len(self.checksums),
            "attribute_length": len(self.attributes),
            "payload_length": len(self.payload),
            "key_count": len(self.keys),
        }
        return b"".join(
            (
                pack_fields(OUTCOME_FIELDS[opcode], counts | self.fields),
                struct.pack(f"<{len(self.checksums)}Q", *self.checksums),
                self.attributes,
                self.payload,
                *(struct.pack("<HQ", len(key), length) + key for key, length in self.keys),
            )
        )


@dataclasses.dataclass
class Completion:
    opcode: int
    command_id: int = 0
    outcomes: list[Outcome] = dataclasses.field(default_factory=list)
    status: int = 0
    message: str = ""
    flags: int = 0
    first_outcome: int = 0
    data_length: int = 0
    credits: int = 0

    @property
    def more(self) -> bool:
        return bool(self.flags & MORE)

    def encode(self) -> bytes:
        body = self.message.encode() or b"".join(
            outcome.encode(self.opcode) for outcome in self.outcomes
        )
        head = struct.pack(
            "<BBHIIQHBBI",
            self.opcode | COMPLETION_BIT,
            self.flags,
            len(self.outcomes),
            self.command_id,
            len(body),
            self.data_length,
            self.first_outcome,
            self.status,
            0,
            self.credits,
        )
        return sealed(head + body)


def sealed(rest: bytes) -> bytes:
    """A capsule whole: its CRC before everything else of it."""
    return struct.pack("<I", crc32c(rest)) + rest


def body_length(header: bytes) -> int:
    length: int = struct.unpack_from("<I", header, 12)[0]
    if length > 1 << 20:
        raise MalformedError(f"a body of {length} bytes")
    return length


def _check_sealed(capsule: bytes) -> None:
    if len(capsule) != HEADER_BYTES + body_length(capsule):
        raise MalformedError(f"{len(capsule)} bytes, body length {body_length(capsule)}")
    if struct.unpack_from("<I", capsule)[0] != crc32c(capsule[4:]):
        raise MalformedError("the capsule's CRC does not match")


def decode_request(capsule: bytes) -> Request:
    _check_sealed(capsule)
    opcode, flags, count, command_id, _, data_length, deadline_ms, attribute_length = (
        struct.unpack_from("<BBHIIQII", capsule, 4)
    )
    body = capsule[HEADER_BYTES:]
    if attribute_length > len(body):
        raise MalformedError(f"{attribute_length} bytes of attributes in a body of {len(body)}")
    own = body[len(body) - attribute_length :]
    reader = Reader(body[: len(body) - attribute_length])
    request = Request(opcode, command_id, [], data_length, deadline_ms, own, flags)
    request.entries = [_decode_entry(opcode, reader) for _ in range(count)]
    if reader.left:
        raise MalformedError(f"{reader.left} bytes behind the last entry")
    return request


def _decode_entry(opcode: int, reader: Reader) -> Entry:
    key_length, attribute_length = reader.integer(2), reader.integer(2)
    entry = Entry(term=reader.integer(4), fields=reader.fields(ENTRY_FIELDS.get(opcode, ())))
    entry.checksums = reader.integers(entry.fields.get("checksum_count", 0))
    entry.payload = reader.take(entry.fields.get("payload_length", 0))
    entry.key = reader.take(key_length)
    entry.attributes = reader.take(attribute_length)
    return entry


def decode_completion(capsule: bytes) -> Completion:
    _check_sealed(capsule)
    opcode, flags, count, command_id, _, data_length, first, status, _, credits_ = (
        struct.unpack_from("<BBHIIQHBBI", capsule, 4)
    )
    if not opcode & COMPLETION_BIT:
        raise MalformedError(f"opcode {opcode} is a request's")
    completion = Completion(opcode & ~COMPLETION_BIT, command_id, status=status, flags=flags)
    completion.first_outcome, completion.data_length = first, data_length
    completion.credits = credits_
    reader = Reader(capsule[HEADER_BYTES:])
    if status != 0:
        if count or flags & MORE:
            raise MalformedError("a failed command with outcomes, or with more to come")
        completion.message = reader.take(reader.left).decode()
        return completion
    completion.outcomes = [_decode_outcome(completion.opcode, reader) for _ in range(count)]
    if reader.left:
        raise MalformedError(f"{reader.left} bytes behind the last outcome")
    return completion


def _decode_outcome(opcode: int, reader: Reader) -> Outcome:
    outcome = Outcome(reader.fields(OUTCOME_FIELDS[opcode]))
    outcome.checksums = reader.integers(outcome.fields.get("checksum_count", 0))
    outcome.attributes = reader.take(outcome.fields.get("attribute_length", 0))
    outcome.payload = reader.take(outcome.fields.get("payload_length", 0))
    for _ in range(outcome.fields.get("key_count", 0)):
        length, value_length = reader.integer(2), reader.integer(8)
        outcome.keys.append((reader.take(length), value_length))
    return outcome


def get_entry(key: bytes, room: int) -> Entry:
    return Entry(key, {"room": room})


def put_entry(key: bytes, value: bytes, chunk_bytes: int, at: int = 0, **fields: int) -> Entry:
    """An entry of PUT, or of APPEND at `at`, whose data follow on the stream."""
    written = {"value_length": len(value), "room": len(value), "at": at}
    return Entry(key, written | fields, checksums(value, chunk_bytes, at))


def keys_only(keys: Iterable[bytes]) -> list[Entry]:
    return [Entry(key) for key in keys]
