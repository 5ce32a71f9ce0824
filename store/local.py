"""A whole store inside this process: for notebooks, tests, and programs that need no other."""

import secrets
import weakref
from collections.abc import Mapping

from pydantic import SecretStr

from kvstrata.store import url
from kvstrata.store.client import Store
from kvstrata.store.config import PoolConfig, load_config
from kvstrata.store.errors import UsageError
from kvstrata.store.node import RunningNode
from kvstrata.store.pools import DEFAULT


def local(
    memory: int | str = "256MiB",
    *,
    shards: int = 1,
    pools: Mapping[str, PoolConfig] | None = None,
    pool: str = DEFAULT,
) -> "LocalStore":
    """Start a node in this process, on the loopback address, and connect to it.

    The node ends with the store's `close`, at the latest with the process. A random secret keeps
    other users of the machine out; `LocalStore.node_url` has it, for further connections.

    Args:
        memory: bytes for values and their records, or a text such as "1GiB".
        shards: threads that each own part of the keys.
        pools: further pools by name, or other settings of `default`.
        pool: which of them the store uses.

    Raises:
        UsageError: a setting is not allowed.
        OSError: the memory cannot be had, or is too little for the shards.
    """
    secret = secrets.token_urlsafe(24)
    settings = {DEFAULT: PoolConfig(), **(pools or {})}
    if pool not in settings:
        raise UsageError(
            f"there is no pool {pool!r} for the store to use: add it to `pools`, or choose one of"
            f" {', '.join(settings)}"
        )
    guarded = {
        name: config.model_copy(update={"admin": (SecretStr(secret),), "admin_file": None})
        for name, config in settings.items()
    }
    config = load_config(
        overrides={"node": {"port": 0, "shards": shards, "memory": memory}}, environment={}
    ).config
    node = RunningNode(config.node, guarded)
    try:
        return LocalStore(node, url.Target(port=node.port, pool=pool, secret=secret))
    except BaseException:
        node.stop()
        raise


class LocalStore(Store):
    """A `Store` whose node lives in this process and ends with it."""

    def __init__(self, node: RunningNode, target: url.Target) -> None:
        super().__init__(target)
        self.node = node
        # Also when the store is dropped or the interpreter ends without a close.
        self._stop_node = weakref.finalize(self, node.stop)

    @property
    def node_url(self) -> str:
        """The URL with the secret, for further connections from this machine."""
        target = self._target
        return f"kvstrata://{target.pool}:{target.secret}@{target.host}:{target.port}"

    def close(self) -> None:
        """Close the connections and stop the node; its objects are gone."""
        super().close()
        self._stop_node()
