"""Reads secrets from the files that settings name."""

import os
import stat
from pathlib import Path
from typing import Final

from kvstrata.store import limits
from kvstrata.store.errors import UsageError

_SECRET_COUNT_MAX: Final = 2
_FILE_BYTES_MAX: Final = 4_096  # Two secrets of the longest, and room around them.


def read_secrets(path: Path) -> list[str]:
    """The one or two secrets in a file, one a line. Never waits for a writer.

    Raises:
        UsageError: it is not a regular file that can be read, or holds anything else.
    """
    data = _read(path)
    try:
        secrets = data.decode().split()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: put one or two secrets, one a line") from error
    if not 1 <= len(secrets) <= _SECRET_COUNT_MAX:
        raise UsageError(f"{path} holds {len(secrets)} secrets: put one or two, one a line")
    for secret in secrets:
        if len(secret.encode()) > limits.SECRET_BYTES_MAX:
            raise UsageError(
                f"a secret has at most {limits.SECRET_BYTES_MAX} bytes, and one in {path} has"
                f" {len(secret.encode())}"
            )
    return secrets


def _read(path: Path) -> bytes:
    try:
        # Opening a FIFO waits for its other end otherwise.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            data = os.read(descriptor, _FILE_BYTES_MAX + 1) if regular else b""
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:  # A NUL in the path is a ValueError.
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot read the secrets in {str(path)!r}: {reason}") from error
    if not regular:
        raise UsageError(f"{path} is not a regular file: put the secrets into one")
    if len(data) > _FILE_BYTES_MAX:
        raise UsageError(f"{path} is larger than {_FILE_BYTES_MAX} bytes: it holds secrets only")
    return data
