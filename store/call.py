"""One call of a store as data: how to build its operation, and what its outcome means.

The blocking and the asyncio store run the same calls; neither knows what an operation holds.
"""

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from kvstrata import _kernel
from kvstrata.store import buffers
from kvstrata.store.errors import BatchError, Error
from kvstrata.store.statuses import BUSY, CLOSING, OK, TOO_LARGE, TOO_SMALL, failure

O = TypeVar("O", bound=_kernel.Operation)  # noqa: E741
T = TypeVar("T")

# With these the connection or the node failed, not one key.
_FATES: Final = frozenset((_kernel.CLOSED, _kernel.TIMED_OUT, CLOSING))
# Of these each key has its own size, or buffer, to tell.
_SIZED: Final = frozenset((TOO_LARGE, TOO_SMALL))


class Call(Generic[O, T]):
    """A call of one operation.

    Args:
        build: makes a fresh operation for each try.
        read: the result of one that ended, or an exception raised.
        subject: what is attempted, for messages.
        key: whose shard should serve it; None: any.
        safe: whether it only reads, so that sending it twice does no harm.
        fills: whether it writes into memory of the caller, who may take it back at any time.
    """

    __slots__ = ("build", "fills", "key", "read", "safe", "subject")

    def __init__(
        self,
        build: Callable[[], O],
        read: Callable[[O], T],
        subject: Callable[[], str],
        *,
        key: bytes | None = None,
        safe: bool = False,
        fills: bool = False,
    ) -> None:
        self.build = build
        self.read = read
        self.subject = subject
        self.key = key
        self.safe = safe
        self.fills = fills

    def settle(self, operation: O) -> int:
        """Take in what has been decided. Returns the status that tells whether to try again."""
        return operation.status

    def result(self, operation: O) -> T:
        """The call's result, or its exception, from the operation of the last try."""
        return self.read(operation)

    def failed(self, status: int, message: str = "") -> Error:
        """The exception for a try that ended without an outcome."""
        return failure(status, self.subject(), message)


def built(make: Callable[[], O], keys: Sequence[bytes | str]) -> O:
    """An operation over keys that nobody has looked at yet.

    Raises:
        UsageError: a key is neither bytes nor str.
        TooLargeError: a key is too long.
    """
    try:
        return make()
    except buffers.REFUSALS:
        for key in keys:
            buffers.as_key(key)
        raise


def bits(*statuses: int) -> int:
    """A set of statuses, as `Operation.status_set` tells it."""
    return sum(1 << status for status in statuses)


class Batch(Call[O, list[T]]):
    """A call over many keys. Keys that met BUSY or a broken connection are tried again alone.

    Args:
        name: of the method, for messages.
        keys: all of them.
        make: an operation over the keys of these indices.
        values: one result a key from the operation, in order; of failed keys, what `explain` needs.
        outcomes: statuses that are results, not failures, as a set of bits.
        explain: the error of one key, from its index, status and element of `values`.
    """

    __slots__ = ("_explain", "_failures", "_outcomes", "_pending", "_results", "_values", "keys")

    def __init__(
        self,
        name: str,
        keys: Sequence[bytes | str],
        make: Callable[[Sequence[int]], O],
        values: Callable[[O], list[T]],
        outcomes: int,
        explain: Callable[[int, int, T], Error] | None = None,
        *,
        safe: bool = False,
        fills: bool = False,
    ) -> None:
        super().__init__(
            lambda: built(lambda: make(self._pending), keys),
            self._conclude,
            lambda: f"{name} of {len(keys)} keys",
            safe=safe,
            fills=fills,
        )
        self.keys = keys
        self._values = values
        self._outcomes = outcomes
        self._explain = explain or self._explain_plainly
        self._pending: Sequence[int] = range(len(keys))
        self._results: list[T] = []
        self._failures: dict[int, int] = {}

    def settle(self, operation: O) -> int:
        values = self._values(operation)
        kinds = operation.status_set
        if not kinds & ~self._outcomes and len(self._pending) == len(self.keys):
            self._results = values
            self._failures.clear()  # Of a try before, of the same keys.
            return operation.status
        if not self._results:
            self._results = list(values)
        again = []
        for index, status, value in zip(self._pending, operation.statuses, values, strict=True):
            self._failures.pop(index, None)
            self._results[index] = value
            if not bits(status) & self._outcomes:
                self._failures[index] = status
                if status in (BUSY, _kernel.CLOSED):
                    again.append(index)
        self._pending = again
        return BUSY if kinds & bits(BUSY) & ~self._outcomes else operation.status

    def _conclude(self, operation: O) -> list[T]:
        if not self._failures:
            if operation.status != OK:
                raise self.failed(operation.status, operation.message)
            return self._results
        kinds = set(self._failures.values())
        fate = next(iter(kinds & _FATES), None)
        alike = len(kinds) == 1 and len(self._failures) == len(self.keys)
        if fate is None and alike and kinds.isdisjoint(_SIZED):
            fate = kinds.pop()
        if fate is not None:
            raise self.failed(fate, operation.message)
        raise self._partly_failed()

    def _explain_plainly(self, index: int, status: int, _result: T) -> Error:
        return failure(status, f"key {buffers.show(self.keys[index])}")

    def _partly_failed(self) -> BatchError:
        failures = {
            index: self._explain(index, status, self._results[index])
            for index, status in sorted(self._failures.items())
        }
        outcomes = [failures.get(index, result) for index, result in enumerate(self._results)]
        first = next(iter(failures))
        return BatchError(
            f"{len(failures)} of the {self.subject()} failed, first at index {first}:"
            f" {failures[first]}",
            outcomes=outcomes,
            failures=failures,
        )
