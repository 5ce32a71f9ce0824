"""No room for a file: the message names it, nothing half-written stays, what was there does."""

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

import kvstrata
from kvstrata import PoolConfig
from kvstrata.store.errors import UsageError
from kvstrata.store.pools import PoolRegistry
from tests.e2e.nodes import attacked_node
from tests.unit.store.fake_kernel import FakeNode

SIZE = 10_000


@contextlib.contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file can grow beyond this size, as if that much were free."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("room", [0, SIZE - 1])
def test_a_copy_without_room(node: FakeNode, tmp_path: Path, there: bool, room: int) -> None:
    copy = tmp_path / "copy"
    if there:
        copy.write_bytes(b"before")
    with kvstrata.connect("kvstrata://host") as store:
        store.put("key", bytes(SIZE))
        with room_for(room), pytest.raises(OSError, match="/copy") as caught:
            store.get_file("key", copy)
        assert caught.value.filename == str(copy)
        assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"] * there
        assert store.get_file("key", copy) == SIZE


async def test_a_copy_without_room_on_a_loop(node: FakeNode, tmp_path: Path) -> None:
    async with kvstrata.connect_async("kvstrata://host") as store:
        await store.put("key", bytes(SIZE))
        with room_for(SIZE - 1), pytest.raises(OSError, match="/copy"):
            await store.get_file("key", tmp_path / "copy")
    assert not list(tmp_path.iterdir())


def test_a_full_device_is_named(node: FakeNode) -> None:
    with kvstrata.connect("kvstrata://host") as store:
        store.put("key", bytes(SIZE))
        with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
            store.get_file("key", "/dev/full")


def test_pools_without_room_stay_as_they_were(tmp_path: Path) -> None:
    pools_file = tmp_path / "pools.json"
    registry = PoolRegistry({"default": PoolConfig()}, pools_file)
    with attacked_node() as node:
        registry.attach(node.native)
        registry.create("first", {"quota": "1MiB"})
        saved = pools_file.read_bytes()
        with room_for(len(saved)), pytest.raises(UsageError, match="json cannot be written"):
            registry.create("second", {})
        with room_for(len(saved) // 2), pytest.raises(UsageError, match="nothing was changed"):
            registry.change("first", {"quota": "2MiB"})
        assert list(tmp_path.iterdir()) == [pools_file]
        assert pools_file.read_bytes() == saved
        assert list(registry.describe()) == ["default", "first"]
        assert registry.describe()["first"]["quota"] == 1 << 20
        registry.create("second", {})
    assert list(PoolRegistry({}, pools_file).describe()) == ["first", "second"]
