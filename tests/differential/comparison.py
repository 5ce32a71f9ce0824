"""Whether two replies to one command say the same.

Byte for byte, but where chance or time decide: `NOT_DETERMINED` says what is compared there. What
KVStrata answers otherwise than Valkey on purpose stands in store/RESP.md, and is read from there.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.differential.resp import Reply

DOCUMENT: Final = Path(__file__).parents[2] / "store" / "RESP.md"
NEAR_S: Final = 2
NEAR_MS: Final = 2_000

Arguments = tuple[bytes, ...]
Alike = Callable[[Arguments, Reply, Reply], bool]


def same_bytes(_: Arguments, one: Reply, other: Reply) -> bool:
    return one.raw == other.raw


def same_shape(_: Arguments, one: Reply, other: Reply) -> bool:
    """The same kinds, and the same errors."""
    return one.shape() == other.shape()


def same_kind(_: Arguments, one: Reply, other: Reply) -> bool:
    """The same kind outside, whatever is inside; the same errors."""
    if one.is_error:
        return one.raw == other.raw
    return (one.kind, one.is_nil) == (other.kind, other.is_nil)


def same_set(_: Arguments, one: Reply, other: Reply) -> bool:
    """The same, in any order at every depth."""
    return sorted_bytes(one) == sorted_bytes(other)


def same_list(arguments: Arguments, one: Reply, other: Reply) -> bool:
    """Of all commands, in any order; of those that are named, in theirs."""
    return (same_set if len(arguments) <= 2 else same_bytes)(arguments, one, other)


def same_scan(arguments: Arguments, one: Reply, other: Reply) -> bool:
    """The same keys in any order, if all were walked through; else it is not said which."""
    return (same_set if walks_through(arguments) else same_kind)(arguments, one, other)


def walks_through(arguments: Arguments) -> bool:
    """Whether it is a SCAN from the beginning, in steps as large as they can be."""
    return arguments[0].upper() == b"SCAN" and arguments[1:2] == (b"0",) and b"100000" in arguments


def sorted_bytes(reply: Reply) -> bytes:
    if reply.items is None:
        return reply.raw
    head = f"{reply.kind}{len(reply.items)}".encode()
    return head + b"".join(sorted(sorted_bytes(item) for item in reply.items))


def same_pairs(_: Arguments, one: Reply, other: Reply) -> bool:
    """A map, in RESP2 an array, of the same names with values of the same kinds, in this order."""
    if one.items is None or other.items is None:
        return one.raw == other.raw
    names = [item.raw for item in one.items[::2]], [item.raw for item in other.items[::2]]
    kinds = [[item.kind for item in reply.items[1::2]] for reply in (one, other) if reply.items]
    return one.kind == other.kind and names[0] == names[1] and kinds[0] == kinds[1]


OF_THE_SERVER: Final = {b"server", b"version", b"id", b"mode", b"modules"}


def same_greeting(arguments: Arguments, one: Reply, other: Reply) -> bool:
    """HELLO's map, with equal values but for those that each server has of its own."""
    if one.items is None or other.items is None:
        return one.raw == other.raw
    pairs = zip(one.items[::2], one.items[1::2], other.items[1::2], strict=False)
    return same_pairs(arguments, one, other) and all(
        name.text in OF_THE_SERVER or value.raw == same.raw for name, value, same in pairs
    )


def near(tolerance: int) -> Alike:
    def alike(arguments: Arguments, one: Reply, other: Reply) -> bool:
        if one.kind != ":" or other.kind != ":" or min(one.integer, other.integer) < 0:
            return same_bytes(arguments, one, other)
        return abs(one.integer - other.integer) <= tolerance

    return alike


FIELD: Final = re.compile(rb"([\w-]+)=[^ \n]*")


def same_fields(_: Arguments, one: Reply, other: Reply) -> bool:
    """Text of `name=value` and `name:value`, with the same names in this order."""
    if one.text is None or other.text is None or one.is_error:
        return one.raw == other.raw
    names = [
        FIELD.findall(reply.text or b"") or re.findall(rb"^(\w+):", reply.text or b"", re.MULTILINE)
        for reply in (one, other)
    ]
    return one.kind == other.kind and names[0] == names[1]


def same_but_identity(_: Arguments, one: Reply, other: Reply) -> bool:
    """The same but for what names one server: its number, its port, its start."""
    return neutral(one.raw) == neutral(other.raw)


IDENTITIES: Final = [
    (re.compile(rb"\b[0-9a-f]{40}\b"), b"<id>"),
    (re.compile(rb"127\.0\.0\.1:\d+@\d+"), b"<address>"),
    (re.compile(rb"(?<=port\r\n):\d+"), b":<port>"),
    (re.compile(rb":\d{5}\r\n(?=\$40\r\n)"), b":<port>\r\n"),
    (re.compile(rb"(?<=replication-offset\r\n):\d+"), b":<offset>"),
    (re.compile(rb"(cluster_stats\w+):\d+"), rb"\1:<count>"),
    (re.compile(rb"(?<=txt:)"), b""),
    (re.compile(rb"^[$=]\d+"), b"<text>"),
]


def neutral(raw: bytes) -> bytes:
    for pattern, replacement in IDENTITIES:
        raw = pattern.sub(replacement, raw)
    return raw


NOT_DETERMINED: Final[dict[str, Alike]] = {
    "TTL": near(NEAR_S),
    "PTTL": near(NEAR_MS),
    "EXPIRETIME": near(NEAR_S),
    "PEXPIRETIME": near(NEAR_MS),
    "TIME": same_shape,
    "RANDOMKEY": same_shape,
    "KEYS": same_set,
    "SCAN": same_scan,
    "INFO": same_kind,
    "HELLO": same_greeting,
    "CLIENT ID": same_shape,
    "CLIENT INFO": same_fields,
    "CLIENT LIST": same_fields,
    "COMMAND": same_list,
    "COMMAND DOCS": same_list,
    "COMMAND INFO": same_list,
    "COMMAND LIST": same_set,
    "ACL CAT": same_set,
    "MEMORY USAGE": same_shape,
    "OBJECT IDLETIME": same_shape,
    "OBJECT FREQ": same_shape,
    "SLOWLOG GET": same_kind,
    "SLOWLOG LEN": same_shape,
    "LATENCY LATEST": same_kind,
    "LATENCY HISTORY": same_kind,
    "LATENCY HISTOGRAM": same_kind,
    "CLUSTER INFO": same_fields,
    "CLUSTER SLOTS": same_but_identity,
    "CLUSTER SHARDS": same_but_identity,
    "CLUSTER NODES": same_fields,
    "CLUSTER MYID": same_but_identity,
    "CLUSTER GETKEYSINSLOT": same_set,
}


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """What store/RESP.md says of a command: to `theirs` of Valkey, KVStrata may answer `ours`.

    Both are patterns of the reply's first line.
    """

    command: tuple[str, ...]
    theirs: re.Pattern[str]
    ours: re.Pattern[str]

    def excuses(self, arguments: Arguments, ours: Reply, theirs: Reply) -> bool:
        words = tuple(a.decode("latin-1").upper() for a in arguments[: len(self.command)])
        return (
            (self.command == ("*",) or words == self.command)
            and self.ours.fullmatch(first_line(ours)) is not None
            and self.theirs.fullmatch(first_line(theirs)) is not None
        )


def first_line(reply: Reply) -> str:
    """Of a bulk, its text; of anything else, its first line."""
    if reply.kind == "$" and reply.text is not None:
        return "$" + reply.text.decode("latin-1")
    return reply.raw.split(b"\r\n")[0].decode("latin-1")


ROW: Final = re.compile(r"\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \| (.+) \|")


def known_differences(document: str) -> list[KnownDifference]:
    """Read the rows of the table under "What is answered otherwise".

    Raises:
        ValueError: a row of the table is not of the form
            | `COMMAND` | `Valkey's reply` | `KVStrata's reply` | why |
    """
    table = document.partition("## What is answered otherwise")[2].partition("\n## ")[0]
    differences = []
    for line in table.splitlines():
        if not line.startswith("| `"):
            continue
        row = ROW.fullmatch(line)
        if row is None:
            raise ValueError(f"not a row of the table of differences: {line!r}")
        command, theirs, ours = row[1].split(), _wildcards(row[2]), _wildcards(row[3])
        differences.append(KnownDifference(tuple(command), theirs, ours))
    return differences


def _wildcards(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def command_name(arguments: Arguments) -> str:
    """The name, or both names of a subcommand, as `NOT_DETERMINED` has them."""
    words = [argument.decode("latin-1").upper() for argument in arguments[:2]]
    both = " ".join(words)
    return both if both in NOT_DETERMINED else words[0]


def alike(arguments: Arguments, one: Reply, other: Reply) -> bool:
    return NOT_DETERMINED.get(command_name(arguments), same_bytes)(arguments, one, other)
