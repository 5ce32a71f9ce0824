"""The asyncio store against a node that fails, or stays silent, on demand."""

import asyncio
import inspect
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import kvstrata
from kvstrata.store.client import Store
from kvstrata.store.dialer import Dialer
from kvstrata.store.errors import TimeoutError, UnavailableError, UsageError
from kvstrata.store.results import KeyInfo, Outcome
from kvstrata.store.retention import AsyncRetention, Retention
from tests.unit.store.fake_kernel import BUSY, CLOSED, FakeNode


@pytest.fixture
async def store(node: FakeNode) -> AsyncIterator[kvstrata.AsyncStore]:
    async with kvstrata.connect_async("kvstrata://pool:secret@host:1") as store:
        yield store


def public(kind: type) -> dict[str, object]:
    """The signature of each public method, and of what reads each property."""
    return {
        name: inspect.signature(getattr(member, "fget", member))
        for name, member in vars(kind).items()
        if not name.startswith("_")
    }


def test_is_called_as_the_blocking_store_is() -> None:
    blocking = public(Store)
    del blocking["open"]  # asyncio has no protocol for files.
    scan = inspect.signature(Store.scan)
    blocking["scan"] = scan.replace(return_annotation=AsyncIterator[KeyInfo])
    retain_many = inspect.signature(Store.retain_many)
    blocking["retain_many"] = retain_many.replace(return_annotation=AsyncRetention)
    assert public(kvstrata.AsyncStore) == blocking


def test_its_retention_is_called_as_the_blocking_one_is() -> None:
    assert public(AsyncRetention).keys() == public(Retention).keys()
    for name, member in public(Retention).items():
        assert public(AsyncRetention)[name] == member
        described = inspect.getdoc(getattr(AsyncRetention, name))
        assert described == f"See `Retention.{name}`."


def test_connects_as_the_blocking_store_does() -> None:
    blocking = dict(inspect.signature(kvstrata.connect).parameters)
    del blocking["spin"]  # A loop never spins.
    assert inspect.signature(kvstrata.connect_async).parameters == blocking


def test_every_method_says_where_it_is_described() -> None:
    own = {"close", "url", "transport"}  # Described where they are.
    for name in public(kvstrata.AsyncStore).keys() - own:
        assert inspect.getdoc(getattr(kvstrata.AsyncStore, name)) == f"See `Store.{name}`."
        assert inspect.getdoc(getattr(Store, name))


async def test_a_pipe_without_a_reader_does_not_hold_up_the_loop(
    store: kvstrata.AsyncStore, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    await store.put("key", b"value")
    copying = asyncio.create_task(store.get_file("key", pipe))
    async with asyncio.timeout(5):
        await asyncio.sleep(0.1)
        assert not copying.done()
        assert await asyncio.to_thread(pipe.read_bytes) == b"value"
        assert await copying == 5


async def test_a_value_round_trips(store: kvstrata.AsyncStore) -> None:
    assert (await store.put("key", b"value")).outcome is Outcome.CREATED
    assert await store.get("key") == b"value"
    assert await store.get_range("key", 1, 2) == b"al"
    buffer = bytearray(5)
    assert await store.get_into("key", buffer) == 5
    assert buffer == b"value"
    assert await store.append("key", b"!", at=5) == 6
    assert await store.exists("key")
    assert await store.put_many({"a": b"1"}) == [Outcome.CREATED]
    assert await store.get_many(["a", "absent"]) == [b"1", None]
    assert {info.key async for info in store.scan()} == {b"key", b"a"}
    assert await store.delete("key")


async def test_calls_share_one_connection(store: kvstrata.AsyncStore, node: FakeNode) -> None:
    await asyncio.gather(*(store.put(f"key{i}", b"") for i in range(50)))
    assert len(node.connections) == 1


async def test_awaiting_connects(node: FakeNode) -> None:
    store = await kvstrata.connect_async("kvstrata://host")
    assert len(node.connections) == 1
    await store.close()
    with pytest.raises(UsageError, match="closed"):
        await store.get("key")


@pytest.mark.usefixtures("node")
async def test_a_call_waits_for_another_that_connects_no_longer_than_its_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolved = threading.Event()

    def open_slowly(*arguments: Any) -> Any:  # noqa: ANN401
        assert resolved.wait(10)
        return at_once(*arguments)

    at_once = Dialer.open
    monkeypatch.setattr(Dialer, "open", open_slowly)
    store = kvstrata.connect_async("kvstrata://slowly.resolved")
    patient = asyncio.create_task(store.get("key"))
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError, match="another call was still connecting"):
        await store.get("key", timeout=0.01)
    resolved.set()
    assert await patient is None
    await store.close()


@pytest.mark.usefixtures("node")
async def test_connecting_waits_for_a_thread_no_longer_than_the_timeout() -> None:
    free = threading.Event()
    with ThreadPoolExecutor(1) as executor:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(executor)
        taken = loop.run_in_executor(None, free.wait, 10)
        store = kvstrata.connect_async("kvstrata://host")
        for call in (store.get("key", 0.01), store.get_into("key", bytearray(1), 0.01)):
            with pytest.raises(TimeoutError, match="no thread of the loop's executor was free"):
                await call
        free.set()
        assert await taken
        assert await store.get("key") is None
        await store.close()


async def test_busy_and_broken_connections_are_tried_again(
    store: kvstrata.AsyncStore, node: FakeNode
) -> None:
    node.faults.extend([BUSY, BUSY, CLOSED])
    assert await store.get("key") is None
    node.faults.append(CLOSED)
    with pytest.raises(UnavailableError):
        await store.put("key", b"")


async def test_a_silent_node_is_a_timeout_and_its_connection_is_not_used_again(
    store: kvstrata.AsyncStore, node: FakeNode
) -> None:
    node.faults.append("silent")
    with pytest.raises(TimeoutError):
        await store.get("key", timeout=0.01)
    assert node.connections[0].status == CLOSED
    assert await store.get("key") is None
    assert len(node.connections) == 2


async def test_a_timeout_leaves_others_on_the_connection_their_chance(
    store: kvstrata.AsyncStore, node: FakeNode
) -> None:
    node.faults.extend(["silent", "silent"])
    patient = asyncio.create_task(store.get("key"))
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await store.get("key", timeout=0.01)
    assert node.connections[0].status == 0
    node.connections[0].answer_silent()
    assert await patient is None
    assert node.connections[0].status == CLOSED


async def test_calls_that_time_out_together_all_say_so(
    store: kvstrata.AsyncStore, node: FakeNode
) -> None:
    node.faults.extend(["silent"] * 3)
    calls = [store.get("a", 0.01), store.get("b", 0.01), store.put("c", b"", timeout=0.01)]
    met = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(error) for error in met] == [TimeoutError] * 3


async def test_cancelling_a_call_disturbs_no_other(
    store: kvstrata.AsyncStore, node: FakeNode
) -> None:
    node.faults.extend(["silent", "silent"])
    cancelled, other = (asyncio.create_task(store.get("key")) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.sleep(0)
    node.connections[0].answer_silent()
    assert await other is None
    assert cancelled.cancelled()
    assert len(node.connections) == 1


async def test_after_cancellation_nobody_writes_into_the_callers_memory(
    store: kvstrata.AsyncStore, node: FakeNode
) -> None:
    await store.put("key", b"value")
    node.faults.append("silent")
    buffer = bytearray(5)
    task = asyncio.create_task(store.get_into("key", buffer))
    while node.requests[-1].connection is node.connections[0]:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # Closed before the call returned; the shared one is as it was.
    assert [connection.status for connection in node.connections] == [0, CLOSED]
    assert buffer == bytes(5)


async def test_filling_calls_reuse_their_connections(
    store: kvstrata.AsyncStore, node: FakeNode
) -> None:
    await store.put("key", b"value")
    for _ in range(5):
        await store.get_into("key", bytearray(5))
    assert len(node.connections) == 2


async def test_filling_calls_are_bounded(store: kvstrata.AsyncStore, node: FakeNode) -> None:
    await store.put("key", b"value")
    buffers = [bytearray(5) for _ in range(100)]
    await asyncio.gather(*(store.get_into("key", buffer) for buffer in buffers))
    assert all(buffer == b"value" for buffer in buffers)
    assert len(node.connections) <= 1 + 16


async def test_each_shard_has_its_connection(node: FakeNode) -> None:
    node.shard_count = 4
    async with kvstrata.connect_async("kvstrata://host") as store:
        await asyncio.gather(*(store.put(f"key{i}", b"") for i in range(100)))
    assert sorted(str(c.options["shard"]) for c in node.connections) == ["1", "2", "3", "None"]


async def test_files(store: kvstrata.AsyncStore, tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.write_bytes(bytes(range(256)) * 100)
    assert (await store.put_file("key", source)).size == 25_600
    assert await store.get_file("key", copy) == 25_600
    assert copy.read_bytes() == source.read_bytes()
    assert await store.get_file("absent", tmp_path / "none") is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "source"]
