"""Clients that begin and then do nothing more, made of the connection below the library."""

import select

from kvstrata import LocalStore, _kernel
from kvstrata.store.dialer import Dialer
from kvstrata.store.url import parse
from tests.contract.contents import wait_until


class StalledClient:
    """Has an operation under way that moves only when told to."""

    def __init__(self, store: LocalStore, operation: _kernel.Operation) -> None:
        self.operation = operation
        self._connection = Dialer(parse(store.node_url)).open(None, 5)
        self._connection.submit(operation)
        self._connection.progress()
        if isinstance(operation, _kernel.Get):  # Begun once its first bytes are here.
            assert select.select([self._connection.fileno()], [], [], 10)[0]

    def finish(self) -> None:
        """Go on to the end."""

        def ended() -> bool:
            self._connection.progress()
            return self.operation.done

        wait_until(ended, "the operation ends")

    def vanish(self) -> None:
        self._connection.close()


def live_bytes(store: LocalStore) -> int:
    """Bytes of memory that objects, readers and writes under way hold; counted now and then."""
    shards = store.admin("statistics")["shards"]
    return sum(shard["cell_bytes"] + shard["extent_bytes"] for shard in shards)
