"""The commands on objects: files and standard streams on one side, a store on the other."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import BinaryIO, Final

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

from kvstrata.cluster.access import escaped, open_store, parse_key, show_key, write_key
from kvstrata.cluster.exit_codes import NotFoundError
from kvstrata.cluster.output import console, print_json, table
from kvstrata.store.client import Store
from kvstrata.store.errors import UsageError
from kvstrata.store.file_content import read_whole
from kvstrata.store.operations import TTL_S_MAX
from kvstrata.store.units import format_size, parse_duration

_STREAM: Final = "-"
_PIECE_BYTES: Final = 8 << 20
_BATCH_KEY_COUNT: Final = 4096
# Large values take a while on slow networks; a node that is gone is noticed by its connection.
_TRANSFER_TIMEOUT_S: Final = 3600.0


def get(address: str | None, key_text: str, path: str, *, as_hex: bool, as_json: bool) -> None:
    """Read one value to a path, or to standard output for "-".

    Raises:
        NotFoundError: the key is absent.
    """
    key = parse_key(key_text, as_hex=as_hex)
    if as_json and path == _STREAM:
        raise UsageError("--json needs a file: standard output would hold both value and JSON")
    with open_store(address) as store:
        if path == _STREAM:
            _get_to_stream(store, key, key_text, sys.stdout.buffer)
            return
        with _progress(escaped(key_text)) as advance:
            size = store.get_file(key, path, progress=advance)
    if size is None:
        raise _absent([key_text])
    if as_json:
        print_json({"key": key_text, "file": path, "size": size})
    else:
        console().print(
            f"{escaped(key_text)} -> {escaped(path)}: {format_size(size)}", markup=False
        )


def put(
    address: str | None,
    key_text: str,
    path: str,
    *,
    text: str | None,
    ttl: str | None,
    if_absent: bool,
    as_hex: bool,
    as_json: bool,
) -> None:
    """Put one value from a text, a path, or standard input for "-"."""
    key = parse_key(key_text, as_hex=as_hex)
    if text is not None and path != _STREAM:
        raise UsageError(f"give either --text or the file {path!r}, not both")
    seconds = None if ttl is None else _ttl_s(ttl)
    with open_store(address, _TRANSFER_TIMEOUT_S) as store, _progress(escaped(key_text)):
        if text is None and path != _STREAM:
            result = store.put_file(key, path, seconds, if_absent)
        else:
            value = _from_stream(store) if text is None else text.encode()
            result = store.put(key, value, seconds, if_absent)
    if as_json:
        print_json(
            {
                "key": key_text,
                "outcome": result.outcome,
                "size": result.size,
                "version": result.version,
            }
        )
    else:
        outcome = f"{result.outcome}, {format_size(result.size)}"
        console().print(f"{escaped(key_text)}: {outcome}", markup=False)


def remove(
    address: str | None,
    key_texts: Sequence[str],
    prefix: str | None,
    *,
    all_keys: bool,
    as_hex: bool,
    as_json: bool,
) -> None:
    """Remove keys, and all that begin with a prefix.

    Args:
        all_keys: whether the prefix may be empty, as which an unset variable of a script arrives.

    Raises:
        NotFoundError: a key that was named is absent; the others are removed.
        UsageError: there is nothing to remove, or an empty prefix without `all_keys`.
    """
    if prefix == "" and not all_keys:
        raise UsageError("an empty --prefix removes the whole pool: give --yes if that is meant")
    if not key_texts and prefix is None:
        raise UsageError("name the keys to remove, or give --prefix")
    removed = 0
    with open_store(address) as store:
        found = store.delete_many([parse_key(text, as_hex=as_hex) for text in key_texts])
        removed += sum(found)
        if prefix is not None:
            matching = (each.key for each in store.scan(parse_key(prefix, as_hex=as_hex)))
            while batch := list(islice(matching, _BATCH_KEY_COUNT)):
                removed += sum(store.delete_many(batch))
    missing = [text for text, there in zip(key_texts, found, strict=True) if not there]
    if as_json:
        print_json({"removed": removed, "missing": missing})
    else:
        console().print(f"removed {removed}")
    if missing:
        raise _absent(missing)


def list_keys(address: str | None, prefix: str, limit: int, *, as_hex: bool, as_json: bool) -> None:
    """Print keys and sizes as they are met, so that a large store needs no memory here."""
    with open_store(address) as store:
        found = store.scan(parse_key(prefix, as_hex=as_hex))
        for each in islice(found, limit or None):
            if as_json:
                print_json({"key": write_key(each.key, as_hex=as_hex), "size": each.size})
            else:
                print(f"{format_size(each.size):>10}  {show_key(each.key, as_hex=as_hex)}")


def stat(address: str | None, key_texts: Sequence[str], *, as_hex: bool, as_json: bool) -> None:
    """Show objects.

    Raises:
        NotFoundError: one is absent; the others are shown.
    """
    with open_store(address) as store:
        stats = {text: store.stat(parse_key(text, as_hex=as_hex)) for text in key_texts}
    if as_json:
        print_json(
            [
                {
                    "key": text,
                    "found": True,
                    "size": each.size,
                    "version": each.version,
                    "ttl": each.ttl,
                    "chunks": each.chunk_count,
                    "tier": each.tier,
                    "dtype": each.dtype,
                    "shape": each.shape,
                }
                if each is not None
                else {"key": text, "found": False}
                for text, each in stats.items()
            ]
        )
    else:
        rows = [
            (
                escaped(text),
                format_size(each.size),
                each.version,
                "never" if each.ttl is None else f"in {each.ttl:.1f} s",
                each.chunk_count,
                each.tier,
                f"{each.dtype} {list(each.shape or ())}" if each.dtype else None,
            )
            for text, each in stats.items()
            if each is not None
        ]
        columns = ("key", ">size", ">version", "expires", ">chunks", "tier", "tensor")
        if rows:
            console().print(table(*columns, rows=rows))
    missing = [text for text, each in stats.items() if each is None]
    if missing:
        raise _absent(missing)


def exists(address: str | None, key_texts: Sequence[str], *, as_hex: bool, as_json: bool) -> None:
    """Tell of each key whether it is there.

    Raises:
        NotFoundError: one is absent.
    """
    with open_store(address) as store:
        found = store.exists_many([parse_key(text, as_hex=as_hex) for text in key_texts])
    if as_json:
        print_json(dict(zip(key_texts, found, strict=True)))
    else:
        for text, there in zip(key_texts, found, strict=True):
            print(f"{'there' if there else 'absent':<7} {escaped(text)}")
    missing = [text for text, there in zip(key_texts, found, strict=True) if not there]
    if missing:
        raise _absent(missing)


def _from_stream(store: Store) -> bytearray:
    return read_whole(sys.stdin.buffer, "standard input", store.value_bytes_max)


def _get_to_stream(store: Store, key: bytes, key_text: str, stream: BinaryIO) -> None:
    try:
        reader = store.open(key)
    except FileNotFoundError:
        raise _absent([key_text]) from None
    with reader:
        while piece := reader.read(_PIECE_BYTES):
            stream.write(piece)
    stream.flush()


def _absent(key_texts: Sequence[str]) -> NotFoundError:
    which = "is no key" if len(key_texts) == 1 else "are no keys"
    return NotFoundError(
        f"there {which} {', '.join(map(repr, key_texts))}: kvstrata ls shows what there is"
    )


def _ttl_s(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--ttl: {error}") from error
    if seconds > TTL_S_MAX:
        raise UsageError(f"--ttl is at most {TTL_S_MAX} seconds, not {text!r}; 0 is never")
    return seconds or math.inf


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, if that is a terminal; its total is unknown until it is told."""
    screen = console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    )
    with bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
