"""Pools are apart: who is in one neither sees nor changes what another has."""

from collections.abc import Iterator

import pytest

from tests.differential.client import Client
from tests.e2e.nodes import READ, WRITE, AttackedNode, attacked_node, pool


@pytest.fixture(scope="module", params=[1, 4])
def node(request: pytest.FixtureRequest) -> Iterator[AttackedNode]:
    pools = [
        pool(),
        pool("one", secrets=[("first", READ | WRITE)], open_rights=0),
        pool("two", secrets=[("second", READ | WRITE)], open_rights=0),
    ]
    with attacked_node(*pools, shard_count=request.param) as running:
        yield running


def raw(client: Client, *arguments: bytes) -> bytes:
    reply = client.call(*arguments)
    assert reply is not None
    return reply.raw


def test_keys_of_others_are_not_there(node: AttackedNode) -> None:
    with Client(node.port) as one, Client(node.port) as two, Client(node.port) as anyone:
        assert raw(one, b"AUTH", b"one", b"first") == b"+OK\r\n"
        assert raw(two, b"HELLO", b"2", b"AUTH", b"two", b"second").startswith(b"*14\r\n")
        for number in range(20):
            assert raw(one, b"SET", b"k%d" % number, b"of one") == b"+OK\r\n"
        assert raw(two, b"SET", b"k1", b"of two") == b"+OK\r\n"
        assert raw(two, b"GET", b"k1") == b"$6\r\nof two\r\n"
        assert raw(two, b"MGET", b"k1", b"k2", b"k3") == b"*3\r\n$6\r\nof two\r\n$-1\r\n$-1\r\n"
        assert raw(two, b"KEYS", b"*") == b"*1\r\n$2\r\nk1\r\n"
        assert raw(two, b"DBSIZE") == b":1\r\n"
        assert raw(two, b"RANDOMKEY") == b"$2\r\nk1\r\n"
        scanned = two.scan(b"SCAN", b"0")
        assert scanned is not None
        assert scanned.items is not None
        assert [item.text for item in scanned.items[1].items or ()] == [b"k1"]
        assert raw(anyone, b"EXISTS", b"k1", b"k2") == b":0\r\n"
        assert raw(two, b"FLUSHALL") == b"+OK\r\n"
        assert raw(one, b"DBSIZE") == b":20\r\n"
        assert raw(one, b"FLUSHALL") == b"+OK\r\n"


def test_a_wrong_secret_changes_nothing(node: AttackedNode) -> None:
    wrong = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
    with Client(node.port) as client:
        assert raw(client, b"AUTH", b"one", b"first") == b"+OK\r\n"
        client.call(b"SET", b"mine", b"x")
        assert raw(client, b"AUTH", b"two", b"first") == wrong
        assert raw(client, b"AUTH", b"nobody", b"first") == wrong
        assert raw(client, b"HELLO", b"3", b"AUTH", b"two", b"first") == wrong
        assert raw(client, b"GET", b"mine") == b"$1\r\nx\r\n"
        assert raw(client, b"GET", b"none") == b"$-1\r\n"
        assert raw(client, b"RESET") == b"+RESET\r\n"
        assert raw(client, b"GET", b"mine") == b"$-1\r\n"


def test_watched_keys_are_those_of_the_pool(node: AttackedNode) -> None:
    with Client(node.port) as one, Client(node.port) as two:
        one.call(b"AUTH", b"one", b"first")
        two.call(b"AUTH", b"two", b"second")
        one.call(b"WATCH", b"k")
        two.call(b"SET", b"k", b"x")
        one.call(b"MULTI")
        one.call(b"GET", b"k")
        assert raw(one, b"EXEC") == b"*1\r\n$-1\r\n"
