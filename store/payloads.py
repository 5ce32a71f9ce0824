"""Payloads of administrative commands: msgpack maps, both ways (PROTOCOL.md, section 3)."""

from typing import Any

import msgpack  # type: ignore[import-untyped]

Payload = dict[str, Any]


def pack(payload: Payload) -> bytes:
    """The bytes of a map of plain values.

    Raises:
        TypeError: a value is not plain.
    """
    packed: bytes = msgpack.packb(payload)
    return packed


def unpack(data: bytes) -> Payload:
    """The map in the bytes; no bytes are an empty map.

    Raises:
        ValueError: they hold something else.
    """
    try:
        payload = msgpack.unpackb(data) if data else {}
    except ValueError as error:  # Its words tell of the decoder, and sometimes there are none.
        raise ValueError(
            "it is cut short or malformed, nested too deeply, or has a key or text that is no UTF-8"
        ) from error
    if not isinstance(payload, dict):
        raise ValueError(f"a payload is a map, not {type(payload).__name__}")  # noqa: TRY004
    return payload
