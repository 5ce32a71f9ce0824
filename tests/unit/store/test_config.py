"""Settings: precedence, origins, and errors that name the place and the remedy."""

import contextlib
from pathlib import Path

import pytest
from pydantic import ValidationError

from kvstrata.store.config import load_config
from kvstrata.store.errors import UsageError
from kvstrata.store.node import node_options
from kvstrata.store.pools import pool_options


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kvstrata.toml"
    path.write_text(
        """
        [node]
        port = 1000
        memory = "32MiB"
        stall_max = "3s"
        [pools.kv]
        kind = "immutable"
        write = ["one", "two"]
        """
    )
    return path


def test_arguments_go_before_environment_before_file_before_defaults(file: Path) -> None:
    environment = {"KVSTRATA_NODE__PORT": "2000", "KVSTRATA_NODE__MEMORY": "64MiB"}
    loaded = load_config(file, {"node": {"port": 3000, "host": None}}, environment)
    node = loaded.config.node
    assert (node.port, node.memory, node.stall_max, node.host) == (3000, 64 << 20, 3, "127.0.0.1")
    origins = {
        name: loaded.origins[f"node.{name}"] for name in ("port", "memory", "stall_max", "host")
    }
    assert origins == {
        "port": "argument",
        "memory": "KVSTRATA_NODE__MEMORY",
        "stall_max": str(file),
        "host": "default",
    }


def test_the_default_pool_exists_always(file: Path) -> None:
    pools = load_config(file, environment={}).config.pools
    assert set(pools) == {"default", "kv"}
    assert pools["kv"].kind == "immutable"
    assert pools["kv"].has_secrets
    assert not pools["default"].has_secrets


def test_pools_can_be_set_by_environment() -> None:
    environment = {"KVSTRATA_POOLS__DEFAULT__ADMIN": "hunter2"}
    loaded = load_config(environment=environment)
    (secret,) = loaded.config.pools["default"].admin
    assert secret.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(loaded)


def test_kvstrata_url_sets_the_client() -> None:
    environment = {"KVSTRATA_URL": "kvstrata://elsewhere"}
    assert load_config(environment=environment).config.client.url == "kvstrata://elsewhere"


def test_variables_of_others_are_left_alone() -> None:
    # Kubernetes sets such for a service named kvstrata.
    load_config(environment={"KVSTRATA_PORT": "tcp://10.0.0.1:18400", "KVSTRATA_NODE_PORT": "x"})


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"KVSTRATA_NODE__PROT": "1"}, r"node\.prot \(from KVSTRATA_NODE__PROT\).* mean port\?"),
        ({"KVSTRATA_NOD__PORT": "1"}, r"nod \(from KVSTRATA_NOD__PORT\).* mean node\?"),
        ({"KVSTRATA_POOLS__KV__KID": "1"}, r"pools\.kv\.kid .* mean kind\?"),
        ({"KVSTRATA_NODE__PORT": "99999"}, "65535, not '99999'"),
        ({"KVSTRATA_NODE__MEMORY": "4 parsecs"}, "unknown unit 'parsecs'"),
        ({"KVSTRATA_NODE__PORT__X": "1", "KVSTRATA_NODE__PORT": "1"}, "no settings below"),
        ({"KVSTRATA_NODE__MINIMUM_RATE": "99TiB"}, "less than or equal to 1099511627776"),
        ({"KVSTRATA_NODE__CONNECTION_MEMORY_MAX": "99999999TiB"}, "more than 64 bits count"),
        ({"KVSTRATA_POOLS__KV__QUOTA": str(2**64)}, "more than 64 bits count"),
        ({"KVSTRATA_NODE__HOST": "\udcff"}, "is no address or name"),
        ({"KVSTRATA_NODE__MEMORY": "1MiB"}, "greater than or equal to 16777216"),
    ],
)
def test_mistakes_are_told_with_place_and_remedy(environment: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_config(environment=environment)


def test_a_wrong_secret_setting_does_not_show_the_secret() -> None:
    environment = {"KVSTRATA_POOLS__KV__READ": "hunter2" * 50}
    with pytest.raises(UsageError, match="1 to 256 bytes, and one of 'read' has 350") as caught:
        load_config(environment=environment)
    assert "hunter2" not in str(caught.value)


def test_three_secrets_of_a_role_are_too_many(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[pools.default]\nread = ['a', 'b', 'c']\n")
    with pytest.raises(UsageError, match="at most 2"):
        load_config(path, environment={})


def test_a_missing_or_broken_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the configuration"):
        load_config(tmp_path / "absent.toml", environment={})
    (tmp_path / "broken.toml").write_text("[node")
    with pytest.raises(UsageError, match="not valid TOML"):
        load_config(tmp_path / "broken.toml", environment={})


def test_the_tree_is_frozen() -> None:
    config = load_config(environment={}).config
    with pytest.raises(ValidationError):
        config.node.port = 5


def test_every_field_says_what_it_is() -> None:
    config = load_config(environment={}).config
    for section in (config.node, config.http, config.pools["default"], config.client, config.log):
        for name, field in type(section).model_fields.items():
            assert field.description, f"{type(section).__name__}.{name}"


def test_every_number_is_bounded_by_what_the_core_takes() -> None:
    """Whatever a number is set to, it is told in words, or the native options take it."""
    config = load_config(environment={}).config
    numbers = [2**16, 2**32, 2**63, 2**64 - 1, 2**64, 10**400, 1e300, 0.5]
    for name, default in config.node.model_dump().items():
        if isinstance(default, int | float) and not isinstance(default, bool):
            for number in numbers:
                with contextlib.suppress(UsageError):
                    loaded = load_config(None, {"node": {name: number}}, {})
                    node_options(loaded.config.node)
    for name in ("quota", "ttl"):
        for number in numbers:
            with contextlib.suppress(UsageError):
                loaded = load_config(None, {"pools": {"kv": {name: number}}}, {})
                pool_options("kv", loaded.config.pools["kv"])
