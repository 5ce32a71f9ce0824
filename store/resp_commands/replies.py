"""What COMMAND INFO and COMMAND DOCS answer about one command, as bytes of RESP2 or RESP3."""

from collections.abc import Iterable
from typing import Any

from kvstrata.store.resp_commands.command import Command, Keys
from kvstrata.store.resp_commands.syntax import Argument, read_syntax
from kvstrata.store.resp_encoding import Set, Simple, encode


def _words(words: Iterable[str]) -> Set:
    return Set([Simple(word) for word in words])


def info_reply(command: Command, inner: Iterable[Command], version: int) -> bytes:
    """Return the entry of COMMAND INFO; `inner` are the command's subcommands."""
    return encode(_info(command, inner), version)


def docs_reply(command: Command, inner: Iterable[Command], version: int) -> bytes:
    """Return the name and the entry of COMMAND DOCS."""
    return encode(command.name, version) + encode(_docs(command, inner), version)


def _info(command: Command, inner: Iterable[Command]) -> list[Any]:
    keys = command.keys
    # A client that knows only first, last and step can't find keys that are counted.
    if keys is None or keys.count_at is not None:
        first, last, step = 0, 0, 0
    else:
        first, step = keys.first, keys.step
        last = keys.last if keys.last < 0 else keys.first + keys.last
    return [
        command.name,
        command.arity,
        _words(command.flags),
        first,
        last,
        step,
        _words(f"@{category}" for category in command.all_categories),
        Set(list(command.tips)),
        Set([_key_specification(keys)] if keys else []),
        [_info(each, ()) for each in inner],
    ]


def _key_specification(keys: Keys) -> dict[str, Any]:
    if keys.count_at is None:
        begin, kind = keys.first, "range"
        find = {"lastkey": keys.last, "keystep": keys.step, "limit": 0}
    else:
        begin, kind = keys.count_at, "keynum"
        find = {"keynumidx": 0, "firstkey": keys.first - begin, "keystep": keys.step}
    return {
        "flags": _words(keys.access),
        "begin_search": {"type": "index", "spec": {"index": begin}},
        "find_keys": {"type": kind, "spec": find},
    }


def _docs(command: Command, inner: Iterable[Command]) -> dict[str, Any]:
    docs: dict[str, Any] = {
        "summary": command.summary,
        "since": command.since,
        "group": command.group,
        "complexity": command.complexity,
    }
    if command.syntax:
        docs["arguments"] = [_argument(each) for each in read_syntax(command.syntax)]
    subcommands = {each.name: _docs(each, ()) for each in inner}
    if subcommands:
        docs["subcommands"] = subcommands
    return docs


def _argument(argument: Argument) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": argument.name, "type": argument.type}
    if argument.text:
        fields["display_text"] = argument.text
    if argument.type == "key":
        fields["key_spec_index"] = 0
    if argument.token:
        fields["token"] = argument.token
    if argument.since:
        fields["since"] = argument.since
    if argument.deprecated_since:
        fields["deprecated_since"] = argument.deprecated_since
    if argument.flags:
        fields["flags"] = _words(argument.flags)
    if argument.inner:
        fields["arguments"] = [_argument(each) for each in argument.inner]
    return fields
