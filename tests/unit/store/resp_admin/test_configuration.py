"""CONFIG: what is shown, what is changed for real, and Valkey's words for what is not."""

from typing import Any

import pytest

from kvstrata.store.config import PoolConfig
from kvstrata.store.resp_admin.parameters import PARAMETERS
from tests.unit.store.resp_admin.recorded_node import Asker, RecordedNode, asker, with_secret


@pytest.fixture
def node() -> Asker:
    return asker(RecordedNode(), team=with_secret(), fixed=PoolConfig(kind="immutable"))


def refusal(name: str, why: str) -> bytes:
    words = f"CONFIG SET failed (possibly related to argument '{name}') - {why}"
    return f"-ERR {words}\r\n".encode()


def settings(node: Asker, pool: str = "default") -> tuple[Any, Any]:
    described = node.state.pools.describe()[pool]
    return described["quota"], described["eviction"]


def test_what_redis_benchmark_asks(node: Asker) -> None:
    two = b"$10\r\nappendonly\r\n$2\r\nno\r\n$4\r\nsave\r\n$0\r\n\r\n"
    assert node.ask("CONFIG GET save appendonly") == b"*4\r\n" + two
    assert node.ask("CONFIG GET save appendonly", 3) == b"%2\r\n" + two


def test_names_are_matched(node: Asker) -> None:
    assert node.ask("CONFIG GET nope") == b"*0\r\n"
    assert node.ask("CONFIG GET MaxMemory nope") == b"*2\r\n$9\r\nMaxMemory\r\n$1\r\n0\r\n"
    assert node.ask("CONFIG GET databases databases DATA*") == (
        b"*2\r\n$9\r\ndatabases\r\n$1\r\n1\r\n"
    )
    assert node.ask("CONFIG GET *").startswith(b"*%d\r\n" % (2 * len(PARAMETERS)))
    assert node.ask("CONFIG GET maxmemory*").count(b"maxmemory") == 2


def test_values_are_the_nodes(node: Asker) -> None:
    shown = node.ask("CONFIG GET port maxclients bind cluster-enabled proto-max-bulk-len")
    for value in (b"18400", b"1000", b"127.0.0.1", b"yes", b"536870912"):
        assert b"\r\n%b\r\n" % value in shown


def test_maxmemory_is_the_pools_quota(node: Asker) -> None:
    assert node.ask("CONFIG SET maxmemory 100mb") == b"+OK\r\n"
    assert settings(node) == (100 << 20, "lru")
    assert node.ask("CONFIG GET maxmemory") == b"*2\r\n$9\r\nmaxmemory\r\n$9\r\n104857600\r\n"
    assert node.ask("CONFIG SET maxmemory 0") == b"+OK\r\n"
    assert settings(node) == (0, "lru")


@pytest.mark.parametrize(
    ("policy", "eviction"),
    [("noeviction", "none"), ("AllKeys-LRU", "lru"), ("allkeys-lfu", "s3fifo")],
)
def test_policy_is_the_pools_eviction(node: Asker, policy: str, eviction: str) -> None:
    assert node.ask(f"CONFIG SET maxmemory-policy {policy} maxmemory 1g") == b"+OK\r\n"
    assert settings(node) == (10**9, eviction)
    assert policy.lower().encode() in node.ask("CONFIG GET maxmemory-policy")


def test_a_tenant_changes_its_own_pool(node: Asker) -> None:
    assert node.ask("CONFIG SET maxmemory 5mb", pool="team") == b"+OK\r\n"
    assert settings(node, "team")[0] == 5 << 20
    assert settings(node)[0] == 0
    reply = node.ask("CONFIG SET slowlog-max-len 5 maxmemory 6mb", pool="team")
    assert reply.startswith(b"-NOPERM ")
    assert settings(node, "team")[0] == 5 << 20
    assert node.node.told == []


def test_what_is_watched(node: Asker) -> None:
    assert node.ask("CONFIG SET slowlog-log-slower-than 5 slowlog-max-len 7") == b"+OK\r\n"
    assert node.ask("CONFIG SET commandlog-execution-slower-than -1") == b"+OK\r\n"
    assert node.ask("CONFIG SET latency-monitor-threshold 100") == b"+OK\r\n"
    assert node.node.told == [("slow log", 5, 7), ("slow log", -1, 7), ("threshold", 100)]
    assert b"$2\r\n-1\r\n" in node.ask("CONFIG GET slowlog-log-slower-than")
    assert b"$3\r\n100\r\n" in node.ask("CONFIG GET latency-monitor-threshold")


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        ("foo bar", b"-ERR Unknown option or number of arguments for CONFIG SET - 'foo'\r\n"),
        (
            "maxmemory 1mb foo bar",
            b"-ERR Unknown option or number of arguments for CONFIG SET - 'foo'\r\n",
        ),
        ("foo bar baz", b"-ERR syntax error\r\n"),
        ("databases 3", refusal("databases", "can't set immutable config")),
        ("cluster-enabled no", refusal("cluster-enabled", "can't set immutable config")),
        ("maxmemory 1mb maxmemory 2mb", refusal("maxmemory", "duplicate parameter")),
        ("maxmemory 1mb databases 3", refusal("databases", "can't set immutable config")),
        ("maxmemory 100qb", refusal("maxmemory", "argument must be a memory value")),
        ("maxmemory -1", refusal("maxmemory", "argument must be a memory value")),
        ("maxmemory 1.5mb", refusal("maxmemory", "argument must be a memory value")),
        (
            "slowlog-max-len x",
            refusal("slowlog-max-len", "argument couldn't be parsed into an integer"),
        ),
        (
            "slowlog-max-len -1",
            refusal("slowlog-max-len", "argument must be between 0 and 10000 inclusive"),
        ),
        (
            "slowlog-log-slower-than -2",
            refusal(
                "slowlog-log-slower-than",
                "argument must be between -1 and 9223372036854775807 inclusive",
            ),
        ),
        (
            "maxmemory-policy volatile-lru",
            refusal(
                "maxmemory-policy",
                "argument(s) must be one of the following: noeviction, allkeys-lru, allkeys-lfu",
            ),
        ),
    ],
)
def test_refusals_change_nothing(node: Asker, words: str, reply: bytes) -> None:
    assert node.ask(f"CONFIG SET {words}") == reply
    assert settings(node) == (0, "lru")
    assert node.node.told == []


def test_a_pool_that_is_gone(node: Asker) -> None:
    reply = node.ask("CONFIG GET maxmemory", pool="dropped")
    assert reply == b"-ERR the pool 'dropped' is no more\r\n"
