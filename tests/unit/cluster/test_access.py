import pytest

from kvstrata.cluster.access import parse_key, show_key
from kvstrata.store.errors import UsageError


def test_keys_are_text_or_hexadecimal() -> None:
    assert parse_key("naïve", as_hex=False) == "naïve".encode()
    assert parse_key("00fF", as_hex=True) == b"\x00\xff"
    with pytest.raises(UsageError, match="'0' is not hexadecimal"):
        parse_key("0", as_hex=True)


def test_bytes_that_the_shell_could_not_decode_come_through() -> None:
    assert parse_key("\udcff", as_hex=False) == b"\xff"


def test_keys_are_shown_so_that_they_can_be_read() -> None:
    assert show_key("naïve".encode(), as_hex=False) == "naïve"
    assert show_key(b"a\xff", as_hex=False) == r"a\xff"
    assert show_key(b"\x00\xff", as_hex=True) == "00ff"
