"""valkey-glide's synchronous clients, whose core is not shared with any other."""

from collections.abc import Iterator
from typing import Any

import pytest

glide = pytest.importorskip("glide_sync", reason="no glide here: pip install valkey-glide-sync")

TIMEOUT_MS = 10_000


@pytest.fixture(params=["RESP2", "RESP3"])
def client(port: int, request: pytest.FixtureRequest) -> Iterator[Any]:
    configuration = glide.GlideClientConfiguration(
        [glide.NodeAddress("127.0.0.1", port)],
        protocol=glide.ProtocolVersion[request.param],
        request_timeout=TIMEOUT_MS,
        client_name="glide",
    )
    client = glide.GlideClient.create(configuration)
    yield client
    client.close()


@pytest.fixture
def cluster_client(port: int) -> Iterator[Any]:
    configuration = glide.GlideClusterClientConfiguration(
        [glide.NodeAddress("127.0.0.1", port)], request_timeout=TIMEOUT_MS
    )
    client = glide.GlideClusterClient.create(configuration)
    yield client
    client.close()


def test_strings(client: Any) -> None:  # noqa: ANN401
    large = bytes(range(256)) * 8_192
    assert client.set("k", large) == "OK"
    assert client.get("k") == large
    assert client.get("absent") is None
    assert client.mset({"a": "1", "b": "2"}) == "OK"
    assert client.mget(["a", "b", "c"]) == [b"1", b"2", None]
    assert client.incrby("a", 41) == 42
    assert client.expire("a", 100)
    assert client.ttl("a") in {99, 100}
    assert client.client_getname() == b"glide"
    assert client.delete(["a", "b", "c"]) == 2


def test_scan_finds_every_key_once(client: Any) -> None:  # noqa: ANN401
    client.mset({f"k{n}": "v" for n in range(300)})
    found, cursor = [], b"0"
    while True:
        cursor, keys = client.scan(cursor, match="k*", count=50)
        found += keys
        if cursor == b"0":
            break
    assert sorted(found) == sorted(b"k%d" % n for n in range(300))


@pytest.mark.parametrize("is_atomic", [False, True])
def test_batches(client: Any, is_atomic: bool) -> None:  # noqa: ANN401
    batch = glide.Batch(is_atomic)
    batch.set("k", "41")
    batch.incr("k")
    batch.get("k")
    assert client.exec(batch, raise_on_error=True) == ["OK", 42, b"42"]


def test_errors(client: Any) -> None:  # noqa: ANN401
    client.set("text", "x")
    with pytest.raises(glide.RequestError, match="not an integer"):
        client.incr("text")


def test_cluster(cluster_client: Any) -> None:  # noqa: ANN401
    values = {f"k{n}": f"{n}" for n in range(100)}
    assert cluster_client.mset(values) == "OK"
    assert cluster_client.mget(list(values)) == [value.encode() for value in values.values()]
    assert cluster_client.delete(list(values)) == 100
    batch = glide.ClusterBatch(is_atomic=True)
    batch.set("{tag}a", "1")
    batch.incr("{tag}a")
    assert cluster_client.exec(batch, raise_on_error=True) == ["OK", 2]
