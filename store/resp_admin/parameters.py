"""The parameters that CONFIG shows: each true of this node, and changed where that changes it.

What Valkey has and a node has not is not listed, so that nobody tunes what does nothing; except
what tools ask for to learn that it is off, such as `save`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kvstrata.store import limits
from kvstrata.store.resp_admin.command_statistics import PERCENTILES
from kvstrata.store.resp_admin.memory_amount import parse_memory
from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import CommandError, Request, parse_integer

EVICTION_BY_POLICY: Final = {"noeviction": "none", "allkeys-lru": "lru", "allkeys-lfu": "s3fifo"}
POLICY_BY_EVICTION: Final = {eviction: policy for policy, eviction in EVICTION_BY_POLICY.items()}
_NUMBER_MAX: Final = 2**63 - 1
# Each noted command may take 4 KiB.
_SLOW_COMMAND_COUNT_MAX: Final = 10_000


class ParameterError(Exception):
    """A value is not allowed; says what would be."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Attributes:
        read: its value, to a caller: two of them are those of the caller's pool.
        parse: reads a new value; None if it cannot be changed. Raises ParameterError.
        change: what of the node takes the value; of "pool" it is a setting, of "watch" a field.
    """

    read: Callable[[NodeState, Request], str]
    parse: Callable[[str], Any] | None = None
    owner: str = ""
    field: str = ""


def pool_settings(state: NodeState, request: Request) -> dict[str, Any]:
    """The settings of the caller's pool.

    Raises:
        CommandError: it was dropped meanwhile.
    """
    try:
        return state.pools.describe()[request.pool]
    except KeyError:
        raise CommandError(f"ERR the pool '{request.pool}' is no more") from None


def _fixed(text: str) -> Parameter:
    return Parameter(lambda _state, _request: text)


def _memory(text: str) -> int:
    amount = parse_memory(text)
    if amount is None:
        raise ParameterError("argument must be a memory value")
    return amount


def _policy(text: str) -> str:
    try:
        return EVICTION_BY_POLICY[text.lower()]
    except KeyError:
        raise ParameterError(
            "argument(s) must be one of the following: " + ", ".join(EVICTION_BY_POLICY)
        ) from None


def _number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = parse_integer(text)
        except CommandError:
            raise ParameterError("argument couldn't be parsed into an integer") from None
        if not least <= number <= most:
            raise ParameterError(f"argument must be between {least} and {most} inclusive")
        return number

    return parse


def _watched(field: str, least: int, most: int) -> Parameter:
    return Parameter(
        lambda state, _: str(getattr(state.watch, field)), _number(least, most), "watch", field
    )


_SLOWER_THAN: Final = _watched("slow_command_us", -1, _NUMBER_MAX)
_SLOW_LENGTH: Final = _watched("slow_command_count_max", 0, _SLOW_COMMAND_COUNT_MAX)

PARAMETERS: Final[dict[str, Parameter]] = {
    "appendonly": _fixed("no"),
    "bind": Parameter(lambda state, _: state.config.host),
    "cluster-enabled": _fixed("yes"),
    "commandlog-execution-slower-than": _SLOWER_THAN,
    "commandlog-slow-execution-max-len": _SLOW_LENGTH,
    "databases": _fixed("1"),
    "latency-monitor-threshold": _watched("delay_ms", 0, _NUMBER_MAX),
    "latency-tracking": _fixed("yes"),
    "latency-tracking-info-percentiles": _fixed(" ".join(f"{each:g}" for each in PERCENTILES)),
    "maxclients": Parameter(lambda state, _: str(state.config.connections_max)),
    "maxmemory": Parameter(
        lambda state, request: str(pool_settings(state, request)["quota"]),
        _memory,
        "pool",
        "quota",
    ),
    "maxmemory-policy": Parameter(
        lambda state, request: POLICY_BY_EVICTION[pool_settings(state, request)["eviction"]],
        _policy,
        "pool",
        "eviction",
    ),
    "notify-keyspace-events": _fixed(""),
    "port": Parameter(lambda state, _: str(state.native.port)),
    "proto-max-bulk-len": _fixed(str(limits.RESP_ARGUMENT_BYTES_MAX)),
    "save": _fixed(""),
    "slowlog-log-slower-than": _SLOWER_THAN,
    "slowlog-max-len": _SLOW_LENGTH,
    "timeout": _fixed("0"),
}
