"""SLOWLOG, LATENCY and WAIT."""

import pytest

from tests.unit.store.resp_admin.recorded_node import (
    Asker,
    RecordedNode,
    asker,
    command_counters,
    shard_counters,
    with_secret,
)

ENTRY = (
    b"*6\r\n:1\r\n:1796032768\r\n:4\r\n*2\r\n$3\r\nGET\r\n$3\r\na\xff\x00\r\n"
    b"$15\r\n127.0.0.1:47856\r\n$2\r\nme\r\n"
)


def slow(number: int, pool: str) -> dict[str, object]:
    return {
        "id": number,
        "time_s": 1_796_032_768,
        "microseconds": 4,
        "arguments": [b"GET", b"a\xff\x00"],
        "peer": "127.0.0.1:47856",
        "name": "me",
        "pool": pool,
    }


@pytest.fixture
def node() -> Asker:
    shards = [
        shard_counters(
            resp_commands={
                "get": command_counters(4, 9_000, at3=3, at5=1),
                "client|list": command_counters(1, 1_000, at1=1),
                "set": command_counters(0, 0) | {"rejected": 1},
            }
        ),
        shard_counters(resp_commands={"get": command_counters(2, 9_000, at3=1, at23=1)}),
    ]
    recorded = RecordedNode(
        shards=shards,
        slow=[slow(2, "team"), slow(1, "default")],
        spikes={"command": [(1_796_032_982, 31), (1_796_032_990, 12)], "stall": [(7, 1)]},
    )
    return asker(recorded, team=with_secret())


def test_slow_commands(node: Asker) -> None:
    assert node.ask("SLOWLOG GET").endswith(ENTRY)
    assert node.ask("SLOWLOG GET 1", 3) == b"*1\r\n" + ENTRY.replace(b":1\r\n", b":2\r\n", 1)
    assert node.ask("SLOWLOG GET -1").count(b"GET") == 2
    assert node.ask("SLOWLOG GET 0") == b"*0\r\n"
    assert node.ask("SLOWLOG LEN") == b":2\r\n"
    assert node.ask("SLOWLOG RESET") == b"+OK\r\n"
    assert node.node.told == [("clear slow commands",)]


def test_slow_commands_of_a_tenant(node: Asker) -> None:
    assert node.ask("SLOWLOG LEN", pool="team") == b":1\r\n"
    assert b":1\r\n:1796032768" not in node.ask("SLOWLOG GET -1", pool="team")
    assert node.ask("SLOWLOG RESET", pool="team").startswith(b"-NOPERM ")
    assert node.node.told == []


def test_slow_command_refusals(node: Asker) -> None:
    for count in ("x", "-2", "1.0"):
        assert node.ask(f"SLOWLOG GET {count}") == (
            b"-ERR count should be greater than or equal to -1\r\n"
        )
    assert node.ask("SLOWLOG GET 1 2") == (
        b"-ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.\r\n"
    )


def test_spikes(node: Asker) -> None:
    assert node.ask("LATENCY LATEST") == (
        b"*2\r\n*6\r\n$7\r\ncommand\r\n:1796032990\r\n:12\r\n:31\r\n:43\r\n:2\r\n"
        b"*6\r\n$5\r\nstall\r\n:7\r\n:1\r\n:1\r\n:1\r\n:1\r\n"
    )
    assert node.ask("LATENCY HISTORY command") == (
        b"*2\r\n*2\r\n:1796032982\r\n:31\r\n*2\r\n:1796032990\r\n:12\r\n"
    )
    assert node.ask("LATENCY HISTORY nope") == b"*0\r\n"
    assert node.ask("LATENCY RESET") == b":2\r\n"
    assert node.ask("LATENCY RESET stall") == b":1\r\n"
    assert node.node.told == [("clear spikes", "command", "stall"), ("clear spikes", "stall")]


def test_histogram(node: Asker) -> None:
    two = b"$5\r\ncalls\r\n:6\r\n$14\r\nhistogram_usec\r\n"
    counts = b":8\r\n:4\r\n:32\r\n:5\r\n:8388608\r\n:6\r\n"
    assert node.ask("LATENCY HISTOGRAM GET nope") == (
        b"*2\r\n$3\r\nget\r\n*4\r\n" + two + b"*6\r\n" + counts
    )
    assert node.ask("LATENCY HISTOGRAM get", 3) == (
        b"%1\r\n$3\r\nget\r\n%2\r\n" + two + b"%3\r\n" + counts
    )
    assert node.ask("LATENCY HISTOGRAM nope") == b"*0\r\n"
    assert node.ask("LATENCY HISTOGRAM client").startswith(b"*2\r\n$11\r\nclient|list\r\n")
    assert node.ask("LATENCY HISTOGRAM").startswith(b"*4\r\n")


@pytest.mark.parametrize("command", ["LATEST", "HISTORY x", "RESET", "HISTOGRAM"])
def test_delays_are_for_who_administers_the_node(node: Asker, command: str) -> None:
    assert node.ask(f"LATENCY {command}", pool="team") == (
        b"-NOPERM latency concerns all pools: connect to the pool 'default' with an admin"
        b" secret\r\n"
    )
    assert node.node.told == []


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        ("1 10", b":0\r\n"),
        ("-1 0", b":0\r\n"),
        ("x 1", b"-ERR value is not an integer or out of range\r\n"),
        ("01 1", b"-ERR value is not an integer or out of range\r\n"),
        ("9223372036854775808 1", b"-ERR value is not an integer or out of range\r\n"),
        ("-9223372036854775808 1", b":0\r\n"),
        ("1 x", b"-ERR timeout is not an integer or out of range\r\n"),
        ("1 -1", b"-ERR timeout is negative\r\n"),
    ],
)
def test_wait(node: Asker, words: str, reply: bytes) -> None:
    assert node.ask(f"WAIT {words}") == reply
