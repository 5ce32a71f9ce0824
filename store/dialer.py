"""How a store's connections reach its node: by the best transport that works, or the one asked for.

The node tells in its answer to a hello where else it can be reached. A client on the same host
tries that, and stays there if the same node answers.
"""

import os
import socket
from time import monotonic
from typing import Final, NamedTuple

from kvstrata import _kernel
from kvstrata.store import limits
from kvstrata.store.errors import UnavailableError
from kvstrata.store.results import Transport
from kvstrata.store.statuses import OK, failure
from kvstrata.store.url import Target

# A UNIX socket that answers takes less by far; TCP, which is there already, serves meanwhile.
_BESIDE_S_MAX: Final = 1.0


_NOT_SHARED: Final = "it grants no shared memory: it is out of it, or of another version"


class _Route(NamedTuple):
    """A way that led to the node: `unix_path` is empty for TCP."""

    transport: Transport
    unix_path: str = ""
    node_id: bytes = b""


class Dialer:
    """Opens connections to one node. Thread-safe: what it has learnt is replaced as a whole.

    Attributes:
        regions: memory that the node may reach, where it is on this host.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self.regions = _kernel.Regions()
        self._route = _Route(Transport("none", "not connected yet"))

    @property
    def transport(self) -> Transport:
        """By which transport the latest connection came, and why so."""
        return self._route.transport

    def open(self, shard: int | None, timeout: float) -> _kernel.Connection:
        """Connect and greet.

        Raises:
            DeniedError: the secret is wrong.
            BusyError: the node has as many connections as it takes.
            UnsupportedError: the node speaks other versions.
            UnavailableError: nobody answers there, or not by the transport that was asked for.
        """
        deadline = monotonic() + timeout
        known = self._route
        if known.unix_path:
            connection = self._dial(shard, timeout, known.unix_path)
            if connection.status == OK and connection.node_id == known.node_id:
                return connection
            connection.close()  # Restarted, perhaps elsewhere: asked anew.
        connection = self._checked(self._dial(shard, deadline - monotonic()))
        if self._target.transport == "tcp":
            self._route = _Route(Transport("tcp", "it was asked for"))
            return connection
        better, reason = self._beside(connection, shard, deadline)
        if better is not None:
            connection.close()
            path = connection.unix_path
            self._route = _Route(self._kind_of(better, path), path, better.node_id)
            return better
        wish = self._target.transport
        if wish != "auto":
            connection.close()
            raise UnavailableError(f"cannot use transport={wish} to {self._target}: {reason}")
        self._route = _Route(Transport("tcp", reason))
        return connection

    def _beside(
        self, connection: _kernel.Connection, shard: int | None, deadline: float
    ) -> tuple[_kernel.Connection | None, str]:
        """A connection to the same node over its UNIX socket, or why there is none."""
        path = connection.unix_path
        if not connection.stays_on_host:
            return None, "the node is on another host"
        if not path:
            return None, "the node has no UNIX socket: its node.unix_path is off, or did not work"
        timeout = deadline - monotonic()
        if self._target.transport == "auto":
            timeout = min(timeout, _BESIDE_S_MAX)
        found = self._dial(shard, timeout, path)
        insists = self._target.transport == "shm"
        if found.status != OK:
            reason = found.message
        elif found.node_id != connection.node_id:
            reason = f"{path} leads to another node"
        elif insists and not found.shares_memory:
            reason = _NOT_SHARED
        else:
            return found, ""
        found.close()
        return None, reason

    def _kind_of(self, connection: _kernel.Connection, path: str) -> Transport:
        place = f"the node is on this host, at {path}"
        if connection.shares_memory:
            return Transport("shm", place)
        asked = self._target.transport == "unix"
        return Transport("unix", place if asked else f"{place}, but {_NOT_SHARED}")

    def _dial(self, shard: int | None, timeout: float, unix_path: str = "") -> _kernel.Connection:
        target = self._target
        return _kernel.Connection(
            target.host,
            target.port,
            unix_path=unix_path,
            trusts_any_owner=target.transport in ("unix", "shm"),
            regions=self.regions if unix_path and target.transport != "unix" else None,
            pool=target.pool,
            secret=target.secret,
            client_name=target.client_name or f"{socket.gethostname()}:{os.getpid()}",
            credits=limits.CREDITS_DEFAULT,
            shard=shard,
            verify=target.verify,
            spin_us=target.spin_us,
            timeout_ms=max(1, round(timeout * 1000)),
        )

    def _checked(self, connection: _kernel.Connection) -> _kernel.Connection:
        if connection.status == _kernel.CLOSED:  # Nothing was asked yet: no outcome is unknown.
            raise UnavailableError(f"cannot connect to {self._target}: {connection.message}")
        if connection.status != OK:
            raise failure(connection.status, f"connecting to {self._target}", connection.message)
        return connection
