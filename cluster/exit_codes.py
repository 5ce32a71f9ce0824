"""What a command's exit status means, and which error ends with which."""

import enum
from typing import Final

from kvstrata.store.errors import (
    DeniedError,
    Error,
    ImmutableError,
    MismatchError,
    NoSpaceError,
    UnavailableError,
    UnsupportedError,
    UsageError,
)


class ExitCode(enum.IntEnum):
    """Exit statuses of `kvstrata`; scripts rely on them, so they never change."""

    OK = 0
    FAULT = 1  # Something broke: a file, a checksum, kvstrata itself.
    USAGE = 2  # The command line or a setting is wrong.
    UNAVAILABLE = 3  # No node answers there, or it is over a budget: try again later.
    NOT_FOUND = 4  # The key is not there, or the pool to be shown, set or dropped.
    REFUSED = 5  # The node will not: secret, right, immutable pool, no space.


class NotFoundError(Error):
    """The key or the pool that was named is not there."""


# The first that fits counts, so the more special ones stand first.
_CODES: Final[tuple[tuple[type[Error], ExitCode], ...]] = (
    (NotFoundError, ExitCode.NOT_FOUND),
    (DeniedError, ExitCode.REFUSED),
    (ImmutableError, ExitCode.REFUSED),
    (MismatchError, ExitCode.REFUSED),
    (NoSpaceError, ExitCode.REFUSED),
    (UnsupportedError, ExitCode.REFUSED),
    (UsageError, ExitCode.USAGE),
    (UnavailableError, ExitCode.UNAVAILABLE),
)


def exit_code(error: BaseException) -> ExitCode:
    """The status that a command ends with after this error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAULT)
