"""WAIT, on a node without replicas."""

from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import CommandError, Request, parse_integer
from kvstrata.store.resp_encoding import Reply


def wait(_state: NodeState, request: Request) -> Reply:
    """WAIT: no replica has the caller's writes, and none will before the time is over."""
    replicas, timeout = request.words(1)
    parse_integer(replicas)
    if parse_integer(timeout, "ERR timeout is not an integer or out of range") < 0:
        raise CommandError("ERR timeout is negative")
    return 0
