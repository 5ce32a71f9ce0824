"""Each kind of reply in both versions of RESP."""

from typing import cast

import pytest

from kvstrata.store.resp_encoding import OK, Reply, Set, Verbatim, encode, encode_error


@pytest.mark.parametrize(
    ("value", "two", "three"),
    [
        (None, b"$-1\r\n", b"_\r\n"),
        (-7, b":-7\r\n", b":-7\r\n"),
        (OK, b"+OK\r\n", b"+OK\r\n"),
        ("\u00e9", b"$2\r\n\xc3\xa9\r\n", b"$2\r\n\xc3\xa9\r\n"),
        ("\udcff", b"$1\r\n\xff\r\n", b"$1\r\n\xff\r\n"),
        (b"a\r\n\0", b"$4\r\na\r\n\0\r\n", b"$4\r\na\r\n\0\r\n"),
        ([1, []], b"*2\r\n:1\r\n*0\r\n", b"*2\r\n:1\r\n*0\r\n"),
        ({"a": {}}, b"*2\r\n$1\r\na\r\n*0\r\n", b"%1\r\n$1\r\na\r\n%0\r\n"),
        (Set(["a"]), b"*1\r\n$1\r\na\r\n", b"~1\r\n$1\r\na\r\n"),
        (Verbatim("hi"), b"$2\r\nhi\r\n", b"=6\r\ntxt:hi\r\n"),
        (Verbatim("\u00e9"), b"$2\r\n\xc3\xa9\r\n", b"=6\r\ntxt:\xc3\xa9\r\n"),
    ],
)
def test_forms(value: Reply, two: bytes, three: bytes) -> None:
    assert encode(value, 2) == two
    assert encode(value, 3) == three


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match=r"1\.5"):
        encode(cast("Reply", 1.5), 2)


def test_an_error_stays_one_line() -> None:
    assert encode_error("ERR no 'a\r\nb'") == b"-ERR no 'a  b'\r\n"
