"""SLOWLOG: commands that took long, as the native half noted them."""

from typing import Any, Final

from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import (
    CommandError,
    Request,
    parse_integer,
    subcommand_refusal,
)
from kvstrata.store.resp_encoding import OK, Reply

_COUNT_DEFAULT: Final = 10
_COUNT_REFUSAL: Final = "ERR count should be greater than or equal to -1"


def get(state: NodeState, request: Request) -> Reply:
    """SLOWLOG GET: the newest first; -1 is all."""
    words = request.words(2)
    if len(words) > 1:
        raise subcommand_refusal(request)
    count = parse_integer(words[0], _COUNT_REFUSAL) if words else _COUNT_DEFAULT
    if count < -1:
        raise CommandError(_COUNT_REFUSAL)
    found = _visible(state, request)
    return [
        [
            each["id"],
            each["time_s"],
            each["microseconds"],
            list(each["arguments"]),
            each["peer"],
            each["name"],
        ]
        for each in found[: len(found) if count == -1 else count]
    ]


def length(state: NodeState, request: Request) -> Reply:
    """SLOWLOG LEN."""
    return len(_visible(state, request))


def reset(state: NodeState, request: Request) -> Reply:
    """SLOWLOG RESET."""
    request.check_administers_node("forgetting slow commands")
    state.native.clear_slow_commands()
    return OK


def _visible(state: NodeState, request: Request) -> list[dict[str, Any]]:
    return [
        each
        for each in state.native.slow_commands()
        if request.administers_node or each["pool"] == request.pool
    ]
