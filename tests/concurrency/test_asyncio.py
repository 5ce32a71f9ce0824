"""The asyncio store with hundreds of calls at a time, some of them cancelled."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import kvstrata
from kvstrata import LocalStore
from kvstrata.store.async_client import AsyncStore
from tests.concurrency.node_process import NodeProcess
from tests.contract.contents import check_described, content, described

MIB = 1 << 20
POISON = 0xA5


@pytest.fixture
async def opened(store: LocalStore) -> AsyncIterator[AsyncStore]:
    async with kvstrata.connect_async(store.node_url) as opened:
        yield opened


async def test_two_hundred_calls_at_once(opened: AsyncStore) -> None:
    sizes = [16, 300, 9_000, 70_000, 600_000]

    async def use(number: int) -> None:
        size = sizes[number % len(sizes)]
        await opened.put(f"{number}", described(size, number))
        buffer = bytearray(size)
        found, length, there = await asyncio.gather(
            opened.get(f"{number}"),
            opened.get_into(f"{number}", buffer),
            opened.exists(f"{number}"),
        )
        assert there
        assert length == size
        assert check_described(found or b"") == number
        assert check_described(buffer) == number

    await asyncio.gather(*(use(number) for number in range(200)))
    assert await opened.prefix_length(f"{number}" for number in range(200)) == 200


async def test_five_thousand_gets_in_flight(opened: AsyncStore) -> None:
    numbers = range(5_000)
    await opened.put_many((f"{number}", described(100, number)) for number in numbers)
    found = await asyncio.gather(*(opened.get(f"{number}") for number in numbers))
    assert [check_described(value or b"") for value in found] == list(numbers)


async def test_memory_of_a_cancelled_call_is_never_written_again(opened: AsyncStore) -> None:
    value = content(2 * MIB)
    await opened.put("k", value)
    choose = random.Random(5)
    poisoned: list[bytearray] = []

    async def read() -> None:
        buffer = bytearray(len(value))
        try:
            await opened.get_into("k", buffer)
        except asyncio.CancelledError:
            buffer[:] = bytes([POISON]) * len(buffer)
            poisoned.append(buffer)
        else:
            assert buffer == value

    readers = [asyncio.create_task(read()) for _ in range(60)]
    await asyncio.sleep(0)  # All have begun.
    while pending := [reader for reader in readers if not reader.done()]:
        choose.choice(pending).cancel()
        await asyncio.wait(pending, timeout=0.002, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*readers)
    assert len(poisoned) > 5
    # Later calls would drive whatever of the old ones were still under way.
    for _ in range(10):
        assert await opened.get("k") == value
    assert all(buffer == bytes([POISON]) * len(buffer) for buffer in poisoned)


async def test_cancelled_calls_of_all_sorts_harm_no_other(opened: AsyncStore) -> None:
    value = content(MIB)
    await opened.put_many({f"{i}": value for i in range(10)})
    choose = random.Random(7)
    tasks = [asyncio.create_task(_any_call(opened, i, choose)) for i in range(200)]
    await asyncio.sleep(0)
    cancelled = choose.sample(tasks, 100)
    for task in cancelled:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for task, result in zip(tasks, results, strict=True):
        assert task in cancelled or not isinstance(result, BaseException), result
    for i in range(200):
        found = await opened.get(f"new-{i}")
        assert found is None or check_described(found) == i
    assert await opened.get_many(f"{i}" for i in range(10)) == [value] * 10


async def _any_call(opened: AsyncStore, number: int, choose: random.Random) -> object:
    key = f"{number % 10}"
    match choose.randrange(4):
        case 0:
            return await opened.get(key)
        case 1:
            return await opened.put(f"new-{number}", described(50_000, number))
        case 2:
            return await opened.get_many([key, key])
        case _:
            return await opened.exists(key)


async def test_a_file_whose_put_is_given_up_is_let_go_when_the_put_ends(
    node: NodeProcess, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(content(16 * MIB))
    async with kvstrata.connect_async(node.url) as opened:
        with node.stopped():
            patient = asyncio.create_task(opened.exists("k"))
            with pytest.raises(kvstrata.TimeoutError):
                await opened.put_file("k", source, timeout=0.3)
            cancelled = asyncio.create_task(opened.put_file("k", source))
            await asyncio.sleep(0.1)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
        assert not await patient


async def test_a_hanging_node_and_a_dead_one(node: NodeProcess) -> None:
    async with kvstrata.connect_async(node.url) as opened:
        await opened.put("k", content(MIB))
        with node.stopped():
            calls = [
                opened.get("k", timeout=0.3),
                opened.get_into("k", bytearray(MIB), timeout=0.3),
                opened.put("k", content(30 * MIB), timeout=0.3),
            ]
            met = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 5)
            assert [type(error) for error in met] == [kvstrata.TimeoutError] * 3
        assert await opened.exists("k")
        node.kill()
        with pytest.raises(kvstrata.UnavailableError):
            await opened.get("k")
        await asyncio.to_thread(node.restart)
        assert await opened.get("k") is None
        assert (await opened.put("k", b"new")).outcome == "created"
