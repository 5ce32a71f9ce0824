"""Secrets and pools as clients of Valkey meet them: a pool is the user they name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Node, StartNode
from tests.e2e.resp_clients.programs import port_of, run_program, valkey_cli

valkey = pytest.importorskip("valkey")

SECRET = "of-the-default-pool"


def connect(port: int, **options: Any) -> Any:  # noqa: ANN401
    return valkey.Valkey(host="127.0.0.1", port=port, decode_responses=True, **options)


@pytest.fixture
def first(port: int) -> Iterator[Any]:
    with connect(port, username="first", password="first secret") as client:
        yield client
        client.flushdb()


def test_tenants_do_not_see_each_other(first: Any, port: int) -> None:  # noqa: ANN401
    second = connect(port, username="second", password="second secret")
    first.mset({"k": "of the first", "other": "v"})
    second.set("k", "of the second")
    assert first.get("k") == "of the first"
    assert second.get("k") == "of the second"
    assert (first.dbsize(), second.dbsize()) == (2, 1)
    assert first.keys() in (["k", "other"], ["other", "k"])
    assert list(second.scan_iter()) == ["k"]
    second.flushall()
    assert first.get("k") == "of the first"
    assert connect(port).get("k") is None
    assert first.acl_whoami() == "first"
    second.close()


@pytest.mark.parametrize(
    ("user", "secret"),
    [("first", "second secret"), ("first", ""), ("nobody", "first secret"), ("second", "x" * 500)],
)
def test_a_wrong_secret_is_refused(port: int, user: str, secret: str) -> None:
    with connect(port) as client:
        with pytest.raises(valkey.AuthenticationError, match="invalid username-password pair"):
            client.execute_command("AUTH", user, secret)
        assert client.acl_whoami() == "default"


def test_rights_are_those_of_the_secret(port: int) -> None:
    writer = connect(port, username="second", password="second secret")
    reader = connect(port, username="second", password="second reads")
    owner = connect(port, username="second", password="second rules")
    writer.set("k", "v")
    assert reader.get("k") == "v"
    for forbidden in (("SET", "k", "w"), ("DEL", "k"), ("EXPIRE", "k", 5), ("FLUSHALL",)):
        with pytest.raises(valkey.exceptions.NoPermissionError):
            reader.execute_command(*forbidden)
    with pytest.raises(valkey.exceptions.NoPermissionError):
        writer.config_set("maxmemory", "10mb")
    assert {each["user"] for each in owner.client_list()} == {"second"}
    assert owner.config_set("maxmemory", "10mb")
    assert owner.config_get("maxmemory") == {"maxmemory": str(10 << 20)}
    assert owner.config_set("maxmemory", 0)
    for client in (writer, reader, owner):
        client.close()


def test_an_immutable_pool_keeps_what_it_has(port: int) -> None:
    with connect(port, username="frozen", password="any, as it has no secret") as client:
        assert client.set("k", "first", nx=True) in (True, None)
        with pytest.raises(valkey.ResponseError, match="immutable"):
            client.set("k", "second")
        assert client.set("k", "third", nx=True) is None
        assert client.get("k") == "first"
        assert client.delete("k") == 1
        assert client.set("k", "anew") is True
        client.delete("k")


def test_without_the_default_pools_secret_nothing_goes(
    start_node: StartNode, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    port = port_of(start_node("--admin-secret-file", str(file)))
    with connect(port) as stranger:
        for command in (("PING",), ("GET", "k"), ("INFO",), ("CLIENT", "LIST")):
            with pytest.raises(valkey.AuthenticationError, match="Authentication required"):
                stranger.execute_command(*command)
    for protocol in (2, 3):
        with connect(port, password=SECRET, protocol=protocol) as client:
            assert client.set("k", "v")
            assert client.info("server")["server_name"] == "kvstrata"
    with pytest.raises(valkey.AuthenticationError), connect(port, password="wrong") as client:
        client.ping()


def test_a_command_line_with_user_and_secret(node: Node, first: Any) -> None:  # noqa: ANN401
    first.set("k", "v")
    program = [valkey_cli(), "-p", str(port_of(node)), "--no-auth-warning"]
    assert run_program(*program, "--user", "first", "--pass", "first secret", "GET", "k") == "v\n"
    assert "WRONGPASS" in run_program(*program, input=b"AUTH first wrong\n")
