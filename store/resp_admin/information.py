"""INFO: sections by name, in Valkey's order."""

from collections.abc import Callable
from typing import Final

from kvstrata.store.resp_admin import command_sections, node_sections, traffic_sections
from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import Request
from kvstrata.store.resp_admin.sections import Fields, Readings, take_readings
from kvstrata.store.resp_encoding import Reply, Verbatim

_SECTIONS: Final[dict[str, Callable[[Readings], Fields]]] = {
    "Server": node_sections.server,
    "Clients": traffic_sections.clients,
    "Memory": node_sections.memory,
    "Persistence": node_sections.persistence,
    "Stats": traffic_sections.stats,
    "Replication": node_sections.replication,
    "CPU": node_sections.cpu,
    "Modules": node_sections.modules,
    "Commandstats": command_sections.calls,
    "Errorstats": command_sections.errors,
    "Latencystats": command_sections.latencies,
    "Cluster": node_sections.cluster,
    "Keyspace": traffic_sections.keyspace,
}
_ONLY_IF_NAMED: Final = {"commandstats", "latencystats"}
_ALL: Final = {name.lower() for name in _SECTIONS}
_DEFAULT: Final = _ALL - _ONLY_IF_NAMED


def answer(state: NodeState, request: Request) -> Reply:
    """INFO [section ...]; unknown sections are passed over."""
    wanted = _wanted([word.lower() for word in request.words(1)])
    if not wanted:
        return Verbatim("")
    readings = take_readings(state, request)
    sections = [
        _text(name, fields(readings))
        for name, fields in _SECTIONS.items()
        if name.lower() in wanted
    ]
    return Verbatim("\r\n".join(sections))


def _wanted(words: list[str]) -> set[str]:
    wanted: set[str] = set()
    for word in words or ["default"]:
        if word in ("all", "everything"):
            wanted |= _ALL
        elif word == "default":
            wanted |= _DEFAULT
        else:
            wanted |= {word} & _ALL
    return wanted


def _text(name: str, fields: Fields) -> str:
    return f"# {name}\r\n" + "".join(f"{field}:{value}\r\n" for field, value in fields.items())
