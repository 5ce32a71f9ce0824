"""Objects as files: written to one in bounded memory, or opened as one.

Objects are read by ranges. The version is the same in all pieces of one reading, or it fails:
pieces of two values never mix.
"""

import contextlib
import errno
import io
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from typing_extensions import Buffer

from kvstrata.store import buffers
from kvstrata.store.errors import ChangedError, TimeoutError, UsageError
from kvstrata.store.results import ObjectStat, RangeResult

if TYPE_CHECKING:
    from kvstrata.store.client import Store
    from kvstrata.store.operations import Key

PIECE_BYTES: Final = 8 << 20
_READ_AHEAD_BYTES: Final = 1 << 20
_RESTART_COUNT_MAX: Final = 3
_PIPE_POLL_S: Final = 0.02


class Reading:
    """One reading of an object by ranges: where it is, and that it is still the same object."""

    def __init__(self, key: "Key") -> None:
        self._key = key
        self.offset = 0
        self.size = 0
        self._version: int | None = None

    @property
    def ended(self) -> bool:
        """Whether the whole value has been read."""
        return self._version is not None and self.offset >= self.size

    def accept(self, result: RangeResult | None) -> bool:
        """Take in the range read at `offset`. False if there is no such object.

        Raises:
            ChangedError: it is not the object of the ranges before, or ends too early.
        """
        if result is None and self._version is None:
            return False
        if (
            result is None
            or self._version not in (None, result.version)
            or (result.length == 0 and self.offset < result.size)
        ):
            raise changed(self._key)
        self._version, self.size = result.version, result.size
        self.offset += result.length
        return True


def changed(key: "Key") -> ChangedError:
    """What a reader by ranges raises when its object is no longer the one it began with."""
    return ChangedError(
        f"{buffers.show(buffers.as_key(key))} was replaced, appended to or removed while it was"
        " read piece by piece: read it again"
    )


class FileSink(io.FileIO):
    """A file being written. What goes wrong with it names the path that the caller knows."""

    def __init__(
        self,
        place: Path,
        mode: Literal["wb", "xb"],
        path: Path,
        opener: Callable[[str, int], int] | None = None,
    ) -> None:
        with _naming(path):
            super().__init__(place, mode, opener=opener)
        self._path = path

    def write_all(self, data: memoryview) -> None:
        """Write all of it.

        Raises:
            OSError: the disk is full, or another reason.
        """
        with _naming(self._path):
            while data:
                data = data[self.write(data) :]

    def to_disk(self) -> None:
        """Wait until all that was written is on the device; pipes and terminals have none.

        Raises:
            OSError: it could not be written after all.
        """
        with _naming(self._path):
            if stat.S_ISREG(os.fstat(self.fileno()).st_mode):
                os.fsync(self.fileno())


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextlib.contextmanager
def replacing(path: Path, timeout: float) -> Iterator[FileSink]:
    """A file to write, which takes the path's place, whole and on disk, if the block succeeds.

    It takes over the mode of a file that is there. Links are followed. What is no regular file
    cannot be replaced, so it is written itself.

    Args:
        timeout: seconds until somebody must read, where the path is a pipe.

    Raises:
        OSError: the path is a folder, or no file can be made there.
        TimeoutError: it is a pipe that nobody reads.
    """
    mode = _mode(path)
    if not _replaceable(path, mode):
        is_pipe = mode is not None and stat.S_ISFIFO(mode)
        # A folder is refused here.
        with _opened_pipe(path, timeout) if is_pipe else FileSink(path, "wb", path) as file:
            yield file
        return
    place = path.resolve()
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    with FileSink(draft, "xb", path) as file:
        try:
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            yield file
            file.to_disk()
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)


def _opened_pipe(path: Path, timeout: float) -> FileSink:
    """A pipe to write to. To open it the plain way waits for its reader, if need be for ever."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return FileSink(path, "wb", path, _open_at_once)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() >= deadline:
                raise TimeoutError(
                    f"nobody has read the pipe {path} within {timeout:g} s: start its reader first"
                ) from error
        time.sleep(_PIPE_POLL_S)


def _open_at_once(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def _mode(path: Path) -> int | None:
    """Type and permissions of what the path leads to; None where there is nothing."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def restart_count_max(path: Path) -> int:
    """How often a copy to the path may begin again: what went into a pipe cannot be taken back."""
    return _RESTART_COUNT_MAX if _replaceable(path, _mode(path)) else 0


def _replaceable(path: Path, mode: int | None) -> bool:
    folder = path.parent.resolve()
    if folder == Path("/dev") or folder.is_relative_to("/proc"):
        return False  # As /dev/stdout: the file it leads to is open elsewhere, and to stay so.
    return mode is None or stat.S_ISREG(mode)


def copy_to_file(
    store: "Store",
    key: "Key",
    path: Path,
    timeout: float,
    progress: Callable[[int, int], None] | None,
) -> int | None:
    """See `Store.get_file`."""
    for _ in range(restart_count_max(path)):
        with contextlib.suppress(ChangedError):
            return _copy(store, key, path, timeout, progress)
    return _copy(store, key, path, timeout, progress)


def _copy(
    store: "Store",
    key: "Key",
    path: Path,
    timeout: float,
    progress: Callable[[int, int], None] | None,
) -> int | None:
    piece = bytearray(PIECE_BYTES)
    reading = Reading(key)
    if not reading.accept(store.get_range_into(key, 0, piece, timeout)):
        return None
    with replacing(path, timeout) as file:
        written = 0
        while True:
            file.write_all(memoryview(piece)[: reading.offset - written])
            written = reading.offset
            if progress is not None:
                progress(written, reading.size)
            if reading.ended:
                return reading.size
            reading.accept(store.get_range_into(key, reading.offset, piece, timeout))


def open_object(
    store: "Store", key: "Key", mode: Literal["rb", "wb", "ab"], timeout: float | None
) -> io.BufferedIOBase:
    """See `Store.open`."""
    if mode == "rb":
        status = store.stat(key, timeout)
        if status is None:
            raise FileNotFoundError(f"there is no key {buffers.show(key)} in {store.url}")
        reader = ObjectReader(store, key, status, timeout)
        return io.BufferedReader(reader, _READ_AHEAD_BYTES)
    if mode == "wb":
        return ObjectWriter(store, key, timeout)
    if mode == "ab":
        return io.BufferedWriter(ObjectAppender(store, key, timeout), PIECE_BYTES)
    raise UsageError(f"mode is 'rb', 'wb' or 'ab', not {mode!r}: values are bytes")


class ObjectReader(io.RawIOBase):
    """Reads an object by ranges, as it was when it was opened."""

    def __init__(
        self, store: "Store", key: "Key", status: ObjectStat, timeout: float | None
    ) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._timeout = timeout
        self._size = status.size
        self._version = status.version
        self._offset = 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The offset of the next byte."""
        return self._offset

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to an offset from the start, from here or from the end; it may lie beyond the end."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._offset, os.SEEK_END: self._size}
        if whence not in base or base[whence] + offset < 0:
            raise UsageError(
                f"cannot seek to {offset} from whence {whence}: whence is 0 (start), 1 (here) or 2"
                f" (end), and the place is not before the start; here is {self._offset}, the end"
                f" {self._size}"
            )
        self._offset = base[whence] + offset
        return self._offset

    def readinto(self, buffer: Buffer) -> int:
        """Fill the buffer as far as the object goes.

        Raises:
            ChangedError: the object is not the one that was opened.
        """
        view = memoryview(buffer).cast("B")[: max(0, self._size - self._offset)]
        if len(view) == 0:
            return 0
        result = self._store.get_range_into(self._key, self._offset, view, self._timeout)
        if result is None or result.version != self._version:
            raise changed(self._key)
        self._offset += result.length
        return result.length


class ObjectWriter(io.BytesIO):
    """Gathers a value and puts it when closed; dropped or left by an exception, it puts nothing."""

    def __init__(self, store: "Store", key: "Key", timeout: float | None) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._timeout = timeout

    def close(self) -> None:
        """Put the value."""
        if self.closed:
            return
        try:
            with self.getbuffer() as value:
                self._store.put(self._key, value, timeout=self._timeout)
        finally:
            super().close()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            super().close()
        self.close()

    def __del__(self) -> None:
        super().close()


class ObjectAppender(io.RawIOBase):
    """Appends what is written at the object's end, as long as nobody else does."""

    def __init__(self, store: "Store", key: "Key", timeout: float | None) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._timeout = timeout
        status = store.stat(key, timeout)
        self._length = status.size if status else 0

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Buffer) -> int:
        """Append the bytes.

        Raises:
            MismatchError: somebody else has appended or replaced the object.
        """
        before = self._length
        self._length = self._store.append(self._key, data, before, self._timeout)
        return self._length - before
