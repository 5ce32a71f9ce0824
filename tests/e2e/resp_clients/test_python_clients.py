"""valkey-py and redis-py, which share their interface, in both versions of the protocol."""

import os
import threading
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.e2e.command import Node
from tests.e2e.nodes import wait_until

THREADS, INCREMENTS = 4, 25


@pytest.fixture(params=["valkey", "redis"])
def library(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = pytest.importorskip(request.param)
    return module


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def client(library: ModuleType, port: int, request: pytest.FixtureRequest) -> Iterator[Any]:
    with connect(library, port, protocol=request.param) as connected:
        yield connected


def connect(library: ModuleType, port: int, **options: object) -> Any:  # noqa: ANN401
    kind = library.Valkey if library.__name__ == "valkey" else library.Redis
    return kind(host="127.0.0.1", port=port, socket_timeout=10, **options)


def test_strings(client: Any) -> None:  # noqa: ANN401
    binary = bytes(range(256)) * 4_000
    assert client.set("k", binary) is True
    assert client.get("k") == binary
    assert client.get("absent") is None
    assert client.set("k", "v", nx=True) is None
    assert client.set("k", "v", xx=True, get=True) == binary
    assert client.mset({f"k{n}": n for n in range(50)}) is True
    assert client.mget([f"k{n}" for n in range(51)]) == [b"%d" % n for n in range(50)] + [None]
    assert client.append("k", "alue") == client.strlen("k") == 5
    assert client.getrange("k", 1, 2) == b"al"
    assert [client.incr("n"), client.incrby("n", 41), client.decr("n")] == [1, 42, 41]
    assert client.getdel("n") == b"41"
    assert client.exists("k", "k0", "n") == 2
    assert client.delete("k", "k0", "n") == 2
    assert client.type("k1") == b"string"
    assert client.dbsize() == 49


def test_times_to_live(client: Any) -> None:  # noqa: ANN401
    client.set("k", "v", px=100_000)
    assert 99_000 < client.pttl("k") <= 100_000
    assert client.persist("k")
    assert client.ttl("k") == -1
    assert client.set("brief", "v", ex=100)
    assert client.pexpire("brief", 1)
    wait_until(lambda: client.get("brief") is None, 2, "gone")


def test_pipelines(client: Any) -> None:  # noqa: ANN401
    with client.pipeline(transaction=False) as pipeline:
        for n in range(1_000):
            pipeline.set(f"k{n}", n)
            pipeline.incr(f"k{n}")
        pipeline.get("k999")
        replies = pipeline.execute()
    assert replies == [reply for n in range(1_000) for reply in (True, n + 1)] + [b"1000"]


def test_a_pipeline_goes_on_behind_an_error(library: ModuleType, client: Any) -> None:  # noqa: ANN401
    client.set("text", "x")
    with client.pipeline(transaction=False) as pipeline:
        replies = pipeline.incr("text").ping().execute(raise_on_error=False)
    assert isinstance(replies[0], library.ResponseError)
    assert replies[1] is True


def test_transactions_that_retry_lose_no_increment(library: ModuleType, port: int) -> None:
    def increment() -> None:
        with connect(library, port) as own:
            for _ in range(INCREMENTS):
                own.transaction(lambda pipe: set_to_next(pipe), "counter")

    def set_to_next(pipe: Any) -> None:  # noqa: ANN401
        now = int(pipe.get("counter") or 0)
        pipe.multi()
        pipe.set("counter", now + 1)

    threads = [threading.Thread(target=increment) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with connect(library, port) as client:
        assert client.get("counter") == b"%d" % (THREADS * INCREMENTS)


def test_a_transaction_fails_where_a_watched_key_changed(library: ModuleType, client: Any) -> None:  # noqa: ANN401
    with client.pipeline() as pipe:
        pipe.watch("k")
        client.set("k", "theirs")
        pipe.multi()
        pipe.set("k", "ours")
        with pytest.raises(library.WatchError):
            pipe.execute()
    assert client.get("k") == b"theirs"


def test_scan_finds_every_key_once(client: Any) -> None:  # noqa: ANN401
    client.mset({f"a{n}": n for n in range(700)} | {f"b{n}": n for n in range(300)})
    found = list(client.scan_iter(match="a*", count=50))
    assert sorted(found) == sorted(b"a%d" % n for n in range(700))
    assert sorted(client.keys("b*")) == sorted(b"b%d" % n for n in range(300))
    assert client.randomkey()[:1] in b"ab"


def test_a_killed_client_connects_again(library: ModuleType, client: Any, port: int) -> None:  # noqa: ANN401
    with connect(library, port, client_name="victim") as victim:
        number = victim.client_id()
        assert [each["name"] for each in client.client_list(client_id=[str(number)])] == ["victim"]
        assert client.client_kill_filter(_id=number) == 1
        assert victim.ping() is True
        assert victim.client_id() != number
    with pytest.raises(library.ResponseError, match="No such client"):
        client.client_kill("127.0.0.1:1")


def test_a_unix_socket_serves_as_well(library: ModuleType, node: Node) -> None:
    path = node.run("info", "--json").json()["unix_path"]
    kind = library.Valkey if library.__name__ == "valkey" else library.Redis
    with kind(unix_socket_path=path, socket_timeout=10) as client:
        large = bytes(range(256)) * 20_000
        assert client.set("k", large) is True
        assert client.get("k") == large
        own = client.client_info()
        assert (own["addr"], own["laddr"]) == (f"{path}:{os.getpid()}", f"{path}:0")
        assert client.client_list(client_id=[str(own["id"])])[0]["addr"] == own["addr"]
        assert client.client_kill_filter(addr=own["addr"], skipme=False) == 1
        assert client.client_info()["id"] != own["id"]


def test_what_a_server_tells_of_itself(client: Any) -> None:  # noqa: ANN401
    client.set("k", "v", ex=100)
    information = client.info()
    assert information["server_name"] == "kvstrata"
    # A gauge of each shard's, refreshed some times a second.
    expected = {"keys": 1, "expires": 1}
    wait_until(lambda: expected.items() <= client.info("keyspace")["db0"].items(), 2, "counted")
    assert information["connected_clients"] >= 1
    assert client.info("cluster") == {"cluster_enabled": 1}
    assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}
    assert client.config_set("slowlog-log-slower-than", 20_000) is True
    assert client.config_get("slowlog-log-s*") == {"slowlog-log-slower-than": "20000"}
    assert client.acl_whoami() in {"default", b"default"}
    assert client.memory_usage("k") > 1
    assert client.object("encoding", "k") == b"embstr"
    assert client.command_count() == len(client.command())
    assert client.time()[0] == pytest.approx(time.time(), abs=5)
    assert client.echo("said") == b"said"


def test_errors_are_those_of_valkey(library: ModuleType, client: Any) -> None:  # noqa: ANN401
    client.set("text", "x")
    with pytest.raises(library.ResponseError, match="value is not an integer or out of range"):
        client.incr("text")
    with pytest.raises(library.ResponseError, match="unknown command 'LPUSH'"):
        client.lpush("list", "x")
    with pytest.raises(library.ResponseError, match="DB index is out of range"):
        client.select(1)
