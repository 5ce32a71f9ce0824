"""CONFIG GET and SET."""

from typing import Any

from kvstrata.store.errors import Error
from kvstrata.store.resp_admin.glob import matches
from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.parameters import PARAMETERS, ParameterError
from kvstrata.store.resp_admin.request import SYNTAX_ERROR, CommandError, Request, quotable
from kvstrata.store.resp_encoding import OK, Reply


def get(state: NodeState, request: Request) -> Reply:
    """CONFIG GET: the parameters that match any of the patterns.

    One that is named in full has, in the reply, the name as it was asked for.
    """
    found: dict[Reply, Reply] = {}
    words = request.words(2)
    for name, parameter in PARAMETERS.items():
        word = next((each for each in words if matches(each.lower(), name)), None)
        if word is not None:
            found[word if word.lower() == name else name] = parameter.read(state, request)
    return found


def change(state: NodeState, request: Request) -> Reply:
    """CONFIG SET: all of the changes, or none of them if one cannot be."""
    words = request.words(2)
    if len(words) % 2:
        raise CommandError(SYNTAX_ERROR)
    pairs = list(zip(words[::2], words[1::2], strict=True))
    for name, _ in pairs:
        if name.lower() not in PARAMETERS:
            raise CommandError(
                f"ERR Unknown option or number of arguments for CONFIG SET - '{quotable(name)}'"
            )
    changes: dict[str, dict[str, Any]] = {"pool": {}, "watch": {}}
    seen: set[str] = set()
    for name, value in pairs:
        if name.lower() in seen:
            raise _failed(name, "duplicate parameter")
        seen.add(name.lower())
        parameter = PARAMETERS[name.lower()]
        if parameter.parse is None:
            raise _failed(name, "can't set immutable config")
        try:
            changes[parameter.owner][parameter.field] = parameter.parse(value)
        except ParameterError as error:
            raise _failed(name, str(error)) from error
    if changes["watch"]:
        request.check_administers_node("what is noted of slow commands and delays")
    if changes["pool"]:
        _change_pool(state, request, changes["pool"], pairs[0][0])
    _change_watch(state, changes["watch"])
    return OK


def _change_pool(state: NodeState, request: Request, settings: dict[str, Any], name: str) -> None:
    try:
        state.pools.change(request.pool, settings)
    except Error as error:
        raise _failed(name, str(error)) from error


def _change_watch(state: NodeState, settings: dict[str, Any]) -> None:
    for field, value in settings.items():
        setattr(state.watch, field, value)
    watch = state.watch
    if "slow_command_us" in settings or "slow_command_count_max" in settings:
        state.native.set_slow_log(watch.slow_command_us, watch.slow_command_count_max)
    if "delay_ms" in settings:
        state.native.set_latency_threshold(watch.delay_ms)


def _failed(name: str, why: str) -> CommandError:
    return CommandError(f"ERR CONFIG SET failed (possibly related to argument '{name}') - {why}")
