"""Payloads: plain maps come back, and whatever else arrives is refused in words of their own."""

import pytest

from kvstrata.store.payloads import pack, unpack


def test_a_map_comes_back() -> None:
    payload = {"name": "kv", "settings": {"quota": 5, "read": ["a"]}, "none": None}
    assert unpack(pack(payload)) == payload
    assert unpack(b"") == {}


@pytest.mark.parametrize(
    "data",
    [
        b"\x91" * 5000 + b"\x80",
        b"\xdf\xff\xff\xff\xff",
        b"\x81\xc0\xc0",
        b"\x81\xa4name\xa3\xff\xff\xff",
        b"\x81\xa4nam",
        b"\xc1",
        b"\x80\x80",
    ],
    ids=["deep", "huge_map", "none_as_key", "not_utf8", "cut", "unused_byte", "more_behind"],
)
def test_hostile_bytes_are_told(data: bytes) -> None:
    with pytest.raises(ValueError, match="cut short or malformed, nested too deeply"):
        unpack(data)


def test_something_other_than_a_map_is_told() -> None:
    with pytest.raises(ValueError, match="not list"):
        unpack(b"\x90")
