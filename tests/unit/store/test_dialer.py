"""Which transport a store takes, and what it says about that."""

import pytest

import kvstrata
from kvstrata.store import url
from kvstrata.store.dialer import Dialer
from kvstrata.store.errors import DeniedError, UnavailableError
from tests.unit.store.fake_kernel import CLOSED, FakeNode

URL = "kvstrata://pool:secret@host:1"
PATH = "/run/kvstrata/1.sock"
DENIED = 9


@pytest.fixture
def node(node: FakeNode) -> FakeNode:
    """On this host, with a UNIX socket."""
    node.unix_path = PATH
    return node


def paths(node: FakeNode) -> list[str]:
    """Of the connections that are open; "" is TCP."""
    return [each.path for each in node.connections if each.status == 0]


def test_a_node_on_this_host_is_reached_through_shared_memory(node: FakeNode) -> None:
    with kvstrata.connect(URL) as store:
        assert store.transport == ("shm", f"the node is on this host, at {PATH}")
        assert paths(node) == [PATH]
        beside = node.connections[1].options
        assert (beside["secret"], beside["pool"]) == ("secret", "pool")
        assert not beside["trusts_any_owner"]


def test_a_node_without_memory_to_share_is_reached_by_its_unix_socket(node: FakeNode) -> None:
    node.has_memory = False
    with kvstrata.connect(URL) as store:
        assert store.transport.name == "unix"
        assert store.transport.reason.startswith(f"the node is on this host, at {PATH}, but it")
        assert paths(node) == [PATH]
    with pytest.raises(UnavailableError, match=r"cannot use transport=shm.*no shared memory"):
        kvstrata.connect(URL, transport="shm")
    assert paths(node) == []


def test_unix_is_taken_where_it_was_asked_for(node: FakeNode) -> None:
    with kvstrata.connect(URL, transport="unix") as store:
        assert store.transport == ("unix", f"the node is on this host, at {PATH}")
        assert node.connections[1].options["regions"] is None


def test_tcp_is_taken_where_it_was_asked_for(node: FakeNode) -> None:
    with kvstrata.connect(URL, transport="tcp") as store:
        assert store.transport == ("tcp", "it was asked for")
        assert paths(node) == [""]


def _elsewhere(node: FakeNode) -> None:
    node.stays_on_host = False


def _without(node: FakeNode) -> None:
    node.unix_path = ""


def _another_there(node: FakeNode) -> None:
    node.node_ids[PATH] = b"another"


def _nobody_there(node: FakeNode) -> None:
    node.refusals.extend([0, CLOSED])


def _of_another_user(node: FakeNode) -> None:
    node.refusals.extend([0, DENIED])


@pytest.mark.parametrize("insists", ["unix", "shm"])
@pytest.mark.parametrize(
    ("arrange", "reason"),
    [
        (_elsewhere, "the node is on another host"),
        (_without, "the node has no UNIX socket"),
        (_another_there, f"{PATH} leads to another node"),
        (_nobody_there, "refused with 32"),
        (_of_another_user, "refused with 9"),
    ],
)
def test_what_stands_against_unix_is_said(
    node: FakeNode, arrange: object, reason: str, insists: str
) -> None:
    assert callable(arrange)
    arrange(node)
    with kvstrata.connect(URL) as store:
        assert store.transport.name == "tcp"
        assert store.transport.reason.startswith(reason)
        assert paths(node) == [""]
    arrange(node)
    with pytest.raises(UnavailableError, match=f"cannot use transport={insists}.*{reason}"):
        kvstrata.connect(URL, transport=insists)
    assert paths(node) == []


def test_who_insists_trusts_the_owner_of_the_path(node: FakeNode) -> None:
    with kvstrata.connect(f"{URL}?transport=unix"):
        assert [each.options["trusts_any_owner"] for each in node.connections] == [True, True]


def test_further_connections_go_straight_there(node: FakeNode) -> None:
    dialer = Dialer(url.parse(URL))
    assert dialer.transport.name == "none"
    for _ in range(3):
        dialer.open(None, 1)
    assert [each.path for each in node.connections] == ["", PATH, PATH, PATH]


@pytest.mark.parametrize("arrange", [_nobody_there, _another_there])
def test_a_path_that_no_longer_leads_there_is_asked_for_anew(
    node: FakeNode, arrange: object
) -> None:
    dialer = Dialer(url.parse(URL))
    dialer.open(None, 1)
    if arrange is _another_there:  # The node was restarted.
        node.node_ids = {"": b"another", PATH: b"another"}
    else:  # It was restarted, and listens elsewhere.
        node.refusals.append(CLOSED)
        node.unix_path = "/run/other.sock"
    connection = dialer.open(None, 1)
    assert connection.path == node.unix_path  # type: ignore[attr-defined]
    assert dialer.transport.reason.endswith(node.unix_path)


def test_a_refusal_over_tcp_ends_it(node: FakeNode) -> None:
    node.refusals.append(DENIED)
    with pytest.raises(DeniedError):
        kvstrata.connect(URL)
    assert len(node.connections) == 1
