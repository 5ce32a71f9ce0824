"""Commands that come together are answered as if they had come one by one, whoever owns their keys.

The reference is a node of one shard that is asked one by one. On a node of several, commands that
come together travel together, and what this shard answers by itself waits for what others answer.
"""

import random
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from kvstrata import _kernel
from tests.differential.client import Client
from tests.differential.resp import encode_command
from tests.e2e.nodes import AttackedNode, attacked_node, wait_for_rest

ROUNDS: Final = 40
STEPS_MAX: Final = 200
# As many as fall to each of three shards, and some that share a slot.
KEYS: Final = [b"key:%d" % number for number in range(20)]
TAGGED: Final = [b"{tag}%d" % number for number in range(4)]
# Long enough to be received into its record before the command is whole.
LARGE: Final = bytes(range(256)) * 400

# What has one reply, the last of its commands'.
Step = list[list[bytes]]
Choice = Callable[[random.Random], list[Step]]


@pytest.fixture(params=[False, True], ids=["epoll", "io_uring"])
def nodes(request: pytest.FixtureRequest) -> Iterator[tuple[AttackedNode, AttackedNode]]:
    """One that is asked one by one, and one of three shards."""
    if request.param and not _kernel.uring_is_usable():
        pytest.skip("io_uring does not work here")
    with (
        attacked_node(uring=request.param) as reference,
        attacked_node(shard_count=3, uring=request.param) as node,
    ):
        yield reference, node
        wait_for_rest(node)


def key(chance: random.Random) -> bytes:
    return chance.choice(KEYS)


def transaction(chance: random.Random) -> list[Step]:
    tagged = chance.choices(TAGGED, k=3)
    body = [
        chance.choice([[b"INCR", each], [b"GET", each], [b"PING"], [b"SET", each, b"5"]])
        for each in tagged
    ]
    begin = [[b"WATCH", TAGGED[0]]] if chance.random() < 0.5 else []
    return [[each] for each in (*begin, [b"MULTI"], *body, [chance.choice([b"EXEC", b"DISCARD"])])]


def large_value(chance: random.Random) -> list[Step]:
    each = key(chance)
    then = chance.choice([[b"GETRANGE", each, b"99990", b"100010"], [b"GET", each]])
    return [[[b"SET", each, LARGE]], [then], [[b"SET", each, b"1"]]]


def pairs(chance: random.Random) -> list[bytes]:
    return [part for each in chance.choices(KEYS, k=3) for part in (each, b"9")]


COMMON: Final[list[Choice]] = [
    lambda c: [[[b"SET", key(c), b"%d" % c.randrange(1000)]]],
    lambda c: [[[b"GET", key(c)]]],
    lambda c: [[[b"INCR", key(c)]]],
    lambda c: [[[b"APPEND", key(c), b"7"]]],
    lambda c: [[[b"DEL", key(c)]]],
    lambda c: [[[b"STRLEN", key(c)]]],
]
# Some of these end a run of commands that travel together.
RARE: Final[list[Choice]] = [
    lambda _: [[[b"PING"]], [[b"NO-SUCH-COMMAND"]], [[b"GET"]]],
    lambda c: [[[b"ECHO", b"%d" % c.randrange(1000)]]],
    lambda c: [[[b"SET", key(c), b"v", b"nonsense"]]],
    lambda c: [[[b"HELLO", c.choice([b"2", b"3"])]]],
    lambda c: [[[b"CLIENT", b"REPLY", b"SKIP"], [b"INCR", key(c)], [b"PING"]]],
    lambda c: [[[b"CLIENT", b"REPLY", b"OFF"], [b"INCR", key(c)], [b"CLIENT", b"REPLY", b"ON"]]],
    lambda c: [[[b"MGET", *c.choices(KEYS, k=5)]]],
    lambda c: [[[b"MSET", *pairs(c)]]],
    lambda c: [[[b"EXISTS", *c.choices(KEYS, k=5)]], [[b"DEL", *c.choices(KEYS, k=2)]]],
    lambda c: [[[b"DBSIZE"]], [[b"FLUSHALL"] if c.random() < 0.2 else [b"SELECT", b"0"]]],
    large_value,
    transaction,
]


def steps(chance: random.Random) -> list[Step]:
    chosen: list[Step] = []
    rarity = chance.choice([0.0, 0.05, 0.5])
    for _ in range(chance.randrange(1, STEPS_MAX)):
        choices = RARE if chance.random() < rarity else COMMON
        chosen += chance.choice(choices)(chance)
    return chosen


def receive(client: Client) -> bytes:
    """The bytes of a reply, but of one that names the connection only its kind."""
    reply = client.receive()
    assert reply is not None
    return reply.kind.encode() if b"proto" in reply.raw else reply.raw


@pytest.mark.parametrize("seed", range(3))
def test_a_pipeline_is_answered_as_its_commands_are(
    nodes: tuple[AttackedNode, AttackedNode], seed: int
) -> None:
    chance = random.Random(seed)
    with Client(nodes[0].port) as reference, Client(nodes[1].port) as client:
        for _ in range(ROUNDS):
            pipeline = [b"".join(map(encode_command, step)) for step in steps(chance)]
            client.send(b"".join(pipeline))
            for step in pipeline:
                reference.send(step)
                expected = receive(reference)
                assert receive(client) == expected, step[:200]
