"""COMMAND LIST: what its filters take."""

import pytest

from tests.unit.store.resp_admin.recorded_node import RecordedNode, asker

node = asker(RecordedNode())


def names(command: str) -> list[bytes]:
    return node.ask(command).split(b"\r\n")[2::2]


def test_without_a_filter_there_are_no_subcommands() -> None:
    found = names("COMMAND LIST")
    assert b"get" in found
    assert b"config" in found
    assert not any(b"|" in name for name in found)


def test_filters() -> None:
    assert sorted(names("COMMAND LIST FILTERBY pattern GETR*")) == [b"getrange"]
    assert b"memory|usage" in names("command list filterby PATTERN memory*")
    assert b"get" in names("COMMAND LIST FILTERBY aclcat STRING")
    assert b"del" not in names("COMMAND LIST FILTERBY ACLCAT string")
    assert names("COMMAND LIST FILTERBY ACLCAT nonsense") == []
    assert names("COMMAND LIST FILTERBY MODULE any") == []


@pytest.mark.parametrize("rest", ["FILTERBY", "FILTERBY COLOUR red", "BY PATTERN x", "a b c d"])
def test_anything_else_is_an_error_of_syntax(rest: str) -> None:
    assert node.ask(f"COMMAND LIST {rest}") == b"-ERR syntax error\r\n"
