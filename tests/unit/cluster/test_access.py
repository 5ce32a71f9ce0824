import pytest

from kvstrata.cluster.access import parse_key, show_key, write_key
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
    assert show_key("\x1b[31m\n\u202e\x9b".encode(), as_hex=False) == r"\x1b[31m\x0a\u202e\u009b"


def test_no_two_keys_look_alike() -> None:
    keys = [b"\xff", rb"\xff", rb"\\xff", b"\n", rb"\x0a", b"\x9b", "\x9b".encode()]
    assert len({show_key(key, as_hex=False) for key in keys}) == len(keys)


@pytest.mark.parametrize("key", [b"\xff", rb"\xff", "na\u00efve\x1b".encode()])
@pytest.mark.parametrize("as_hex", [False, True])
def test_a_key_that_was_written_can_be_given_again(key: bytes, as_hex: bool) -> None:
    assert parse_key(write_key(key, as_hex=as_hex), as_hex=as_hex) == key
