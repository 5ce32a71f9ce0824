"""Statuses of the wire (PROTOCOL.md, section 5), and what each means as an exception."""

from typing import Final

from kvstrata import _kernel
from kvstrata.store.errors import (
    BusyError,
    CorruptError,
    DeniedError,
    Error,
    ImmutableError,
    InternalError,
    MismatchError,
    NoSpaceError,
    TimeoutError,
    TooLargeError,
    TooSmallError,
    UnavailableError,
    UnsupportedError,
    UsageError,
)

OK: Final = 0
NOT_FOUND: Final = 1
EXISTS: Final = 2
TOO_SMALL: Final = 3
MISMATCH: Final = 4
IMMUTABLE: Final = 5
BUSY: Final = 6
NO_SPACE: Final = 7
TOO_LARGE: Final = 8
DENIED: Final = 9
DEADLINE: Final = 10
CORRUPT: Final = 11
INVALID: Final = 12
UNSUPPORTED: Final = 13
CLOSING: Final = 15
INTERNAL: Final = 16

# What each means and what to do about it; the subject, "put of b'key'", stands before.
_MEANINGS: Final[dict[int, tuple[type[Error], str]]] = {
    BUSY: (BusyError, "the node is over a budget: try again later, or with fewer at a time"),
    NO_SPACE: (NoSpaceError, "the pool is full and may not evict: delete, or raise its quota"),
    DENIED: (DeniedError, "not allowed: the secret is wrong or lacks the right that this needs"),
    IMMUTABLE: (
        ImmutableError,
        "the key exists and the pool is immutable: put only if absent, or append",
    ),
    CORRUPT: (CorruptError, "a checksum did not match, so the bytes were not accepted: try again"),
    DEADLINE: (
        TimeoutError,
        "the node did not get to it before the timeout: allow a longer one, or ask for less",
    ),
    UNSUPPORTED: (UnsupportedError, "the node does not know this: is it of an older version?"),
    CLOSING: (UnavailableError, "the node is stopping: try again once it is back"),
    _kernel.CLOSED: (
        UnavailableError,
        "the connection broke before the outcome was known: a write may have been done",
    ),
    _kernel.TIMED_OUT: (
        TimeoutError,
        "no answer within the timeout: allow a longer one, or look how busy the node is",
    ),
}


def failure(
    status: int, subject: str, message: str = "", *, size: int = 0, capacity: int = 0
) -> Error:
    """The exception for a status: the one place where statuses become exceptions.

    Args:
        status: not OK, and not an outcome that the call returns as a value.
        subject: what was attempted on which key, for example "put of b'key'".
        message: the node's own words, if it gave some.
        size: true size of the value, or present length of the object, where it is known.
        capacity: bytes of the caller's buffer, where there is one.
    """
    if status == TOO_SMALL:
        text = f"the value has {size} bytes, the buffer {capacity}: give a buffer of {size} bytes"
        return TooSmallError(f"{subject}: {text}", size=size)
    if status == MISMATCH:
        return MismatchError(
            f"{subject}: the object ends at {size}: append at={size}, if that is still right",
            length=size,
        )
    if status == TOO_LARGE:
        text = message or "larger than the node or its pool could ever hold: put it in parts"
        return TooLargeError(f"{subject}: {text}", size=size)
    if status == INVALID:
        text = message or "the node found a value that the protocol does not allow: please report"
        return UsageError(f"{subject}: {text}")
    kind, meaning = _MEANINGS.get(
        status,
        (
            InternalError,
            f"a fault of the node, status {_kernel.status_name(status)}: please report",
        ),
    )
    return kind(f"{subject}: {meaning}" + (f" ({message})" if message else ""))
