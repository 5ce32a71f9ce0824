"""A running node: the native half, its pools, and the thread that answers its commands.

Used inside the node process and by `kvstrata.local`. It listens on the data port only; HTTP,
signals and membership are the business of whoever runs it.
"""

import os
import time
from typing import Literal, Self

from kvstrata import _kernel
from kvstrata.store import admin, limits, unix_socket
from kvstrata.store.admin import AdminDesk, Caller, Command
from kvstrata.store.config import NodeConfig, PoolConfig
from kvstrata.store.errors import UsageError
from kvstrata.store.payloads import Payload
from kvstrata.store.pools import PoolRegistry
from kvstrata.store.resp_admin import dispatcher
from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import Request


class RunningNode:
    """Starts with its construction and ends with `stop`.

    Attributes:
        unix_path_missing: why it cannot be reached by a UNIX socket; "" if it can.

    Raises:
        OSError: the address, or the path of a UNIX socket, cannot be listened on.
        UsageError: a pool's settings are not allowed.
        ValueError: the sizes do not fit each other.
    """

    def __init__(self, config: NodeConfig, pools: dict[str, PoolConfig]) -> None:
        self.config = config
        self.pools = PoolRegistry(pools, config.pools_file)
        self.native = _kernel.Node(node_options(config), self.pools.options())
        self.unix_path_missing = unix_socket.listen(self.native, config.unix_path)
        self.pools.attach(self.native)
        self.desk = AdminDesk(self.native)
        for command in self._commands():
            self.desk.register(command)
        self._started = time.monotonic()
        state = NodeState(self.native, config, self.pools, _kernel.version(), self._started)
        self.desk.register_resp(lambda call: dispatcher.answer(state, _request(call)))
        self._stopped = False
        self._process = os.getpid()
        self.native.start()
        self.desk.start()

    @property
    def port(self) -> int:
        """The port the node listens on, also where the configuration left the choice open."""
        return self.native.port

    def information(self) -> Payload:
        """What the node is, for people and for the `info` command."""
        return {
            "version": _kernel.version(),
            "node_id": self.native.node_id.hex(),
            "protocol_version": limits.PROTOCOL_VERSION,
            "host": self.config.host,
            "port": self.port,
            "unix_path": self.native.unix_path,
            "unix_path_missing": self.unix_path_missing,
            "shards": self.config.shards,
            "memory": self.config.memory,
            "uptime": time.monotonic() - self._started,
        }

    def stop(self) -> bool:
        """Let transfers end within `stop_timeout`. False if some were cut off.

        In a forked child it does nothing: the node is the parent's.
        """
        if self._stopped or os.getpid() != self._process:
            return True
        self._stopped = True
        self.desk.stop()
        return self.native.stop(round(self.config.stop_timeout * 1000))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _commands(self) -> list[Command]:
        def pool_create(_caller: Caller, payload: Payload) -> Payload:
            given = {"settings": {}, **payload}
            name = admin.take(given, "name", str)
            self.pools.create(name, admin.take(given, "settings", dict))
            return self.pools.saved(name)

        def pool_change(_caller: Caller, payload: Payload) -> Payload:
            name = admin.take(payload, "name", str)
            self.pools.change(name, admin.take(payload, "settings", dict))
            return self.pools.saved(name)

        def pool_drop(_caller: Caller, payload: Payload) -> Payload:
            name = admin.take(payload, "name", str)
            self.pools.drop(name)
            return self.pools.saved(name)

        return [
            Command("info", lambda _c, _p: self.information(), "read", "what the node is"),
            Command("statistics", lambda _c, _p: self.native.statistics(), "node", "counters"),
            Command("pools", lambda _c, _p: self.pools.describe(), "node", "settings of all pools"),
            Command("pool_create", pool_create, "node", "make a pool: name, settings"),
            Command("pool_change", pool_change, "node", "change a pool: name, settings"),
            Command("pool_drop", pool_drop, "node", "remove a pool and its objects: name"),
        ]


def chosen_io(config: NodeConfig) -> Literal["io_uring", "epoll"]:
    """How the node's shards wait for their connections.

    Raises:
        UsageError: io_uring is asked for, and this machine has none.
    """
    if config.io == "epoll":
        return "epoll"
    if _kernel.uring_is_usable():
        return "io_uring"
    if config.io == "io_uring":
        raise UsageError(
            "node.io is 'io_uring', but it does not work here: the kernel has none (6.1 or newer"
            " is needed), it may not be used (sysctl kernel.io_uring_disabled), or liburing 2.3 or"
            " newer is not installed; 'auto' takes epoll then"
        )
    return "epoll"


def node_options(config: NodeConfig) -> _kernel.NodeOptions:
    """The settings as the native node takes them."""
    return _kernel.NodeOptions(
        host=config.host,
        port=config.port,
        shard_count=config.shards,
        memory_bytes=config.memory,
        populate_full=config.populate == "full",
        huge_pages=config.huge_pages,
        spin_us=round(config.spin * 1e6),
        uring=chosen_io(config) == "io_uring",
        credits=config.credits,
        connection_count_max=config.connections_max,
        connection_bytes_max=config.connection_memory_max,
        buffer_bytes_max=config.buffer_memory_max,
        minimum_rate=config.minimum_rate,
        stall_ms_max=round(config.stall_max * 1000),
    )


def _request(call: _kernel.AdminCall) -> Request:
    return Request(
        arguments=tuple(call.arguments),
        version=call.resp_version,
        client_id=call.client_id,
        pool=call.pool,
        rights=call.rights,
        peer=call.peer,
    )
