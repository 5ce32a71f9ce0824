"""Commands and nodes on a file system that is full: a tmpfs that only their process sees."""

import functools
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import kvstrata
from kvstrata import Store
from tests.e2e.command import COMMAND, Node, StartNode, environment

FULL = "No space left on device"
PAGE_BYTES = 4_096
_SCRIPT = 'mount -t tmpfs -o size="$0" full "$1" && cd "$1" && shift && exec "$@"'


def on_small_disk(folder: Path, pages: int, *command: str) -> list[str]:
    """The command, run in the folder, which has that many pages of room for it alone."""
    size = str(pages * PAGE_BYTES)
    within = ["unshare", "--map-root-user", "--mount", "sh", "-c", _SCRIPT, size, str(folder)]
    return [*within, *command]


@functools.cache
def can_mount(folder: Path) -> bool:
    tried = subprocess.run(on_small_disk(folder, 1, "true"), capture_output=True, timeout=10)
    return tried.returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    if not can_mount(folder):
        pytest.skip("no file system can be mounted here, not even in a namespace")
    return folder


def test_get_without_room_leaves_the_folder_as_it_was(node: Node, disk: Path) -> None:
    with kvstrata.connect(node.url) as store:
        store.put("large", bytes(20 * PAGE_BYTES))
    script = 'echo before >target; "$@" get large target; echo "exit $?"; ls -A; cat target'
    done = subprocess.run(
        on_small_disk(disk, 10, "sh", "-c", script, "sh", *COMMAND),
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(KVSTRATA_URL=node.url),
    )
    assert done.stdout.split("\n") == ["exit 1", "target", "before", ""]
    assert done.stderr == f"error: [Errno 28] {FULL}: 'target'\n"


def make_pools(store: Store, names: Sequence[str], made: list[str]) -> None:
    for name in names:
        store.admin("pool_create", {"name": name, "settings": {"quota": "1MiB"}})
        made.append(name)


def test_a_node_whose_pools_have_no_room_keeps_them_and_serves(
    start_node: StartNode, disk: Path
) -> None:
    before = on_small_disk(disk, 2)
    node = start_node("--pools-file", str(disk / "pools.json"), before=before)
    names = [f"pool-{index:055}" for index in range(100)]
    made: list[str] = []
    with (
        kvstrata.connect(node.url) as store,
        pytest.raises(kvstrata.UsageError, match=FULL),
    ):
        make_pools(store, names, made)
    assert len(made) > 1
    refused = node.run("pool", "create", names[-1])
    assert refused.code == 2
    assert f"{disk}/pools.json cannot be written: {FULL}" in refused.error
    seen_by_it = Path(f"/proc/{node.process.pid}/root") / disk.relative_to("/")
    saved = (seen_by_it / "pools.json").read_text()
    assert [path.name for path in seen_by_it.iterdir()] == ["pools.json"]
    assert all(name in saved for name in made)
    assert names[len(made)] not in saved
    with kvstrata.connect(node.url, pool=made[-1]) as store:
        store.put("key", b"value")
        assert store.get("key") == b"value"
    with kvstrata.connect(node.url) as store:
        assert list(store.admin("pools")) == ["default", *made]
        store.admin("pool_drop", {"name": made[0]})
    node.signal(signal.SIGTERM)
    assert node.wait() == 0
