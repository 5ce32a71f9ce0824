"""The asyncio clients of valkey-py and redis-py."""

import asyncio
import importlib
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio


@pytest.fixture(params=["valkey", "redis"])
def library(request: pytest.FixtureRequest) -> ModuleType:
    pytest.importorskip(request.param)
    return importlib.import_module(f"{request.param}.asyncio")


@pytest_asyncio.fixture
async def client(library: ModuleType, port: int) -> AsyncIterator[Any]:
    kind = library.Valkey if library.__name__.startswith("valkey") else library.Redis
    async with kind(host="127.0.0.1", port=port, protocol=3, socket_timeout=10) as connected:
        yield connected


async def test_many_commands_at_once(client: Any) -> None:  # noqa: ANN401
    await asyncio.gather(*(client.set(f"k{n}", n) for n in range(100)))
    values = await asyncio.gather(*(client.get(f"k{n}") for n in range(100)))
    assert values == [b"%d" % n for n in range(100)]
    clients = await client.client_list()
    assert len(clients) > 50


async def test_pipeline_and_scan(client: Any) -> None:  # noqa: ANN401
    async with client.pipeline(transaction=False) as pipeline:
        for n in range(500):
            pipeline.set(f"k{n}", n)
        assert await pipeline.execute() == [True] * 500
    assert len({key async for key in client.scan_iter(match="k*")}) == 500


async def test_transactions_that_retry_lose_no_increment(client: Any) -> None:  # noqa: ANN401
    async def set_to_next(pipe: Any) -> None:  # noqa: ANN401
        now = int(await pipe.get("counter") or 0)
        pipe.multi()
        pipe.set("counter", now + 1)

    await asyncio.gather(*(client.transaction(set_to_next, "counter") for _ in range(20)))
    assert await client.get("counter") == b"20"


async def test_a_cancelled_command_spoils_no_other(client: Any) -> None:  # noqa: ANN401
    await client.mset({"large": bytes(4 << 20), "small": "value"})
    for _ in range(5):
        reading = asyncio.create_task(client.get("large"))
        await asyncio.sleep(0.001)
        reading.cancel()
        assert await client.get("small") == b"value"
        await asyncio.gather(reading, return_exceptions=True)
