"""Where a node puts its UNIX socket, and what it says where it cannot."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kvstrata
from kvstrata.store import config
from kvstrata.store.config import NodeConfig, PoolConfig
from kvstrata.store.node import RunningNode

Start = Callable[..., RunningNode]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a small node with these settings."""
    nodes: list[RunningNode] = []

    def start(**settings: object) -> RunningNode:
        chosen = {"port": 0, "memory": "16MiB", "shards": 1, "huge_pages": "off"} | settings
        nodes.append(RunningNode(NodeConfig.model_validate(chosen), {"default": PoolConfig()}))
        return nodes[-1]

    yield start
    for node in nodes:
        node.stop()


@pytest.fixture
def session_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_it_is_named_after_the_port_in_a_folder_of_our_own(
    start: Start, session_folder: Path
) -> None:
    node = start()
    path = session_folder / "kvstrata" / f"{node.port}.sock"
    assert node.native.unix_path == str(path)
    assert path.is_socket()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert node.information()["unix_path"] == str(path)
    other = start()
    assert Path(other.native.unix_path).parent == path.parent
    node.stop()
    assert not path.exists()


def test_where_that_folder_is_not_ours_alone_the_node_does_without(
    start: Start, session_folder: Path
) -> None:
    folder = session_folder / "kvstrata"
    folder.mkdir()
    folder.chmod(0o777)
    node = start()
    assert node.native.unix_path == ""
    assert f"{folder} is not this user's alone" in node.information()["unix_path_missing"]
    with kvstrata.connect(f"kvstrata://127.0.0.1:{node.port}") as store:
        assert store.transport.name == "tcp"
        assert "no UNIX socket" in store.transport.reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_the_folder_of_another_user_is_left_alone(start: Start, session_folder: Path) -> None:
    folder = session_folder / "kvstrata"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65_534, 65_534)
    assert "is not this user's alone" in start().unix_path_missing
    assert list(folder.iterdir()) == []


def test_a_link_in_its_place_is_not_followed(start: Start, session_folder: Path) -> None:
    (session_folder / "elsewhere").mkdir(mode=0o700)
    (session_folder / "kvstrata").symlink_to("elsewhere")
    assert "is not this user's alone" in start().unix_path_missing


def test_a_session_that_has_ended_takes_its_folder_along(
    start: Start, session_folder: Path
) -> None:
    session_folder.rmdir()
    assert "No such file" in start().unix_path_missing


def test_a_path_that_was_asked_for_is_taken_or_the_node_does_not_start(
    start: Start, tmp_path: Path
) -> None:
    path = tmp_path / "node.sock"
    assert start(unix_path=str(path)).native.unix_path == str(path)
    with pytest.raises(OSError, match=f"another node, listens on the UNIX socket {path}"):
        start(unix_path=str(path))
    with pytest.raises(OSError, match="has at most 107 bytes; this one has"):
        start(unix_path=str(tmp_path / ("x" * 107)))
    with pytest.raises(OSError, match="begins with /"):
        start(unix_path="node.sock")
    assert path.is_socket()


def test_none_is_made_where_none_is_wanted(start: Start, session_folder: Path) -> None:
    assert start(unix_path="").unix_path_missing == "node.unix_path is empty"
    assert list(session_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        (
            {"RUNTIME_DIRECTORY": "/run/store:/run/b", "XDG_RUNTIME_DIR": "/run/user/1"},
            "/run/store",
        ),
        ({"XDG_RUNTIME_DIR": "/run/user/1"}, "/run/user/1/kvstrata"),
        ({}, "/run/kvstrata" if os.geteuid() == 0 else f"/tmp/kvstrata-{os.geteuid()}"),
    ],
)
def test_the_folder_is_the_services_the_sessions_or_our_own(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], folder: str
) -> None:
    for name in ("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert config.runtime_folder() == Path(folder)
