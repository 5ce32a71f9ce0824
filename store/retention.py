"""Retentions: objects kept from eviction for a time, and the handles that prolong or end it."""

import contextlib
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, Self, TypeVar

from kvstrata import _kernel
from kvstrata.store import limits
from kvstrata.store.batch_operations import as_keys, chosen
from kvstrata.store.buffers import show
from kvstrata.store.call import Batch, Call, bits
from kvstrata.store.errors import BusyError, Error, TooLargeError, UnavailableError, UsageError
from kvstrata.store.operations import Key
from kvstrata.store.results import Retained
from kvstrata.store.statuses import BUSY, NOT_FOUND, OK, TOO_LARGE

O = TypeVar("O", bound=_kernel.Operation)  # noqa: E741
T = TypeVar("T")

# PROTOCOL.md, section 3.
_OPCODE_RELEASE: Final = 65
_OPCODE_EXTEND: Final = 66
_TTL_S_MAX: Final = limits.RETENTION_MS_MAX // 1000

_OUTCOMES: Final = {
    OK: Retained.RETAINED,
    NOT_FOUND: Retained.ABSENT,
    BUSY: Retained.BUSY,
    TOO_LARGE: Retained.BUSY,
}
_Found = list[tuple[int, int]]  # Status and handle of each key.


class _Run(Protocol):
    """`Store._run`."""

    def __call__(self, call: Call[O, T], timeout: float | None, /) -> T: ...


class _RunAsync(Protocol):
    """`AsyncStore._run`."""

    async def __call__(self, call: Call[O, T], timeout: float | None, /) -> T: ...


class _Handles:
    """What both kinds of retention are: outcomes, and how the node calls what it keeps."""

    def __init__(self, found: _Found) -> None:
        self.outcomes = [_OUTCOMES[status] for status, _ in found]
        # Each shard calls all that it keeps of a batch by one name.
        names = dict.fromkeys(handle for _, handle in found if handle)
        self._handles = [name.to_bytes(8, "little") for name in names]

    def _extending(self, ttl: float) -> Batch[_kernel.KeysOnly, bool]:
        return _on_handles("extend", _OPCODE_EXTEND, self._handles, _ttl_ms(ttl))

    def _releasing(self) -> Batch[_kernel.KeysOnly, bool]:
        return _on_handles("release", _OPCODE_RELEASE, self._handles, 0)

    def __repr__(self) -> str:
        count = self.outcomes.count(Retained.RETAINED)
        state = f"{count} of {len(self.outcomes)} keys" if self._handles else "released"
        return f"<{type(self).__name__} {state}>"


class Retention(_Handles):
    """Objects kept from eviction, by `Store.retain_many`. As a context manager: while in its block.

    It ends with its TTL, when it is released, and for each object when that is deleted,
    overwritten, or expires.

    Attributes:
        outcomes: what became of each key, in order.
    """

    def __init__(self, run: _Run, found: _Found) -> None:
        super().__init__(found)
        self._run = run

    def extend(self, ttl: float, timeout: float | None = None) -> bool:
        """Let it last for that many seconds from now, if that is longer than it would.

        Returns:
            Whether all of it was still there; False: it has ended, in part at least.
        """
        extending = self._extending(ttl)
        if not self._handles:
            return False
        present = self._run(extending, timeout)
        return all(present)

    def release(self, timeout: float | None = None) -> bool:
        """End it. Returns whether all of it was still there."""
        if not self._handles:
            return False
        present = self._run(self._releasing(), timeout)
        self._handles.clear()
        return all(present)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(UnavailableError):  # Then it ends with its TTL.
            self.release()


class AsyncRetention(_Handles):
    """Objects kept from eviction, by `AsyncStore.retain_many`. Otherwise as `Retention`.

    As a context manager: `async with await store.retain_many(keys, 30):`.
    """

    def __init__(self, run: _RunAsync, found: _Found) -> None:
        super().__init__(found)
        self._run = run

    async def extend(self, ttl: float, timeout: float | None = None) -> bool:
        """See `Retention.extend`."""
        extending = self._extending(ttl)
        if not self._handles:
            return False
        present = await self._run(extending, timeout)
        return all(present)

    async def release(self, timeout: float | None = None) -> bool:
        """See `Retention.release`."""
        if not self._handles:
            return False
        present = await self._run(self._releasing(), timeout)
        self._handles.clear()
        return all(present)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with contextlib.suppress(UnavailableError):
            await self.release()


def retain_many(
    keys: Iterable[Key], ttl: float, hard: bool
) -> Batch[_kernel.Retain, tuple[int, int]]:
    """RETAIN of many keys. Done twice it does no harm: the first ends with its TTL."""
    names = as_keys(keys)
    milliseconds = _ttl_ms(ttl)
    return Batch(
        "retain_many",
        names,
        lambda indices: _kernel.Retain(chosen(names, indices), ttl_ms=milliseconds, hard=hard),
        lambda operation: list(zip(operation.statuses, operation.handles, strict=True)),
        bits(*_OUTCOMES),
        safe=True,
    )


def hard_refusal(keys: Sequence[Key], found: _Found) -> Error | None:
    """What to raise where some of the keys could not be retained hard, which is a promise."""
    refused = [index for index, (status, _) in enumerate(found) if status in (BUSY, TOO_LARGE)]
    if not refused:
        return None
    first = next((index for index in refused if found[index][0] == TOO_LARGE), refused[0])
    subject = f"hard retention of {show(keys[first])}"
    if found[first][0] == TOO_LARGE:
        return TooLargeError(
            f"{subject}: its object is larger than the pool's retained_max: raise that. Nothing"
            " was retained"
        )
    return BusyError(
        f"{subject}, and of {len(refused) - 1} others of {len(keys)} keys: the pool's retained_max"
        f" is reached, or {limits.RETENTION_CLAIM_COUNT_MAX} keys are retained: release some, or"
        " raise retained_max. Nothing was retained"
    )


def _on_handles(
    name: str, opcode: int, handles: Sequence[bytes], milliseconds: int
) -> Batch[_kernel.KeysOnly, bool]:
    own = list(handles)
    return Batch(
        name,
        own,
        lambda indices: _kernel.KeysOnly(opcode, chosen(own, indices), ttl_ms=milliseconds),
        lambda operation: operation.present,
        bits(OK, NOT_FOUND),
        safe=True,
    )


def _ttl_ms(ttl: float) -> int:
    try:
        allowed = 0 < ttl <= _TTL_S_MAX
    except TypeError:  # No number at all.
        allowed = False
    if not allowed:
        raise UsageError(
            f"a retention lasts for more than 0 and at most {_TTL_S_MAX} seconds, not {ttl!r}:"
            " extend it for as long as it is needed"
        )
    return max(1, round(ttl * 1000))
