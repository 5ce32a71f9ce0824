"""A real node inside this process: local(), the fixture, pools and administrative commands."""

import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import kvstrata
from kvstrata.store.admin import AdminDesk, Command
from kvstrata.store.config import NodeConfig, PoolConfig
from kvstrata.store.errors import (
    DeniedError,
    ImmutableError,
    InternalError,
    TimeoutError,
    TooLargeError,
    UnavailableError,
    UnsupportedError,
    UsageError,
)
from kvstrata.store.local import LocalStore
from kvstrata.store.node import RunningNode
from kvstrata.store.pools import PoolRegistry


def test_the_fixture_is_an_empty_store(kvstrata_store: LocalStore) -> None:
    assert list(kvstrata_store.scan()) == []
    kvstrata_store.put("key", b"value")
    assert kvstrata_store.get("key") == b"value"


def test_further_connections_need_the_secret(kvstrata_store: LocalStore) -> None:
    with kvstrata.connect(kvstrata_store.node_url) as other:
        other.put("key", b"value")
    assert kvstrata_store.get("key") == b"value"
    with pytest.raises(DeniedError, match="secret"):
        kvstrata.connect(kvstrata_store.url)


def test_closing_ends_the_node() -> None:
    store = kvstrata.local("32MiB")
    url = store.node_url
    store.close()
    store.close()
    with pytest.raises(UnavailableError):
        kvstrata.connect(url, timeout=1)


def test_a_key_of_a_batch_that_is_too_long(kvstrata_store: LocalStore) -> None:
    keys = [b"short", b"k" * 4097]
    for call in (kvstrata_store.exists_many, kvstrata_store.get_many, kvstrata_store.prefix_length):
        with pytest.raises(TooLargeError, match="at most 4096 bytes, not 4097"):
            call(keys)
    with pytest.raises(TooLargeError):
        kvstrata_store.put_many(dict.fromkeys(keys, b""))


def test_info_and_help(kvstrata_store: LocalStore) -> None:
    info = kvstrata_store.info()
    assert info["memory"] == 256 << 20
    assert info["port"] == kvstrata_store.node.port
    assert {"help", "info", "pool_create", "statistics"} <= set(kvstrata_store.admin("help"))
    assert kvstrata_store.admin("statistics")


def test_pools_are_made_changed_and_dropped(kvstrata_store: LocalStore) -> None:
    admin = kvstrata_store.admin
    admin("pool_create", {"name": "kv", "settings": {"kind": "immutable", "write": "one"}})
    url = kvstrata_store.url.replace("default", "kv")
    with kvstrata.connect(url, secret="one") as kv:
        kv.put("key", b"value")
        with pytest.raises(ImmutableError, match="put only if absent"):
            kv.put("key", b"other")
        assert kvstrata_store.get("key") is None

        admin("pool_change", {"name": "kv", "settings": {"write": ["two", "one"]}})
        with kvstrata.connect(url, secret="two") as rotated:
            assert rotated.get("key") == b"value"
        settings = admin("pools")["kv"]
        assert (settings["kind"], settings["write"]) == ("immutable", 2)
        assert "two" not in str(admin("pools"))
    admin("pool_drop", {"name": "kv"})
    with pytest.raises(DeniedError):
        kvstrata.connect(url, secret="one")


@pytest.mark.parametrize(
    ("command", "payload", "words"),
    [
        ("pool_create", {"name": "default"}, "exists already"),
        ("pool_create", {"name": "Kv"}, "cannot name a pool"),
        ("pool_create", {"name": "kv"}, "open to everybody"),
        ("pool_create", {"name": "kv", "settings": {"knd": "mutable"}}, "knd: .* mean kind?"),
        ("pool_create", {}, "no field 'name'"),
        ("pool_create", {"name": 5}, "'name' must be a str, not 5"),
        ("pool_create", {"name": "kv", "settings": 7}, "'settings' must be a dict, not 7"),
        ("pool_create", {"name": "kv", "settings": [1, 2]}, "'settings' must be a dict"),
        ("pool_create", {"name": "kv", "settings": {"quota": 1e300}}, "quota: .* not a size"),
        ("pool_create", {"name": "kv", "settings": {"quota": "9999999999TiB"}}, "64 bits"),
        ("pool_create", {"name": "kv", "settings": {"ttl": "9" * 400}}, "ttl: .* not a duration"),
        ("pool_create", {"name": "kv", "settings": {"read_file": "a\0b"}}, "null byte"),
        ("pool_create", {"name": "kv", "settings": {"read_file": sys.executable}}, "larger than"),
        ("pool_create", {"name": object()}, "not of plain values"),
        ("pool_create", {"name": 2**64}, "not of plain values"),
        ("pool_change", {"name": "kv", "settings": {}}, "there is no pool 'kv'"),
        ("pool_change", {"name": "default", "settings": {"kind": "immutable"}}, "never changes"),
        ("pool_drop", {"name": "default"}, "stands in the configuration"),
    ],
)
def test_mistakes_with_pools_are_told(
    kvstrata_store: LocalStore, command: str, payload: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        kvstrata_store.admin(command, payload)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"memory": "1MiB"}, r"node\.memory .* greater than or equal to 16777216, not '1MiB'"),
        ({"memory": "much"}, "'much' is not a size"),
        ({"shards": 0}, r"node\.shards .* greater than or equal to 1, not 0"),
        ({"pool": "kv"}, "add it to `pools`, or choose one of default"),
    ],
)
def test_mistakes_with_a_local_store_are_told(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        kvstrata.local(**arguments)


def test_only_the_administrator_of_the_default_pool_administers() -> None:
    pools = {"kv": PoolConfig(kind="immutable")}
    with kvstrata.local("32MiB", pools=pools, pool="kv") as store:
        assert store.info()["shards"] == 1
        with pytest.raises(DeniedError, match="connect to the pool 'default'"):
            store.admin("pools")
    with kvstrata.local("32MiB") as store:
        store.node.pools.change("default", {"write": "w", "admin": "a"})
        with (
            kvstrata.connect(store.url, secret="w") as writer,
            pytest.raises(DeniedError, match="pools needs the admin right in the pool 'default'"),
        ):
            writer.admin("pools")


def test_a_command_that_fails_does_not_end_the_desk(kvstrata_store: LocalStore) -> None:
    desk: AdminDesk = kvstrata_store.node.desk

    def fail(_caller: object, _payload: object) -> dict[str, object]:
        raise RuntimeError("out of luck")

    desk.register(Command("fail", fail, "read", "fails"))
    with pytest.raises(InternalError, match="out of luck"):
        kvstrata_store.admin("fail")
    with pytest.raises(UnsupportedError, match="try help"):
        kvstrata_store.admin("no_such_command")
    assert kvstrata_store.info()


def test_a_command_that_does_not_end_does_not_keep_the_node_from_stopping() -> None:
    others = set(threading.enumerate())  # Of nodes that go on.
    store = kvstrata.local("32MiB")
    released = threading.Event()

    def wait(_caller: object, _payload: object) -> dict[str, object]:
        released.wait(60)
        return {}

    store.node.desk.register(Command("wait", wait, "read", "waits"))
    with pytest.raises(TimeoutError):
        store.admin("wait", timeout=0.2)
    started = time.monotonic()
    store.close()
    assert time.monotonic() - started < 15
    released.set()  # It answers a node that has stopped, and that is no fault.
    for thread in set(threading.enumerate()) - others:
        if thread.name == "kvstrata-admin":
            thread.join(10)
            assert not thread.is_alive()


def test_pools_made_at_run_time_outlive_the_node(tmp_path: Path) -> None:
    file = tmp_path / "pools.json"
    config = NodeConfig(port=0, memory=32 << 20, shards=1, pools_file=file)
    with RunningNode(config, {"default": PoolConfig()}) as node:
        node.pools.create("kv", {"kind": "immutable", "read": "hunter2", "quota": "1MiB"})
        node.pools.create("gone", {})
        node.pools.drop("gone")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    described = PoolRegistry({"default": PoolConfig()}, file).describe()
    assert set(described) == {"default", "kv"}
    assert (described["kv"]["quota"], described["kv"]["read"]) == (1 << 20, 1)
    file.write_text("{}")
    with pytest.raises(UsageError, match="does not hold pools"):
        PoolRegistry({"default": PoolConfig()}, file)


def test_a_change_tells_where_it_was_saved(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("old\n")
    for file in (None, tmp_path / "pools.json"):
        config = NodeConfig(port=0, memory=32 << 20, shards=1, pools_file=file)
        with RunningNode(config, {"default": PoolConfig(admin_file=secret)}) as node:
            url = f"kvstrata://default:old@127.0.0.1:{node.port}"
            with kvstrata.connect(url) as store:
                made = store.admin("pool_create", {"name": "kv", "settings": {"read": "r"}})
                changed = store.admin("pool_change", {"name": "default", "settings": {"ttl": 1}})
                dropped = store.admin("pool_drop", {"name": "kv"})
        assert made == dropped
        assert (made["saved"], made["where"]) == (file is not None, file and str(file))
        assert file is not None or "--pools-file" in made["reason"]
        assert not changed["saved"]
        assert f"configuration, {secret}: change it there as well" in changed["reason"]


def test_a_secret_that_came_from_a_file_is_rotated_by_setting_another(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("old\n")
    config = NodeConfig(port=0, memory=32 << 20, shards=1)
    with RunningNode(config, {"default": PoolConfig(admin_file=secret)}) as node:
        node.pools.change("default", {"admin": ["old", "new"]})
        assert node.pools.admin_secrets("default") == ["old", "new"]
        node.pools.change("default", {"admin": ["new"]})
        kvstrata.connect(f"kvstrata://default:new@127.0.0.1:{node.port}").close()
        with pytest.raises(kvstrata.DeniedError):
            kvstrata.connect(f"kvstrata://default:old@127.0.0.1:{node.port}").put("k", b"")
        node.pools.change("default", {"admin_file": str(secret)})
        assert node.pools.admin_secrets("default") == ["old"]


def test_what_cannot_be_kept_is_not_done(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    file = folder / "pools.json"
    config = NodeConfig(port=0, memory=32 << 20, shards=1, pools_file=file)
    with RunningNode(config, {"default": PoolConfig()}) as node:
        node.pools.create("kept", {"quota": "1MiB"})
        folder.rename(tmp_path / "away")
        changes: list[tuple[Any, ...]] = [
            (node.pools.create, "kv", {}),
            (node.pools.change, "kept", {"quota": "2MiB"}),
            (node.pools.drop, "kept"),
        ]
        for change, *arguments in changes:
            with pytest.raises(UsageError, match="nothing was changed"):
                change(*arguments)
            pools = node.pools.describe()
            assert {name: pool["quota"] for name, pool in pools.items()} == {
                "default": 0,
                "kept": 1 << 20,
            }
        native: Any = node.native.statistics()["pools"]
        assert {name: pool["quota_bytes"] for name, pool in native.items()} == {
            "default": 0,
            "kept": 1 << 20,
        }
        (tmp_path / "away").rename(folder)
        node.pools.create("kv", {})
    assert set(PoolRegistry({"default": PoolConfig()}, file).describe()) == {
        "default",
        "kept",
        "kv",
    }


def test_what_the_node_refuses_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "pools.json"

    class Refusing:
        def set_pool(self, _options: object) -> str:
            return "no room"

        drop_pool = set_pool

    registry = PoolRegistry({"default": PoolConfig()}, file)
    registry.attach(Refusing())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot set the pool 'kv': no room"):
        registry.create("kv", {})
    assert set(registry.describe()) == {"default"}
    assert set(PoolRegistry({"default": PoolConfig()}, file).describe()) == {"default"}


@pytest.mark.parametrize("name", ["none/pools.json", "file/pools.json", "nul\0.json"])
def test_a_file_for_pools_that_cannot_be_is_told_at_the_start(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="pools cannot be kept in"):
        PoolRegistry({"default": PoolConfig()}, tmp_path / name)


def test_secrets_come_from_files(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text("one\ntwo\n")
    config = NodeConfig(port=0, memory=32 << 20, shards=1)
    with RunningNode(config, {"default": PoolConfig(write_file=file)}) as node:
        for secret in ("one", "two"):
            with kvstrata.connect(f"kvstrata://127.0.0.1:{node.port}", secret=secret) as store:
                store.put("key", b"")
        file.write_text("")
        with pytest.raises(UsageError, match="holds 0 secrets"):
            node.pools.change("default", {"quota": 5})
