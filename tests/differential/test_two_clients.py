"""What one client does to another: transactions that fail, connections that are killed."""

import pytest

from tests.differential.client import Client
from tests.differential.commands import Step
from tests.differential.run import Comparison

# Number of the client and its words; `~` waits until what lives for milliseconds is gone.
SCRIPTS = {
    "nothing watched changes": "0 WATCH a|0 MULTI|0 INCR a|0 EXEC",
    "a watched key changes": "0 WATCH a|1 SET a 1|0 MULTI|0 INCR a|0 EXEC|0 GET a",
    "to the same value": "1 SET a 1|0 WATCH a|1 SET a 1|0 MULTI|0 GET a|0 EXEC",
    "it is deleted": "1 SET a 1|0 WATCH a|1 DEL a|0 MULTI|0 GET a|0 EXEC",
    "it was not there, nor is it deleted": "0 WATCH a|1 DEL a|0 MULTI|0 GET a|0 EXEC",
    "it is made and deleted": "0 WATCH a|1 SET a 1|1 DEL a|0 MULTI|0 GET a|0 EXEC",
    "it expires": "1 SET a 1 PX 15|0 WATCH a|1 PING~|0 MULTI|0 GET a|0 EXEC",
    "it had expired": "1 SET a 1 PX 15|1 PING~|0 WATCH a|0 MULTI|0 GET a|0 EXEC",
    "its time to live changes": "1 SET a 1|0 WATCH a|1 EXPIRE a 100|0 MULTI|0 GET a|0 EXEC",
    "it is only read": "1 SET a 1|0 WATCH a|1 GET a|1 TOUCH a|0 MULTI|0 GET a|0 EXEC",
    "it persists already": "1 SET a 1|0 WATCH a|1 PERSIST a|0 MULTI|0 GET a|0 EXEC",
    "a write to it fails": "1 SET a x|0 WATCH a|1 INCR a|0 MULTI|0 GET a|0 EXEC",
    "NX does nothing": "1 SET a x|0 WATCH a|1 SET a y NX|0 MULTI|0 GET a|0 EXEC",
    "nothing is appended": "1 SET a x|0 WATCH a|1 APPEND a ''|0 MULTI|0 GET a|0 EXEC",
    "all is flushed": "1 SET a 1|0 WATCH a|1 FLUSHALL|0 MULTI|0 GET a|0 EXEC",
    "nothing is flushed": "0 WATCH a|1 FLUSHALL|0 MULTI|0 GET a|0 EXEC",
    "one's own write counts": "0 WATCH a|0 SET a 1|0 MULTI|0 GET a|0 EXEC",
    "unwatched in time": "0 WATCH a|1 SET a 1|0 UNWATCH|0 MULTI|0 GET a|0 EXEC",
    "discard forgets": "0 WATCH a|1 SET a 1|0 MULTI|0 DISCARD|0 MULTI|0 GET a|0 EXEC",
    "exec forgets": "0 WATCH a|0 MULTI|0 EXEC|1 SET a 1|0 MULTI|0 GET a|0 EXEC",
    "watched within": "0 MULTI|0 WATCH a|0 GET a|0 EXEC",
    "multi within": "0 MULTI|0 MULTI|0 GET a|0 EXEC",
    "unknown within": "0 MULTI|0 NONSENSE|0 GET a|0 EXEC|0 EXEC",
    "wrong count within": "0 MULTI|0 GET|0 GET a|0 EXEC",
    "an error when it runs": "0 MULTI|0 SET a x|0 INCR a|0 GET a|0 EXEC",
    "reset within": "0 MULTI|0 SET a x|0 RESET|0 EXEC",
    "hello within": "0 MULTI|0 HELLO 3|0 DISCARD|0 PING",
    "quit within": "0 MULTI|0 SET a 1|0 QUIT|0 GET a",
    "others read between": "0 MULTI|0 SET a 1|1 GET a|0 EXEC|1 GET a",
    "nothing to run": "0 EXEC|0 DISCARD|0 MULTI x|0 UNWATCH|0 WATCH",
}


def steps_of(script: str) -> list[Step]:
    steps = []
    for line in script.split("|"):
        client, *words = line.removesuffix("~").split()
        arguments = tuple(b"" if word == "''" else word.encode() for word in words)
        steps.append(Step(arguments, int(client), 0.04 if line.endswith("~") else 0.0))
    return steps


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_transaction(cluster_comparison: Comparison, script: str, version: int) -> None:
    difference = cluster_comparison.run(steps_of(script), version)
    assert difference is None, str(difference)


@pytest.mark.parametrize(
    "script",
    [
        "0 MGET {t}1 {t}2|0 MSETNX {t}1 1 {t}2 2|0 EXISTS a a|0 MSETEX 2 {t}1 1 {t}2 2 EX 100",
        "0 MULTI|0 SET a 1|0 SET b 2|0 EXEC|0 GET a|0 MULTI|0 SET a 1|0 DISCARD",
        "0 WATCH a|0 WATCH b|0 MULTI|0 GET a|0 EXEC",
        "0 KEYS *|0 DBSIZE|0 SCAN 0 COUNT 100000|0 FLUSHALL|0 SELECT 0|0 SELECT 1",
        "0 READONLY|0 READWRITE|0 ASKING|0 READONLY x|0 MULTI|0 READONLY|0 ASKING|0 EXEC",
        "0 CLUSTER KEYSLOT a|0 CLUSTER KEYSLOT|0 CLUSTER NONSENSE|0 CLUSTER COUNTKEYSINSLOT 15495",
    ],
)
def test_slots(cluster_comparison: Comparison, script: str) -> None:
    difference = cluster_comparison.run(steps_of(script), 2)
    assert difference is None, str(difference)


@pytest.mark.parametrize("way", ["ID", "ADDR", "LADDR", "old", "own", "skipped"])
def test_kill(valkey_port: int, node_port: int, way: str) -> None:
    assert killed(node_port, way) == killed(valkey_port, way)


def killed(port: int, way: str) -> list[object]:
    """Replies to the killer, and whether each of the two connections lives on."""
    with Client(port) as killer, Client(port) as victim:
        number = victim.call(b"CLIENT", b"ID")
        assert number is not None
        arguments = {
            "ID": [b"ID", b"%d" % number.integer],
            "ADDR": [b"ADDR", victim.own_address],
            "LADDR": [b"LADDR", b"127.0.0.1:%d" % port, b"ID", b"%d" % number.integer],
            "old": [victim.own_address],
            "own": [b"ADDR", killer.own_address, b"SKIPME", b"no"],
            "skipped": [b"ADDR", killer.own_address],
        }[way]
        reply = killer.call(b"CLIENT", b"KILL", *arguments)
        pings = [client.call(b"PING") for client in (killer, victim)]
        return [reply and reply.raw, *(ping and ping.raw for ping in pings)]
