"""CLIENT LIST, INFO and KILL: connections of either protocol, as Valkey's tools read them."""

from typing import Final

from kvstrata.store.resp_admin.client_filter import (
    ClientFilter,
    Connection,
    flags_of,
    parse_filter,
)
from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import CommandError, Request
from kvstrata.store.resp_encoding import OK, Reply, Verbatim

_ADDRESS_ALONE: Final = 3  # CLIENT KILL <address>, the form of old.


def list_clients(state: NodeState, request: Request) -> Reply:
    """CLIENT LIST: one line a connection."""
    asked = parse_filter(request.words(2), state.visible_pools(request))
    found = _matching(state, request, asked, skip_me=bool(asked.skip_me))
    return Verbatim("".join(f"{_line(each)}\n" for each in found))


def own_information(state: NodeState, request: Request) -> Reply:
    """CLIENT INFO: the line of the caller's own connection."""
    own = [each for each in state.connections(request) if each["client_id"] == request.client_id]
    return Verbatim("".join(f"{_line(each)}\n" for each in own))


def kill(state: NodeState, request: Request) -> Reply:
    """CLIENT KILL: how many connections were closed, or OK where an address alone was given."""
    words = request.words(2)
    if len(request.arguments) == _ADDRESS_ALONE:
        ids = [c["client_id"] for c in state.connections(request) if c["peer"] == words[0]]
        if not ids or not state.native.kill_connections(ids):
            raise CommandError("ERR No such client")
        return OK
    asked = parse_filter(words, state.visible_pools(request))
    found = _matching(state, request, asked, skip_me=asked.skip_me is not False)
    return state.native.kill_connections([each["client_id"] for each in found]) if found else 0


def _matching(
    state: NodeState, request: Request, asked: ClientFilter, *, skip_me: bool
) -> list[Connection]:
    return [
        each
        for each in state.connections(request)
        if asked.matches(each) and not (skip_me and each["client_id"] == request.client_id)
    ]


def _line(each: Connection) -> str:
    """Valkey's fields in Valkey's order; clients read some of them as numbers that must be there.

    `resp` is 0 for a connection of the capsule protocol. Of the kinds of memory that Valkey tells
    apart this node has input and output; the others are 0.
    """
    fields = {
        "id": each["client_id"],
        "addr": each["peer"],
        "laddr": each["local"],
        "fd": each["fd"],
        "name": each["name"],
        "age": int(each["age_s"]),
        "idle": int(each["idle_s"]),
        "flags": flags_of(each),
        "capa": "",
        "db": 0,
        "sub": 0,
        "psub": 0,
        "ssub": 0,
        "multi": each["multi_count"],
        "watch": each["watch_count"],
        "qbuf": each["input_bytes"],
        "qbuf-free": each["input_capacity"] - each["input_bytes"],
        "argv-mem": 0,
        "multi-mem": 0,
        "rbs": 0,
        "rbp": 0,
        "obl": 0,
        "oll": 0,
        "omem": each["output_bytes"],
        "tot-mem": each["input_capacity"] + each["output_bytes"],
        "events": "rw" if each["output_bytes"] else "r",
        "cmd": each["last_command"] or "NULL",
        "user": each["pool"],
        "redir": -1,
        "resp": each["resp_version"] if each["protocol"] == "resp" else 0,
        "lib-name": each["lib_name"],
        "lib-ver": each["lib_version"],
        "tot-net-in": each["received_bytes"],
        "tot-net-out": each["sent_bytes"],
        "tot-cmds": each["commands"],
    }
    return " ".join(f"{name}={value}" for name, value in fields.items())
