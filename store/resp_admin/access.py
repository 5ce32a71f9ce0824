"""ACL: pools are the users that Valkey clients see. No secret is shown, nor the hash of one."""

from collections.abc import Mapping
from typing import Any

from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import (
    CommandError,
    Request,
    quotable,
    subcommand_refusal,
)
from kvstrata.store.resp_commands.command import CATEGORIES
from kvstrata.store.resp_commands.table import COMMANDS
from kvstrata.store.resp_encoding import Reply, Set

_KEYS = "~*"


def whoami(_state: NodeState, request: Request) -> Reply:
    """ACL WHOAMI."""
    return request.pool


def list_users(state: NodeState, request: Request) -> Reply:
    """ACL LIST: one line a pool that the caller may see."""
    pools = state.pools.describe()
    return [
        f"user {name} {' '.join(_flags(pools[name]))} {_KEYS} resetchannels {_rules(pools[name])}"
        for name in state.visible_pools(request)
    ]


def get_user(state: NodeState, request: Request) -> Reply:
    """ACL GETUSER; to a caller who may not see the pool, it is not there."""
    name = request.words(2)[0]
    if name not in state.visible_pools(request):
        return None
    pool = state.pools.describe()[name]
    return {
        "flags": Set(_flags(pool)),
        "passwords": [],
        "commands": _rules(pool),
        "keys": _KEYS,
        "channels": "",
        "databases": "alldbs",
        "selectors": [],
    }


def categories(_state: NodeState, request: Request) -> Reply:
    """ACL CAT: the categories, or the commands of one."""
    words = request.words(2)
    if not words:
        return list(CATEGORIES)
    if len(words) > 1:
        raise subcommand_refusal(request)
    wanted = words[0].lower()
    if wanted not in CATEGORIES:
        raise CommandError(f"ERR Unknown category '{quotable(words[0])}'")
    return [each.name for each in COMMANDS if wanted in each.all_categories]


def _flags(pool: Mapping[str, Any]) -> list[str]:
    return ["on"] if pool["read"] or pool["write"] or pool["admin"] else ["on", "nopass"]


def _rules(pool: Mapping[str, Any]) -> str:
    """What the strongest of the pool's secrets may do."""
    if pool["admin"] or not (pool["read"] or pool["write"]):
        return "+@all"
    return "+@all -@admin" if pool["write"] else "+@all -@write -@admin"
