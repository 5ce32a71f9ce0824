"""Valkey's memory units."""

import pytest

from kvstrata.store.resp_admin.memory_amount import parse_memory, show_memory


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("17b", 17),
        ("1k", 1_000),
        ("1Kb", 1_024),
        ("100mb", 100 << 20),
        ("1m", 10**6),
        ("2GB", 2 << 30),
        ("1g", 10**9),
        ("18446744073709551615", 2**64 - 1),
    ],
)
def test_amounts(text: str, amount: int) -> None:
    assert parse_memory(text) == amount


@pytest.mark.parametrize(
    "text",
    ["", "mb", "-1", "1.5mb", "1 mb", "1tb", "18446744073709551616", "9999999999999gb", "1\u0661"],
)
def test_no_amounts(text: str) -> None:
    assert parse_memory(text) is None


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0B"),
        (1_023, "1023B"),
        (1_291_544, "1.23M"),
        (6_926_336, "6.61M"),
        (3 << 50, "3072.00T"),
    ],
)
def test_shown(amount: int, text: str) -> None:
    assert show_memory(amount) == text
