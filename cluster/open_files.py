"""How many files the process may have open, which bounds how many connections a node can take."""

import contextlib
import resource
from typing import Final

from kvstrata.store import limits
from kvstrata.store.errors import UsageError

REMEDY: Final = "by ulimit -n, LimitNOFILE in systemd, or --ulimit nofile in Docker"

_FILES_PER_SHARD: Final = 4  # Its epoll, its wake-ups, its listener.
_OTHER_FILES: Final = 64  # Python's own, logs, pools and secrets as they are read; with some room.


def files_beside_connections(shard_count: int) -> int:
    """Descriptors that a node has use for when its data port has no connection."""
    return _FILES_PER_SHARD * shard_count + limits.HTTP_CONNECTION_COUNT_MAX + _OTHER_FILES


def allow_connections(count: int, shard_count: int) -> int:
    """Raise this process's limit of open files for so many connections, as far as it may be.

    Returns:
        How many connections there is room for: `count`, or fewer.

    Raises:
        UsageError: there is room for none.
    """
    others = files_beside_connections(shard_count)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = others + count
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # A sandbox may forbid it.
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    if soft == resource.RLIM_INFINITY or soft >= others + count:
        return count
    if soft <= others:
        raise UsageError(
            f"this process may have {soft} files open, and the node needs {others} beside those of"
            f" connections: allow more, {REMEDY}"
        )
    return soft - others
