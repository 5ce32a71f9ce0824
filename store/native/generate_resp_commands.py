"""Writes headers from the table of Valkey's commands: numbers, facts, and replies about them.

`python -m kvstrata.store.native.generate_resp_commands <folder>` writes into the folder:
resp_command_id.h, the commands and the bits of flags and categories as numbers;
resp_command_table.h, the facts of each, what COMMAND INFO and COMMAND DOCS answer about it in both
versions of RESP, and a perfect hash of the names.
"""

import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kvstrata.store.resp_commands.command import CATEGORIES, FLAGS, Command
from kvstrata.store.resp_commands.replies import docs_reply, info_reply
from kvstrata.store.resp_commands.table import COMMANDS

NAME_BYTES_MAX: Final = 16  # Two words, so that names are compared without a loop.
HASH_BITS: Final = 10
WORD_MASK: Final = 2**64 - 1

HEADER: Final = """\
// Written by store/native/generate_resp_commands.py from store/resp_commands/.
#pragma once

{includes}

namespace kvstrata {{

{body}

}}  // namespace kvstrata
"""


def native_name(name: str) -> str:
    """Return the name in the headers: client|no-evict is ClientNoEvict there."""
    return "".join(part.title() for part in name.replace("|", "-").replace("_", "-").split("-"))


def words(name: str) -> tuple[int, int]:
    """Return the upper-cased name as two little-endian words, with zeros behind it.

    Raises:
        ValueError: the name has more than 16 bytes.
    """
    own = name.rpartition("|")[2].upper().encode("ascii")
    if len(own) > NAME_BYTES_MAX:
        raise ValueError(f"the command {name!r} has more than {NAME_BYTES_MAX} bytes")
    padded = own.ljust(NAME_BYTES_MAX, b"\0")
    return int.from_bytes(padded[:8], "little"), int.from_bytes(padded[8:], "little")


def hash_slot(low: int, high: int, container: int, multiplier: int) -> int:
    """Return what hash_slot() in resp_command.cc returns."""
    turned = (high << 29 | high >> 35) & WORD_MASK
    return ((low ^ turned ^ container) * multiplier & WORD_MASK) >> (64 - HASH_BITS)


def find_multiplier(keys: list[tuple[int, int, int]]) -> int:
    """Return the first multiplier of a fixed sequence that gives each key a slot of its own."""
    generator = random.Random(0)
    while True:
        multiplier = generator.getrandbits(64) | 1
        taken: set[int] = set()
        for key in keys:
            slot = hash_slot(*key, multiplier)
            if slot in taken:
                break
            taken.add(slot)
        else:
            return multiplier


def id_header() -> str:
    names = ["None", *(native_name(command.name) for command in COMMANDS)]
    numbers = ",\n".join(f"  {name} = {number}" for number, name in enumerate(names))
    body = [
        f"enum class RespCommandId : uint8_t {{\n{numbers},\n}};",
        f"inline constexpr uint32_t kRespCommandCount = {len(COMMANDS)};",
        bit_constants("kRespFlag", FLAGS),
        bit_constants("kRespCategory", CATEGORIES),
    ]
    return HEADER.format(includes="#include <cstdint>", body="\n\n".join(body))


def bit_constants(prefix: str, names: tuple[str, ...]) -> str:
    return "\n".join(
        f"inline constexpr uint32_t {prefix}{native_name(name)} = 1U << {bit};"
        for bit, name in enumerate(names)
    )


def bits(prefix: str, names: Iterable[str]) -> str:
    return " | ".join(prefix + native_name(name) for name in names) or "0"


def table_header() -> str:
    numbers = {command.name: number for number, command in enumerate(COMMANDS, 1)}
    keys = [(*words(c.name), numbers.get(c.container, 0)) for c in COMMANDS]
    multiplier = find_multiplier(keys)
    slots = [0] * (1 << HASH_BITS)
    for number, key in enumerate(keys, 1):
        slots[hash_slot(*key, multiplier)] = number
    rows = "\n".join(table_row(*row) for row in zip(COMMANDS, keys, strict=True))
    replies = "\n".join(map(replies_row, COMMANDS))
    lines = "\n".join(
        "  " + ", ".join(map(str, slots[at : at + 16])) + "," for at in range(0, len(slots), 16)
    )
    body = [
        "// By number; the first stands for no command.",
        f"inline constexpr RespCommand kRespCommands[] = {{\n    {{}},\n{rows}\n}};",
        "inline constexpr RespCommandReplies kRespCommandReplies[] = {",
        f"    {{}},\n{replies}\n}};",
        f"inline constexpr int kRespHashBits = {HASH_BITS};",
        f"inline constexpr uint64_t kRespHashMultiplier = {multiplier:#x};",
        f"inline constexpr uint8_t kRespHashSlots[] = {{\n{lines}\n}};",
    ]
    return HEADER.format(includes='#include "store/native/resp_command.h"', body="\n".join(body))


def table_row(command: Command, key: tuple[int, int, int]) -> str:
    low, high, _ = key
    name_bytes = len(command.name.rpartition("|")[2])
    place = "{}"
    if command.keys is not None:
        keys = command.keys
        place = f"{{{keys.first}, {keys.last}, {keys.step}, {keys.count_at or 0}}}"
    container = native_name(command.container) if command.container else "None"
    return (
        f'    {{"{command.name}", RespCommandId::{native_name(command.name)},'
        f" RespCommandId::{container}, {command.arity}, {bits('kRespFlag', command.flags)},"
        f" {bits('kRespCategory', command.all_categories)}, {place},"
        f" {name_bytes}, {low:#x}, {high:#x}}},"
    )


def replies_row(command: Command) -> str:
    inner = [each for each in COMMANDS if each.container == command.name]
    replies = [
        reply(command, inner, version) for reply in (info_reply, docs_reply) for version in (2, 3)
    ]
    return "    {" + ", ".join(map(literal, replies)) + "},"


def literal(reply: bytes) -> str:
    text = reply.decode("ascii").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\r", "\\r").replace("\n", "\\n") + '"'


def main(folder: Path) -> None:
    """Write each header only where it changed, so that nothing is compiled again for nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("resp_command_id.h", id_header()),
        ("resp_command_table.h", table_header()),
    ):
        sink = folder / name
        if not sink.exists() or sink.read_text(encoding="utf-8") != text:
            sink.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
