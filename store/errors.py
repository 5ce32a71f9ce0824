"""What can go wrong, as types. A leaf: it knows neither statuses of the wire nor how they arise.

Every error says in one line what was wrong, with which value, and what to do. `retryable` tells
whether the same call may succeed later without anybody changing anything.
"""

import builtins
from collections.abc import Mapping, Sequence
from typing import ClassVar


class Error(Exception):
    """Base of everything that kvstrata raises."""

    retryable: ClassVar[bool] = False


class UsageError(Error, ValueError):
    """The call itself is wrong: an argument, a setting, a closed store."""


class TooSmallError(UsageError):
    """The buffer is smaller than the value; nothing was written to it.

    Attributes:
        size: true size of the value in bytes.
    """

    def __init__(self, message: str, *, size: int = 0) -> None:
        super().__init__(message)
        self.size = size


class TooLargeError(UsageError):
    """Larger than this node, its pool or the protocol could ever take.

    Attributes:
        size: size that was asked for in bytes, where it is known, else 0.
    """

    def __init__(self, message: str, *, size: int = 0) -> None:
        super().__init__(message)
        self.size = size


class ImmutableError(UsageError):
    """The pool's objects cannot be overwritten, and the key exists."""


class MismatchError(Error):
    """An append did not find the object's end where the caller thought it was.

    Attributes:
        length: present length of the object in bytes.
    """

    def __init__(self, message: str, *, length: int = 0) -> None:
        super().__init__(message)
        self.length = length


class ChangedError(Error):
    """What was read piece by piece, an object or a file, became another meanwhile."""

    retryable = True


class NoSpaceError(Error):
    """The pool is full and may not evict, or nothing can be evicted now."""


class CorruptError(Error):
    """A checksum did not match, so the bytes were not given out."""


class DeniedError(Error, PermissionError):
    """The secret is wrong, or a right is missing."""


class UnsupportedError(Error):
    """The two ends do not speak the same: a version, a command or an attribute is unknown."""


class UnavailableError(Error, ConnectionError):
    """The node cannot be reached, is stopping, or was lost before the outcome was known."""

    retryable = True


class BusyError(UnavailableError):
    """The node, or this store's own connections, stayed over a budget until the timeout."""


class TimeoutError(UnavailableError, builtins.TimeoutError):
    """The call's timeout passed; whether a write took place is unknown."""


class InternalError(Error):
    """A fault of kvstrata itself. Please report it, with this message."""


class BatchError(Error):
    """Some keys of a `_many` call failed; the others were done.

    Attributes:
        outcomes: one element a key, in order: its result, or the error it met.
        failures: the errors alone, by index into the keys.
    """

    def __init__(
        self,
        message: str,
        *,
        outcomes: Sequence[object] = (),
        failures: Mapping[int, Error] | None = None,
    ) -> None:
        super().__init__(message)
        self.outcomes = outcomes
        self.failures = failures or {}
