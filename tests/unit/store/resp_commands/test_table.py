"""The table of commands against what was recorded of a real Valkey 9.1."""

import json
from typing import Any

import pytest

from kvstrata.store.resp_commands.command import FLAGS, Command
from kvstrata.store.resp_commands.replies import docs_reply, info_reply
from kvstrata.store.resp_commands.table import COMMANDS
from tests.differential.record_commands import RECORD, noted
from tests.differential.resp import Reply, ReplyReader

RECORDED: dict[str, Any] = {
    entry["name"]: entry
    for entry in map(json.loads, RECORD.read_text(encoding="utf-8").splitlines())
}
EACH = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


def inner(command: Command) -> list[Command]:
    return [each for each in COMMANDS if each.container == command.name]


def decode(data: bytes) -> list[Reply]:
    """All replies in `data`."""
    parts = iter([data])
    reader = ReplyReader(lambda: next(parts, b""))
    replies = [reader.read()]
    while reader.has_rest():
        replies.append(reader.read())
    return replies


def in_resp2(reply: Reply) -> bytes:
    """What a client of RESP2 sees instead: sets and maps are arrays there."""
    if reply.items is None:
        return reply.raw
    return b"*%d\r\n" % len(reply.items) + b"".join(map(in_resp2, reply.items))


def test_names_are_unique_and_recorded() -> None:
    names = [command.name for command in COMMANDS]
    assert len(set(names)) == len(names)
    assert set(names) == set(RECORDED)


def test_subcommands_follow_their_container() -> None:
    seen: list[str] = [""]
    for command in COMMANDS:
        assert command.container in seen
        seen.append(command.name)


@EACH
def test_facts_are_those_of_valkey(command: Command) -> None:
    info = noted(decode(info_reply(command, (), 3))[0])
    assert info == RECORDED[command.name]["info"]


@EACH
def test_arguments_are_those_of_valkey(command: Command) -> None:
    name, docs = decode(docs_reply(command, (), 3))
    assert name.text == command.name.encode()
    assert noted(docs) == RECORDED[command.name]["docs"]


@EACH
def test_resp2_says_the_same(command: Command) -> None:
    for make in (info_reply, docs_reply):
        newer = decode(make(command, inner(command), 3))
        assert make(command, inner(command), 2) == b"".join(map(in_resp2, newer))


@EACH
def test_words_are_ours_and_short(command: Command) -> None:
    assert command.summary.endswith(".")
    assert len(command.summary) < 80
    assert command.complexity


@EACH
def test_flags_stand_in_their_order(command: Command) -> None:
    assert list(command.flags) == [flag for flag in FLAGS if flag in command.flags]


def test_containers_list_their_subcommands() -> None:
    (container,) = (each for each in COMMANDS if each.name == "object")
    info = noted(decode(info_reply(container, inner(container), 3))[0])
    names = [each[1] for each in info[-1][1:]]
    assert names == ["$" + each.name for each in inner(container)]
    assert len(names) == 4
