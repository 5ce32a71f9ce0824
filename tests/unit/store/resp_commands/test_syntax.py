import pytest

from kvstrata.store.resp_commands.syntax import Argument, read_syntax


def test_plain_arguments() -> None:
    assert read_syntax("key value count:integer") == (
        Argument("key", "key", "key"),
        Argument("value", "string", "value"),
        Argument("count", "integer", "count"),
    )
    assert read_syntax("") == ()


def test_a_token_belongs_to_the_name_behind_it() -> None:
    (alone,) = read_syntax("[NX@2.6.12]")
    assert alone == Argument("nx", "pure-token", "nx", "NX", since="2.6.12", flags=("optional",))
    (with_value,) = read_syntax("MATCH pattern:pattern")
    assert with_value == Argument("pattern", "pattern", "pattern", "MATCH")


def test_choices_and_blocks() -> None:
    (choice,) = read_syntax("how(NX|EX seconds:integer)")
    assert choice.type == "oneof"
    assert [each.token for each in choice.inner] == ["NX", "EX"]
    (block,) = read_syntax("data{key value}*")
    assert (block.type, block.text, block.flags) == ("block", "", ("multiple",))


def test_endings() -> None:
    (argument,) = read_syntax("[PREFIX prefix**]")
    assert argument.flags == ("optional", "multiple", "multiple_token")
    (argument,) = read_syntax("old=ip:port!2.8.12")
    assert (argument.text, argument.deprecated_since) == ("ip:port", "2.8.12")


@pytest.mark.parametrize("syntax", ["[key", "how(NX", "key]", "key  value", "data{key|value}", "*"])
def test_nonsense_is_refused(syntax: str) -> None:
    with pytest.raises(ValueError, match="makes no sense at byte"):
        read_syntax(syntax)
