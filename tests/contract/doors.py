"""The asyncio client behind the blocking client's methods, so that one suite holds both to it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from kvstrata.store.async_client import AsyncStore
from kvstrata.store.results import Transport


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Any) -> Any:  # noqa: ANN401
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


class DrivenStore:
    """Has every method of `AsyncStore`, but waits for the outcome."""

    def __init__(self, loop: LoopThread, connecting: Callable[[], AsyncStore]) -> None:
        self._loop = loop
        self._store: AsyncStore = loop.run(_opened(connecting))

    @property
    def transport(self) -> Transport:
        return self._store.transport

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)
        return lambda *args, **named: self._loop.run(_called(method, *args, **named))


async def _opened(connecting: Callable[[], AsyncStore]) -> AsyncStore:
    return await connecting()


async def _called(method: Callable[..., Any], *args: object, **named: object) -> object:
    result = method(*args, **named)
    if isinstance(result, AsyncIterator):
        return [item async for item in result]
    return await result
