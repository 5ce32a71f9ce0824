"""Finds who answers a command, checks that the caller may give it, and encodes what comes out."""

from collections.abc import Callable
from typing import Final

from kvstrata.store import pools
from kvstrata.store.resp_admin import (
    access,
    clients,
    cluster,
    command_list,
    configuration,
    information,
    latency,
    replication,
    slow_log,
)
from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import CommandError, Request
from kvstrata.store.resp_commands.table import COMMANDS
from kvstrata.store.resp_encoding import Reply, encode, encode_error

_ANSWERS: Final[dict[str, Callable[[NodeState, Request], Reply]]] = {
    "acl|cat": access.categories,
    "acl|getuser": access.get_user,
    "acl|list": access.list_users,
    "acl|whoami": access.whoami,
    "client|info": clients.own_information,
    "client|kill": clients.kill,
    "client|list": clients.list_clients,
    "cluster|info": cluster.information,
    "cluster|links": cluster.links,
    "cluster|myid": cluster.own_id,
    "cluster|nodes": cluster.nodes,
    "cluster|shards": cluster.shards,
    "cluster|slots": cluster.slots,
    "command|list": command_list.answer,
    "config|get": configuration.get,
    "config|set": configuration.change,
    "info": information.answer,
    "latency|histogram": latency.histogram,
    "latency|history": latency.history,
    "latency|latest": latency.latest,
    "latency|reset": latency.reset,
    "slowlog|get": slow_log.get,
    "slowlog|len": slow_log.length,
    "slowlog|reset": slow_log.reset,
    "wait": replication.wait,
}
_CONTAINERS: Final = frozenset(name.partition("|")[0] for name in _ANSWERS if "|" in name)
_FOR_ADMINS: Final = frozenset(each.name for each in COMMANDS if "admin" in each.flags)


def answer(state: NodeState, request: Request) -> bytes:
    """Return the reply to one command, as bytes of the version of RESP that it came in.

    What a command may be refused for becomes an error in the reply; nothing else is caught.
    """
    name = _name(request)
    if name in _FOR_ADMINS and not request.rights & pools.ADMIN:
        return encode_error(
            f"NOPERM User {request.pool} has no permissions to run the '{name}' command"
        )
    try:
        return encode(_ANSWERS[name](state, request), request.version)
    except CommandError as error:
        return encode_error(str(error))


def _name(request: Request) -> str:
    """The command's name in the table."""
    words = [word.lower() for word in request.words(0)[:2]]
    return "|".join(words) if words[0] in _CONTAINERS else words[0]
