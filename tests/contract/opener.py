"""Pools and stores for a test."""

import itertools
from typing import Any, cast

import kvstrata
from kvstrata import LocalStore, Store
from tests.contract.doors import DrivenStore, LoopThread

SECRET = "contract"


class Opener:
    """Makes pools on a node and opens stores on them."""

    _numbers = itertools.count()

    def __init__(self, node: LocalStore, door: str, transport: str, loop: LoopThread) -> None:
        self.node = node
        self._door = door
        self._transport = transport
        self._loop = loop
        self._made: list[str] = []
        self._open: list[Store] = []

    def make_pool(self, **settings: object) -> str:
        name = f"pool-{next(self._numbers)}"
        self.node.admin("pool_create", {"name": name, "settings": {"admin": SECRET, **settings}})
        self._made.append(name)
        return name

    def open(self, pool: str, secret: str = SECRET, *, verify: bool = True) -> Store:
        def connecting(connect: Any) -> Any:  # noqa: ANN401
            return connect(
                self.node.node_url,
                pool=pool,
                secret=secret,
                transport=self._transport,
                verify=verify,
            )

        if self._door == "sync":
            store: Store = connecting(kvstrata.connect)
        else:
            driven = DrivenStore(self._loop, lambda: connecting(kvstrata.connect_async))
            store = cast("Store", driven)
        assert store.transport.name == self._transport
        self._open.append(store)
        return store

    def __call__(self, *, verify: bool = True, **settings: object) -> Store:
        """A store on a new pool with these settings."""
        return self.open(self.make_pool(**settings), verify=verify)

    def drop_last(self) -> None:
        """Drop the pool made last."""
        self.node.admin("pool_drop", {"name": self._made.pop()})

    def close(self) -> None:
        for store in self._open:
            store.close()
        while self._made:
            self.drop_last()
