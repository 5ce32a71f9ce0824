"""LATENCY: delays of the node's loops, and how long commands took; of all pools together."""

from typing import Final

from kvstrata.store.resp_admin.command_statistics import CommandStatistics, by_command, cumulative
from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import Request
from kvstrata.store.resp_encoding import Reply

_WHAT: Final = "latency"


def latest(state: NodeState, request: Request) -> Reply:
    """LATENCY LATEST: per event when it last was, then last, longest, sum and number."""
    request.check_administers_node(_WHAT)
    return [
        [event, spikes[-1][0], spikes[-1][1], max(lengths), sum(lengths), len(lengths)]
        for event, spikes in state.native.latency_spikes().items()
        if (lengths := [milliseconds for _, milliseconds in spikes])
    ]


def history(state: NodeState, request: Request) -> Reply:
    """LATENCY HISTORY: when, and how long, oldest first."""
    request.check_administers_node(_WHAT)
    spikes = state.native.latency_spikes().get(request.words(2)[0], [])
    return [[second, milliseconds] for second, milliseconds in spikes]


def reset(state: NodeState, request: Request) -> Reply:
    """LATENCY RESET of the events named, or of all: how many had something to forget."""
    request.check_administers_node(_WHAT)
    events = request.words(2) or list(state.native.latency_spikes())
    return state.native.clear_latency_spikes(events) if events else 0


def histogram(state: NodeState, request: Request) -> Reply:
    """LATENCY HISTOGRAM of the commands named, or of all; a container stands for its own."""
    request.check_administers_node(_WHAT)
    wanted = [word.lower() for word in request.words(2)]
    found = by_command(state.native.statistics()["shards"])
    return {
        name: _entry(each)
        for name, each in found.items()
        if each.calls and (not wanted or name in wanted or name.rpartition("|")[0] in wanted)
    }


def _entry(statistics: CommandStatistics) -> Reply:
    return {"calls": statistics.calls, "histogram_usec": dict(cumulative(statistics.buckets))}
