"""How commands reach a store, and how keys are written on a command line."""

from pathlib import Path
from typing import Any

from kvstrata.store.client import Store, connect
from kvstrata.store.config import LoadedConfig, load_config
from kvstrata.store.errors import UsageError


def open_store(address: str | None, timeout: float | None = None) -> Store:
    """Connect to the node that was named, else to KVSTRATA_URL, else to one on this machine."""
    return connect(settings(client={"url": address}).config.client.url, timeout=timeout)


def settings(path: Path | None = None, **sections: dict[str, Any]) -> LoadedConfig:
    """The settings, with what was given on the command line; None counts as not given."""
    return load_config(path, sections)


def parse_key(text: str, *, as_hex: bool) -> bytes:
    """The key that was written on the command line.

    Raises:
        UsageError: it should be hexadecimal and is not.
    """
    if not as_hex:
        return text.encode(errors="surrogateescape")  # Whatever bytes the shell passed on.
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise UsageError(f"--hex: the key {text!r} is not hexadecimal") from error


def write_key(key: bytes, *, as_hex: bool) -> str:
    """The key as it would be written on the command line: what `parse_key` takes."""
    return key.hex() if as_hex else key.decode(errors="surrogateescape")


def show_key(key: bytes, *, as_hex: bool) -> str:
    """The key for people's eyes, see `escaped`."""
    return escaped(write_key(key, as_hex=as_hex))


def escaped(text: str) -> str:
    """The text without what a terminal would obey, as no two texts look alike.

    Bytes that are no UTF-8 and control characters become \\xNN, other characters that do not print
    \\uNNNN, the backslash itself is doubled.
    """
    return "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character == "\\":
        return r"\\"
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # How Python carries a byte that is no UTF-8.
        code -= 0xDC00
        return f"\\x{code:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"
