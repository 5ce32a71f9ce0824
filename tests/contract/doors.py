"""The asyncio client behind the blocking client's methods, so that one suite holds both to it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from kvstrata.store.async_client import AsyncStore
from kvstrata.store.retention import AsyncRetention


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


class Driven:
    """Has every method of what it drives, but waits for the outcome."""

    def __init__(self, loop: LoopThread, driven: object) -> None:
        self._loop = loop
        self._driven = driven

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        found = getattr(self._driven, name)
        if not callable(found):
            return found
        return lambda *args, **named: self._drive(_called(found, *args, **named))

    def _drive(self, coroutine: Any) -> Any:  # noqa: ANN401
        result = self._loop.run(coroutine)
        return Driven(self._loop, result) if isinstance(result, AsyncRetention) else result


class DrivenStore(Driven):
    """An `AsyncStore`, driven."""

    def __init__(self, loop: LoopThread, connecting: Callable[[], AsyncStore]) -> None:
        super().__init__(loop, loop.run(_opened(connecting)))


async def _opened(connecting: Callable[[], AsyncStore]) -> AsyncStore:
    return await connecting()


async def _called(method: Callable[..., Any], *args: object, **named: object) -> object:
    result = method(*args, **named)
    if isinstance(result, AsyncIterator):
        return [item async for item in result]
    return await result
