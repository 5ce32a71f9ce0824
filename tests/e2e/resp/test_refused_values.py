"""Large values that are refused while, or after, they stream in; the stream goes on behind them."""

from collections.abc import Iterator

import pytest

from tests.differential.client import Client
from tests.differential.resp import encode_command
from tests.e2e.nodes import MIB, READ, WRITE, AttackedNode, attacked_node, pool, wait_for_rest

LARGE = bytes(2 * MIB)
WRONG_OPTION = b"-ERR syntax error\r\n"
REFUSED: list[tuple[list[bytes], bytes]] = [
    ([b"SET", b"there", LARGE, b"NX"], b"$-1\r\n"),
    ([b"SET", b"absent", LARGE, b"XX"], b"$-1\r\n"),
    ([b"SET", b"there", LARGE, b"IFEQ", b"other"], b"$-1\r\n"),
    ([b"SET", b"there", LARGE, b"NX", b"GET"], b"$5\r\nvalue\r\n"),
    ([b"SET", b"there", LARGE, b"NX", b"XX"], WRONG_OPTION),
    ([b"SET", b"there", LARGE, b"EX"], WRONG_OPTION),
    ([b"SET", b"there", LARGE, b"EX", b"0"], b"-ERR invalid expire time in 'set' command\r\n"),
    ([b"SETEX", b"there", b"x", LARGE], b"-ERR value is not an integer or out of range\r\n"),
    ([b"SETNX", b"there", LARGE], b":0\r\n"),
    (
        [b"GETSET", b"there", LARGE, b"more"],
        b"-ERR wrong number of arguments for 'getset' command\r\n",
    ),
    (
        [b"SETNOTHING", b"there", LARGE],
        b"-ERR unknown command 'SETNOTHING', with args beginning with: 'there' '",
    ),
]


@pytest.fixture(scope="module", params=[1, 4])
def node(request: pytest.FixtureRequest) -> Iterator[AttackedNode]:
    pools = [
        pool(),
        pool("fixed", immutable=True),
        pool("team", secrets=[("reader", READ), ("writer", READ | WRITE)], open_rights=0),
        pool("small", eviction="none", quota_bytes=4 * MIB),
    ]
    with attacked_node(*pools, shard_count=request.param) as running:
        yield running
        wait_for_rest(running)


def answers(client: Client, *arguments: bytes) -> bytes:
    """The reply, behind which the connection goes on."""
    client.send(encode_command(list(arguments)) + encode_command([b"PING", b"on"]))
    reply, ping = client.receive(), client.receive()
    assert reply is not None
    assert ping is not None
    assert ping.text == b"on"
    return reply.raw


@pytest.mark.parametrize(("arguments", "expected"), REFUSED, ids=lambda case: repr(case[:2]))
def test_conditions_and_options(
    node: AttackedNode, arguments: list[bytes], expected: bytes
) -> None:
    with Client(node.port) as client:
        client.call(b"SET", b"there", b"value")
        assert answers(client, *arguments).startswith(expected)
        assert answers(client, b"GET", b"there") == b"$5\r\nvalue\r\n"
        assert answers(client, b"EXISTS", b"absent") == b":0\r\n"
    assert wait_for_rest(node)["reserved_bytes"] == 0


def test_an_immutable_pool(node: AttackedNode) -> None:
    with Client(node.port) as client:
        assert answers(client, b"AUTH", b"fixed", b"") == b"+OK\r\n"
        assert answers(client, b"SET", b"k", LARGE, b"NX") == b"+OK\r\n"
        for refused in ([b"SET", b"k", LARGE], [b"SET", b"k", b"x"], [b"GETSET", b"k", LARGE]):
            assert answers(client, *refused).startswith(b"-IMMUTABLE this pool is immutable")
        assert answers(client, b"SET", b"k", b"x", b"NX") == b"$-1\r\n"
        assert answers(client, b"STRLEN", b"k") == b":%d\r\n" % len(LARGE)
        assert answers(client, b"DEL", b"k") == b":1\r\n"
        assert answers(client, b"SET", b"k", b"x") == b"+OK\r\n"


def test_who_may_only_read(node: AttackedNode) -> None:
    with Client(node.port) as client:
        assert answers(client, b"AUTH", b"team", b"reader") == b"+OK\r\n"
        refusal = b"-NOPERM User team has no permissions to run the 'set' command\r\n"
        assert answers(client, b"SET", b"k", LARGE) == refusal
        assert answers(client, b"GET", b"k") == b"$-1\r\n"


def test_a_full_pool(node: AttackedNode) -> None:
    with Client(node.port) as client:
        assert answers(client, b"AUTH", b"small", b"") == b"+OK\r\n"
        assert answers(client, b"SET", b"a", LARGE) == b"+OK\r\n"
        full = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
        assert answers(client, b"SET", b"b", LARGE + LARGE[:-65_536]) == full
        assert answers(client, b"GETSET", b"a", LARGE + LARGE[:-65_536]) == full
        assert answers(client, b"STRLEN", b"a") == b":%d\r\n" % len(LARGE)
        assert answers(client, b"SET", b"b", bytes(8 * MIB)).startswith(
            b"-ERR the value of 8388608"
        )
        assert answers(client, b"DEL", b"a") == b":1\r\n"


def test_who_is_not_known_may_send_little() -> None:
    with attacked_node(pool(open_rights=0, secrets=[("s", READ | WRITE)])) as closed:
        with Client(closed.port) as client:
            refusal = b"-NOAUTH Authentication required.\r\n"
            for refused in ([b"SET", b"k", b"x"], [b"PING"]):
                reply = client.call(*refused)
                assert reply is not None
                assert reply.raw == refusal
            client.send(encode_command([b"SET", b"k", LARGE])[:100])
            received, ended = client.receive_rest(1.0)
            assert ended
            assert received == b"-ERR Protocol error: unauthenticated bulk length\r\n"
        wait_for_rest(closed)


def test_a_client_that_dies_within_a_value(node: AttackedNode) -> None:
    before = wait_for_rest(node)["default.objects"]
    for sent in (60, 20_000, MIB, 2 * MIB):
        with Client(node.port) as client:
            client.call(b"PING")
            client.send(encode_command([b"SET", b"dies", LARGE])[:sent])
    with Client(node.port) as client:
        assert answers(client, b"EXISTS", b"dies") == b":0\r\n"
    assert wait_for_rest(node)["default.objects"] == before
