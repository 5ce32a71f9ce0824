"""The one table of commands, in the order in which they are listed."""

from typing import Final

from kvstrata.store.resp_commands.client import CLIENT
from kvstrata.store.resp_commands.cluster import CLUSTER
from kvstrata.store.resp_commands.command import Command
from kvstrata.store.resp_commands.connection import CONNECTION
from kvstrata.store.resp_commands.keyspace import KEYSPACE
from kvstrata.store.resp_commands.server import SERVER
from kvstrata.store.resp_commands.strings import STRINGS
from kvstrata.store.resp_commands.transactions import TRANSACTIONS

COMMANDS: Final[tuple[Command, ...]] = (
    *CONNECTION,
    *CLIENT,
    *STRINGS,
    *KEYSPACE,
    *TRANSACTIONS,
    *SERVER,
    *CLUSTER,
)
