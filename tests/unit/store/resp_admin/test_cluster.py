"""CLUSTER: the forms of a real cluster of one, in both versions."""

import pytest

from tests.unit.store.resp_admin.recorded_node import (
    ID_TEXT,
    Asker,
    RecordedNode,
    asker,
    connection,
)

ID = b"$40\r\n" + ID_TEXT + b"\r\n"
HOST = b"$9\r\n127.0.0.1\r\n"


@pytest.fixture
def node() -> Asker:
    return asker(RecordedNode())


def test_slots(node: Asker) -> None:
    reply = b"*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n" + HOST + b":18400\r\n" + ID
    assert node.ask("CLUSTER SLOTS") == reply + b"*0\r\n"
    assert node.ask("CLUSTER SLOTS", 3) == reply + b"%0\r\n"


def test_shards(node: Asker) -> None:
    inner = (
        b"$2\r\nid\r\n"
        + ID
        + b"$4\r\nport\r\n:18400\r\n$2\r\nip\r\n"
        + HOST
        + b"$8\r\nendpoint\r\n"
        + HOST
        + b"$4\r\nrole\r\n$6\r\nmaster\r\n"
        b"$18\r\nreplication-offset\r\n:0\r\n$6\r\nhealth\r\n$6\r\nonline\r\n"
    )
    head = b"$5\r\nslots\r\n*2\r\n:0\r\n:16383\r\n$5\r\nnodes\r\n*1\r\n"
    end = b"$2\r\nid\r\n" + ID
    assert node.ask("CLUSTER SHARDS") == b"*1\r\n*6\r\n" + head + b"*14\r\n" + inner + end
    assert node.ask("CLUSTER SHARDS", 3) == b"*1\r\n%3\r\n" + head + b"%7\r\n" + inner + end


def test_nodes_id_and_links(node: Asker) -> None:
    line = ID_TEXT + b" 127.0.0.1:18400@0 myself,master - 0 0 0 connected 0-16383\n"
    assert node.ask("CLUSTER NODES") == b"$%d\r\n%b\r\n" % (len(line), line)
    assert node.ask("CLUSTER NODES", 3) == b"=%d\r\ntxt:%b\r\n" % (len(line) + 4, line)
    assert node.ask("CLUSTER MYID") == ID
    assert node.ask("CLUSTER LINKS", 3) == b"*0\r\n"


def test_information(node: Asker) -> None:
    fields = node.lines("CLUSTER INFO")
    assert fields["cluster_state"] == "ok"
    assert fields["cluster_slots_assigned"] == "16384"
    assert fields["cluster_known_nodes"] == fields["cluster_size"] == "1"


def test_a_node_on_every_address_tells_the_one_that_the_caller_reached() -> None:
    recorded = RecordedNode(open_connections=[connection(1, local="10.1.2.3:18400")])
    node = asker(recorded, host="0.0.0.0")
    assert b"$8\r\n10.1.2.3\r\n" in node.ask("CLUSTER SLOTS")
    recorded.open_connections = [connection(1, local="/run/a.sock:0", transport="unix")]
    assert b"*4\r\n$0\r\n\r\n:18400\r\n" in node.ask("CLUSTER SLOTS")
    recorded.open_connections = []
    assert b"*4\r\n$0\r\n\r\n:18400\r\n" in node.ask("CLUSTER SLOTS")
