"""Where a node listens for clients of its own host, beside its port."""

import os
import stat
from pathlib import Path

from kvstrata import _kernel
from kvstrata.store.config import UNIX_PATH_AUTO, runtime_folder


def listen(native: _kernel.Node, wish: str) -> str:
    """Let a node that has not been started be reached by a UNIX socket.

    Args:
        native: the node; it has its port.
        wish: `node.unix_path`.

    Returns:
        Why it cannot be reached so, or "" if it can. What was not asked for may be missing.

    Raises:
        OSError: the path that was asked for cannot be had.
    """
    if not wish:
        return "node.unix_path is empty"
    if wish != UNIX_PATH_AUTO:
        native.listen_unix(wish)
        return ""
    try:
        native.listen_unix(str(_own(runtime_folder()) / f"{native.port}.sock"))
    except OSError as error:
        return str(error)
    return ""


def _own(folder: Path) -> Path:
    """The folder, made if it was missing: who else could write there could put a socket of theirs
    in our place.

    Raises:
        OSError: it is somebody else's.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not own or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(
            f"{folder} is not this user's alone: remove it, or choose a node.unix_path elsewhere"
        )
    return folder
