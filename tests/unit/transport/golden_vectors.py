"""Golden vectors: bytes of every structure of the protocol, each with its fields in words.

`python -m tests.unit.transport.golden_vectors` writes them to tests/vectors/; that is done when the
protocol gets a new version, and never to make a test pass. tests/native reads the same files with
the product's own code.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Completion, Entry, Hello, Outcome, Request

FOLDER: Final = Path(__file__).parents[2] / "vectors"
CHUNK_BYTES: Final = 512 * 1024
TEXTS: Final = {1: "pool", 2: "secret", 7: "client_name", 19: "message", 24: "unix_path"}
NAMES: Final = {
    3: "in_capsule_bytes",
    4: "credits",
    5: "features",
    6: "shard",
    16: "shard_count",
    17: "chunk_bytes",
    18: "value_bytes_max",
    20: "node_id",
    21: "epoch",
    22: "rights",
    23: "pool_kind",
}

HANDLE: Final = 0x0706050403020145
LAYOUT: Final = wire.attribute(512, b"bfloat16;2,32,8,128")
_ATTRIBUTES_OF_A_NODE: Final = (
    (3, 0),
    (4, 128),
    (5, 0),
    (6, 2),
    (16, 4),
    (17, CHUNK_BYTES),
    (18, 0x1_2345_6789),
    (20, bytes(range(16))),
    (21, 0),
    (22, 3),
    (23, 1),
)

# Attributes of hellos are in the order the product writes them, so that it can be asked to write
# them again; a reader takes any order.
HELLOS: Final[dict[str, Hello]] = {
    "client_plain": Hello(1, 1, wire.attribute(1, b"default") + wire.attribute(4, 128)),
    "client_full": Hello(
        1,
        3,
        wire.attribute(1, b"team-a")
        + wire.attribute(2, b"s3cret")
        + wire.attribute(4, 16)
        + wire.attribute(6, 2)
        + wire.attribute(7, b"host1 pid 4711"),
    ),
    "client_shared_memory": Hello(
        1, 1, wire.attribute(1, b"default") + wire.attribute(4, 0) + wire.attribute(5, 1)
    ),
    "node_answer": Hello(
        1, 0, b"".join(wire.attribute(type_, value) for type_, value in _ATTRIBUTES_OF_A_NODE)
    ),
    "node_answer_unix_path": Hello(
        1,
        0,
        b"".join(wire.attribute(type_, value) for type_, value in _ATTRIBUTES_OF_A_NODE)
        + wire.attribute(24, b"/run/kvstrata/18400.sock"),
    ),
    "node_refusal_version": Hello(0, 13, wire.attribute(19, b"this node speaks version 1")),
    "node_refusal_denied": Hello(0, 9, wire.attribute(19, "falsches Geheimnis für 'a'".encode())),
}

REQUESTS: Final[dict[str, Request]] = {
    "noop": Request(wire.NOOP, 1),
    "get": Request(wire.GET, 2, [wire.get_entry(b"key", 1 << 20)], deadline_ms=2_000),
    "get_batch": Request(wire.GET, 3, [wire.get_entry(b"", 0), wire.get_entry(b"\xff\x00", 7)]),
    "get_region": Request(
        wire.GET,
        4,
        [Entry(b"k", {"kind": 2, "rkey": 0x01020304, "address": 0x1122334455667788, "room": 9})],
    ),
    "get_range": Request(
        wire.GET_RANGE, 5, [Entry(b"k", {"offset": 524_287, "length": 2, "room": 2})]
    ),
    "put": Request(
        wire.PUT,
        6,
        [wire.put_entry(b"k", b"hello", CHUNK_BYTES, flags=wire.IF_ABSENT, ttl=60_000)],
        data_length=5,
    ),
    "put_batch": Request(
        wire.PUT,
        7,
        [
            Entry(
                b"tensor",
                {"value_length": 600_000, "room": 600_000, "ttl": wire.TTL_NEVER},
                wire.checksums(bytes(600_000), CHUNK_BYTES),
                attributes=LAYOUT,
                term=3,
            ),
            wire.put_entry(b"empty", b"", CHUNK_BYTES),
        ],
        data_length=600_000,
    ),
    "append": Request(
        wire.APPEND, 8, [wire.put_entry(b"k", b"tail", CHUNK_BYTES, at=524_286)], data_length=4
    ),
    "exists": Request(wire.EXISTS, 9, wire.keys_only([b"a", b"b" * 64])),
    "prefix_length": Request(wire.PREFIX_LENGTH, 10, wire.keys_only([b"{g}1", b"{g}2"])),
    "delete": Request(wire.DELETE, 11, wire.keys_only([b"a"])),
    "expire": Request(wire.EXPIRE, 12, [Entry(b"a", {"ttl": 1_500})]),
    "stat": Request(wire.STAT, 13, wire.keys_only([b"a"])),
    "scan": Request(wire.SCAN, 14, [Entry(b"pre", {"cursor": 1 << 58 | 5, "count": 100})]),
    "admin": Request(wire.ADMIN, 0xFFFFFFFF, [Entry(b"help", payload=b"\x80")]),
    "put_region": Request(
        wire.PUT,
        16,
        [
            Entry(
                b"k",
                {"value_length": 600_000, "kind": 2, "rkey": 7, "address": 4_096, "room": 600_000},
            )
        ],
    ),
    "add_region": Request(
        wire.ADD_REGION, 17, [Entry(b"", {"rights": 3, "kind": 2, "rkey": 7, "room": 1 << 33})]
    ),
    "remove_region": Request(
        wire.REMOVE_REGION, 18, [Entry(b"", {"kind": 2, "rkey": 7, "room": 1 << 33})]
    ),
    "retain": Request(
        wire.RETAIN,
        16,
        [
            Entry(b"a", {"ttl": 30_000}),
            Entry(b"{g}b", {"ttl": 3_600_000, "flags": wire.HARD}),
        ],
    ),
    "release": Request(wire.RELEASE, 17, wire.keys_only([HANDLE.to_bytes(8, "little")])),
    "extend": Request(wire.EXTEND, 18, [Entry(HANDLE.to_bytes(8, "little"), {"ttl": 60_000})]),
    "command_attributes": Request(
        wire.EXISTS, 15, wire.keys_only([b"a"]), attributes=wire.attribute(16_384, b"trial")
    ),
}


def _read(value: bytes, offset: int = 0, **fields: int) -> Outcome:
    found = {"value_length": len(value), "version": 9, "offset": offset, "length": len(value)}
    return Outcome(found | fields, wire.checksums(value, CHUNK_BYTES, offset))


COMPLETIONS: Final[dict[str, Completion]] = {
    "noop": Completion(wire.NOOP, 1, credits=128),
    "get": Completion(wire.GET, 2, [_read(b"hello")], data_length=5, credits=128),
    "get_attributes": Completion(
        wire.GET,
        3,
        [Outcome({"value_length": 1, "version": 2, "length": 1}, [7], attributes=LAYOUT)],
        data_length=1,
        credits=1,
    ),
    "get_misses": Completion(
        wire.GET,
        4,
        [
            Outcome({"status": 1}),
            Outcome({"status": 3, "value_length": 1 << 33, "version": 5}),
            _read(b""),
        ],
        credits=64,
    ),
    "get_more": Completion(
        wire.GET, 5, [_read(b"ab")], flags=wire.MORE, first_outcome=32, data_length=2, credits=4
    ),
    "get_range": Completion(
        wire.GET_RANGE,
        6,
        [_read(b"xy", 524_287, value_length=600_000)],
        data_length=2,
        credits=128,
    ),
    "put": Completion(
        wire.PUT,
        7,
        [
            Outcome({"result": 0, "value_length": 5, "version": 1}),
            Outcome({"result": 1, "value_length": 0, "version": 2}),
            Outcome({"status": 2, "result": 3, "value_length": 4, "version": 3}),
        ],
        credits=128,
    ),
    "append": Completion(
        wire.APPEND, 8, [Outcome({"result": 2, "value_length": 9, "version": 4})], credits=128
    ),
    "exists": Completion(
        wire.EXISTS, 9, [Outcome({"status": 0}), Outcome({"status": 1})], credits=128
    ),
    "prefix_length": Completion(wire.PREFIX_LENGTH, 10, [Outcome({"count": 511})], credits=128),
    "delete": Completion(wire.DELETE, 11, [Outcome({"status": 1})], credits=128),
    "expire": Completion(wire.EXPIRE, 12, [Outcome({"status": 0})], credits=128),
    "stat": Completion(
        wire.STAT,
        13,
        [
            Outcome(
                {
                    "location": 1,
                    "chunk_count": 2,
                    "value_length": 600_000,
                    "version": 8,
                    "ttl_left": wire.TTL_NEVER,
                },
                attributes=LAYOUT,
            )
        ],
        credits=128,
    ),
    "scan": Completion(
        wire.SCAN,
        14,
        [Outcome({"cursor": 1 << 58 | 6}, keys=[(b"pre1", 10), (b"pre2", 0)])],
        credits=128,
    ),
    "add_region": Completion(wire.ADD_REGION, 17, [Outcome({"status": 0})], credits=128),
    "remove_region": Completion(wire.REMOVE_REGION, 18, [Outcome({"status": 1})], credits=128),
    "admin": Completion(wire.ADMIN, 0xFFFFFFFF, [Outcome({"status": 0}, payload=b"\x80")]),
    "retain": Completion(
        wire.RETAIN,
        16,
        [
            Outcome({"status": 0, "handle": HANDLE}),
            Outcome({"status": 1}),
            Outcome({"status": 6}),
        ],
        credits=128,
    ),
    "release": Completion(wire.RELEASE, 17, [Outcome({"status": 0})], credits=128),
    "extend": Completion(wire.EXTEND, 18, [Outcome({"status": 1})], credits=128),
    "failed": Completion(
        wire.PUT, 15, status=9, message="no right to write in pool 'a'", credits=128
    ),
}


def describe_hello(hello: Hello) -> list[str]:
    """First line: the prefix. Then a line for each attribute."""
    lines = [f"hello {hello.first} {hello.second}"]
    for type_, value in hello.attributes().items():
        if type_ in TEXTS:
            lines.append(f"{TEXTS[type_]} {value.decode()}")
        elif type_ == 20:
            lines.append(f"node_id {value.hex()}")
        else:
            lines.append(f"{NAMES[type_]} {int.from_bytes(value, 'little')}")
    return lines


def describe_request(request: Request) -> list[str]:
    lines = [
        f"request opcode={request.opcode} flags={request.flags} entries={len(request.entries)}"
        f" command_id={request.command_id} data_length={request.data_length}"
        f" deadline_ms={request.deadline_ms} attributes={request.attributes.hex()}"
    ]
    for entry in request.entries:
        lines.append(
            f"entry key={entry.key.hex()} term={entry.term} attributes={entry.attributes.hex()}"
            f"{_fields(wire.ENTRY_FIELDS.get(request.opcode, ()), entry.fields)}"
            f"{_checksums(entry.checksums)}"
        )
        if entry.payload:
            lines.append(f"payload {entry.payload.hex()}")
    return lines


def describe_completion(completion: Completion) -> list[str]:
    lines = [
        f"completion opcode={completion.opcode} flags={completion.flags}"
        f" outcomes={len(completion.outcomes)} command_id={completion.command_id}"
        f" data_length={completion.data_length} first={completion.first_outcome}"
        f" status={completion.status} credits={completion.credits}"
    ]
    if completion.message:
        lines.append(f"message {completion.message}")
    for outcome in completion.outcomes:
        lines.append(
            f"outcome{_fields(wire.OUTCOME_FIELDS[completion.opcode], outcome.fields)}"
            f"{_checksums(outcome.checksums)}"
        )
        if outcome.attributes:
            lines.append(f"attributes {outcome.attributes.hex()}")
        if outcome.payload:
            lines.append(f"payload {outcome.payload.hex()}")
        lines.extend(f"key {key.hex()} {length}" for key, length in outcome.keys)
    return lines


def _fields(table: wire.Fields, values: dict[str, int]) -> str:
    # Counts and lengths of what is listed in full are left out.
    implied = {"reserved", "checksum_count", "attribute_length", "payload_length", "key_count"}
    return "".join(f" {name}={values.get(name, 0)}" for name, _ in table if name not in implied)


def _checksums(values: list[int]) -> str:
    return "".join(f" checksum={value:016x}" for value in values)


def render_hellos() -> str:
    return _render({name: (h.encode(), describe_hello(h)) for name, h in HELLOS.items()})


def render_requests() -> str:
    return _render({name: (r.encode(), describe_request(r)) for name, r in REQUESTS.items()})


def render_completions() -> str:
    return _render({name: (c.encode(), describe_completion(c)) for name, c in COMPLETIONS.items()})


RENDERED: Final[dict[str, Callable[[], str]]] = {
    "hellos.txt": render_hellos,
    "requests.txt": render_requests,
    "completions.txt": render_completions,
}


def _render(vectors: dict[str, tuple[bytes, list[str]]]) -> str:
    blocks = []
    for name, (data, lines) in vectors.items():
        blocks.append("\n".join([f"vector {name}", *lines, f"bytes {data.hex()}"]))
    return "\n\n".join(blocks) + "\n"


def read(name: str) -> dict[str, tuple[bytes, list[str]]]:
    """Name to bytes and description of each vector of a file."""
    found = {}
    for block in (FOLDER / name).read_text(encoding="utf-8").strip().split("\n\n"):
        title, *lines, data = block.splitlines()
        found[title.removeprefix("vector ")] = (bytes.fromhex(data.removeprefix("bytes ")), lines)
    return found


def main() -> None:
    for name, render in RENDERED.items():
        (FOLDER / name).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
