"""Patterns mean what they mean to Valkey, and none takes long."""

import time

import pytest

from kvstrata.store.resp_admin.glob import matches


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("", [""], ["a"]),
        ("*", ["", "abc"], []),
        ("a*", ["a", "abc"], ["ba"]),
        ("a**c", ["ac", "abbc"], ["abcd"]),
        ("*b*", ["b", "abc"], ["ac"]),
        ("h?llo", ["hello", "hallo"], ["hllo"]),
        ("h[ae]llo", ["hello", "hallo"], ["hillo"]),
        ("h[^e]llo", ["hallo"], ["hello"]),
        ("h[a-c]llo", ["hbllo"], ["hdllo"]),
        ("h[c-a]llo", ["hbllo"], ["hdllo"]),
        ("[a\\]b]", ["a", "]", "b"], ["\\"]),
        ("a[bc", ["ab", "ac"], ["a", "a["]),
        ("\\*", ["*"], ["a"]),
        ("a\\", ["a\\"], ["a"]),
        ("[]a", [], ["a", "]"]),
        ("a.c", ["a.c"], ["abc"]),
    ],
)
def test_matches(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [text for text in yes if not matches(pattern, text)] == []
    assert [text for text in no if matches(pattern, text)] == []


def test_a_hostile_pattern_ends_soon() -> None:
    started = time.monotonic()
    assert not matches("*?" * 200 + "b", "a" * 500)
    assert time.monotonic() - started < 2
