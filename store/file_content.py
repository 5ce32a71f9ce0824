"""What a file holds, as a value to put: a regular file is read while it is sent."""

import os
import stat
from typing import BinaryIO, Final

from kvstrata import _kernel
from kvstrata.store import operations
from kvstrata.store.buffers import as_key, show
from kvstrata.store.call import Call
from kvstrata.store.errors import ChangedError, TooLargeError
from kvstrata.store.operations import Key
from kvstrata.store.results import PutResult
from kvstrata.store.statuses import CORRUPT
from kvstrata.store.units import format_size

_READ_BYTES: Final = 1 << 20


def put_file(
    key: Key,
    path: str | os.PathLike[str],
    ttl: float | None,
    if_absent: bool,
    value_bytes_max: int,
    chunk_bytes: int,
) -> Call[_kernel.Put, PutResult]:
    """PUT of what a file holds now; reads it once, and regular files again when they are sent.

    Args:
        value_bytes_max: reading stops beyond it: pipes and devices tell no size, and may not end.
        chunk_bytes: of the node; there is a checksum for each piece of this length.

    Raises:
        OSError: the file cannot be read.
        ChangedError: it was truncated meanwhile.
        TooLargeError: it has more than `value_bytes_max`.
    """
    name, milliseconds = as_key(key), operations.ttl_ms(ttl)
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        # Files of /proc say that they are regular and have no bytes.
        if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
            return operations.put(name, read_whole(file, path, value_bytes_max), ttl, if_absent)
        size = status.st_size
        if size > value_bytes_max:
            raise _too_large(path, value_bytes_max)
        checksums = _checksums(file, path, size, chunk_bytes)
        source = _kernel.FileSource(file.fileno(), size, checksums)

    def read(operation: _kernel.Put) -> PutResult:
        if operation.status == CORRUPT:
            raise ChangedError(
                f"put of {show(name)}: {path} was changed while it was put, or its bytes were"
                " damaged on the way, so nothing was stored: put it again"
            )
        return operations.put_result(operation, name, size)

    return Call(
        lambda: _kernel.Put(name, source, ttl_ms=milliseconds, if_absent=if_absent),
        read,
        lambda: f"put of {show(name)}",
        key=name,
    )


def _checksums(
    file: BinaryIO, path: str | os.PathLike[str], size: int, chunk_bytes: int
) -> list[int]:
    """Of each piece of the file's first `size` bytes."""
    checksums = []
    piece = memoryview(bytearray(min(size, chunk_bytes)))
    for offset in range(0, size, chunk_bytes):
        wanted = piece[: size - offset]
        count = file.readinto(wanted)  # type: ignore[attr-defined]
        if count < len(wanted):
            raise ChangedError(
                f"{path} was truncated from {size} to {offset + count} bytes while it was read:"
                " put it again"
            )
        checksums.append(_kernel.chunk_checksum(wanted))
    return checksums


def read_whole(file: BinaryIO, name: str | os.PathLike[str], value_bytes_max: int) -> bytearray:
    """All that comes from a file, pipe or device.

    Raises:
        TooLargeError: that is more than `value_bytes_max`; no more is read.
    """
    content = bytearray()
    while piece := file.read(_READ_BYTES):
        content += piece
        if len(content) > value_bytes_max:
            raise _too_large(name, value_bytes_max)
    return content


def _too_large(name: str | os.PathLike[str], value_bytes_max: int) -> TooLargeError:
    return TooLargeError(
        f"{name} has more than {format_size(value_bytes_max)}, the largest value that the node"
        " could hold: put it in parts"
    )
