"""The calls over many keys. One outcome a key, in order; what failed comes as one BatchError."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from kvstrata import _kernel
from kvstrata.store.buffers import Memory, as_sink, as_source, show
from kvstrata.store.call import Batch, Call, bits, built
from kvstrata.store.errors import Error, UsageError
from kvstrata.store.operations import (
    OPCODE_DELETE,
    OPCODE_EXISTS,
    OPCODE_EXPIRE,
    OPCODE_PREFIX_LENGTH,
    OUTCOMES,
    Key,
    ttl_ms,
)
from kvstrata.store.results import Outcome
from kvstrata.store.statuses import EXISTS, NOT_FOUND, OK, failure

T = TypeVar("T")
Pairs = Mapping[bytes, Memory] | Mapping[str, Memory] | Iterable[tuple[Key, Memory]]

_DONE_OR_MISSING: Final = bits(OK, NOT_FOUND)
_DONE_OR_EXISTED: Final = bits(OK, EXISTS)


def put_many(pairs: Pairs, ttl: float | None, if_absent: bool) -> Batch[_kernel.PutMany, Outcome]:
    """PUT of many values."""
    items = list(pairs.items() if isinstance(pairs, Mapping) else pairs)
    keys = as_keys([key for key, _ in items])
    values = [as_source(value) for _, value in items]
    milliseconds = ttl_ms(ttl)

    def explain(index: int, status: int, _result: Outcome) -> Error:
        size = values[index].nbytes
        return failure(status, f"put of {size} bytes under {show(keys[index])}", size=size)

    def make(indices: Sequence[int]) -> _kernel.PutMany:
        return _kernel.PutMany(
            chosen(keys, indices),
            chosen(values, indices),
            ttl_ms=milliseconds,
            if_absent=if_absent,
        )

    return Batch(
        "put_many",
        keys,
        make,
        lambda operation: [OUTCOMES[result] for result in operation.results],
        _DONE_OR_EXISTED,
        explain,
    )


def get_many(keys: Iterable[Key]) -> Batch[_kernel.GetMany, bytes | None]:
    """GET of many values into new memory."""
    names = as_keys(keys)
    return Batch(
        "get_many",
        names,
        lambda indices: _kernel.GetMany(chosen(names, indices)),
        lambda operation: operation.values,
        _DONE_OR_MISSING,
        safe=True,
    )


def get_many_into(
    keys: Iterable[Key], buffers: Iterable[Memory]
) -> Batch[_kernel.GetMany, int | None]:
    """GET of many values into the caller's memory, one buffer a key."""
    names = as_keys(keys)
    sinks = [as_sink(buffer) for buffer in buffers]
    if len(names) != len(sinks):
        raise UsageError(f"get_many_into takes one buffer a key, not {len(sinks)} for {len(names)}")

    def explain(index: int, status: int, size: int | None) -> Error:
        subject = f"get of {show(names[index])}"
        return failure(status, subject, size=size or 0, capacity=sinks[index].nbytes)

    return Batch(
        "get_many_into",
        names,
        lambda indices: _kernel.GetMany(chosen(names, indices), chosen(sinks, indices)),
        lambda operation: operation.lengths,
        _DONE_OR_MISSING,
        explain,
        safe=True,
        fills=True,
    )


def exists_many(keys: Iterable[Key]) -> Batch[_kernel.KeysOnly, bool]:
    """EXISTS of many keys."""
    return _present_many("exists_many", OPCODE_EXISTS, keys, safe=True)


def delete_many(keys: Iterable[Key]) -> Batch[_kernel.KeysOnly, bool]:
    """DELETE of many keys."""
    return _present_many("delete_many", OPCODE_DELETE, keys)


def expire_many(keys: Iterable[Key], seconds: float | None) -> Batch[_kernel.KeysOnly, bool]:
    """EXPIRE of many keys, all after the same time."""
    milliseconds = ttl_ms(math.inf if seconds is None else seconds)
    return _present_many("expire_many", OPCODE_EXPIRE, keys, milliseconds)


def prefix_length(keys: Iterable[Key]) -> Call[_kernel.KeysOnly, int]:
    """PREFIX_LENGTH: how many keys from the front exist without a gap."""
    names = as_keys(keys)
    subject = f"prefix_length of {len(names)} keys"

    def read(operation: _kernel.KeysOnly) -> int:
        if operation.status != OK:
            raise failure(operation.status, subject, operation.message)
        return operation.prefix_length

    return Call(
        lambda: built(lambda: _kernel.KeysOnly(OPCODE_PREFIX_LENGTH, names), names),
        read,
        lambda: subject,
        safe=True,
    )


def _present_many(
    name: str, opcode: int, keys: Iterable[Key], milliseconds: int = 0, *, safe: bool = False
) -> Batch[_kernel.KeysOnly, bool]:
    names = as_keys(keys)
    return Batch(
        name,
        names,
        lambda indices: _kernel.KeysOnly(opcode, chosen(names, indices), ttl_ms=milliseconds),
        lambda operation: operation.present,
        _DONE_OR_MISSING,
        safe=safe,
    )


def as_keys(keys: Iterable[Key]) -> list[Key]:
    """The keys as a list. What each one is only the operation looks at: there may be hundreds.

    Raises:
        UsageError: it is one key, not several.
    """
    if isinstance(keys, bytes | str):
        raise UsageError(f"a list of keys is wanted, not one key: pass [{show(keys)}]")
    return list(keys)


def chosen(items: Sequence[T], indices: Sequence[int]) -> Sequence[T]:
    """The items of these indices, which are in order."""
    if len(indices) == len(items):  # The usual case: the first try.
        return items
    return [items[index] for index in indices]
