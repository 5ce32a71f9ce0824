"""CLUSTER: one node that owns every slot, in the forms that cluster clients read."""

from typing import Final

from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import Request
from kvstrata.store.resp_encoding import Reply, Verbatim

_LAST_SLOT: Final = 16_383
_EVERY_ADDRESS: Final = ("0.0.0.0", "::")

# There is no bus between nodes, so nothing was ever sent or received on one; `store/DESIGN.md` says
# that a single node uses epoch 0.
_INFORMATION: Final = {
    "cluster_state": "ok",
    "cluster_slots_assigned": _LAST_SLOT + 1,
    "cluster_slots_ok": _LAST_SLOT + 1,
    "cluster_slots_pfail": 0,
    "cluster_slots_fail": 0,
    "cluster_nodes_pfail": 0,
    "cluster_nodes_fail": 0,
    "cluster_voting_nodes_pfail": 0,
    "cluster_voting_nodes_fail": 0,
    "cluster_known_nodes": 1,
    "cluster_size": 1,
    "cluster_current_epoch": 0,
    "cluster_my_epoch": 0,
    "cluster_stats_messages_sent": 0,
    "cluster_stats_messages_received": 0,
    "cluster_stats_bytes_sent": 0,
    "cluster_stats_bytes_received": 0,
    "cluster_stats_pubsub_bytes_sent": 0,
    "cluster_stats_pubsub_bytes_received": 0,
    "cluster_stats_module_bytes_sent": 0,
    "cluster_stats_module_bytes_received": 0,
    "total_cluster_links_buffer_limit_exceeded": 0,
}


def information(_state: NodeState, _request: Request) -> Reply:
    """CLUSTER INFO."""
    return Verbatim("".join(f"{name}:{value}\r\n" for name, value in _INFORMATION.items()))


def slots(state: NodeState, request: Request) -> Reply:
    """CLUSTER SLOTS."""
    node: Reply = [_host(state, request), state.native.port, state.id_text, {}]
    return [[0, _LAST_SLOT, node]]


def shards(state: NodeState, request: Request) -> Reply:
    """CLUSTER SHARDS; the node is the only one of its shard, so the shard has its id."""
    host = _host(state, request)
    node: Reply = {
        "id": state.id_text,
        "port": state.native.port,
        "ip": host,
        "endpoint": host,
        "role": "master",
        "replication-offset": 0,
        "health": "online",
    }
    return [{"slots": [0, _LAST_SLOT], "nodes": [node], "id": state.id_text}]


def nodes(state: NodeState, request: Request) -> Reply:
    """CLUSTER NODES; the port of the bus, behind the @, is 0."""
    address = f"{_host(state, request)}:{state.native.port}@0"
    return Verbatim(f"{state.id_text} {address} myself,master - 0 0 0 connected 0-{_LAST_SLOT}\n")


def own_id(state: NodeState, _request: Request) -> Reply:
    """CLUSTER MYID."""
    return state.id_text


def links(_state: NodeState, _request: Request) -> Reply:
    """CLUSTER LINKS: there are none."""
    return []


def _host(state: NodeState, request: Request) -> str:
    """Where clients reach the node: as configured, or what the caller itself connected to."""
    if state.config.host not in _EVERY_ADDRESS:
        return state.config.host
    for each in state.connections(request):
        if each["client_id"] == request.client_id and each["transport"] == "tcp":
            return str(each["local"]).rpartition(":")[0].strip("[]")
    return ""  # For cluster clients: the address that you know already.
