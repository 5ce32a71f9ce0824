"""The calls of a store: arguments to native operations, and their outcomes to results.

Waits for nothing and knows no connection: the blocking and the asyncio store share it.
"""

import math
import operator
from collections.abc import Callable
from typing import Final, TypeVar

from kvstrata import _kernel
from kvstrata.store import tensors
from kvstrata.store.buffers import Memory, as_key, as_sink, as_source, show
from kvstrata.store.call import Call
from kvstrata.store.errors import Error, InternalError, UsageError
from kvstrata.store.payloads import Payload, pack, unpack
from kvstrata.store.results import (
    KeyInfo,
    ObjectStat,
    Outcome,
    PutResult,
    RangeResult,
)
from kvstrata.store.statuses import EXISTS, NOT_FOUND, OK, TOO_SMALL, failure

Key = bytes | str
T = TypeVar("T")

# PROTOCOL.md, section 3.
OPCODE_EXISTS: Final = 16
OPCODE_PREFIX_LENGTH: Final = 17
OPCODE_DELETE: Final = 18
OPCODE_EXPIRE: Final = 19
FOREVER_MS: Final = 2**64 - 1
TTL_S_MAX: Final = 10**10  # Some 300 years, as in the settings of a pool.
_TIERS: Final = {1: "dram"}
OUTCOMES: Final = (Outcome.CREATED, Outcome.REPLACED, Outcome.CREATED, Outcome.EXISTED)

# Keys asked for at a time: some 100 KB of reply with keys of 100 bytes.
_SCAN_PAGE_COUNT: Final = 1_000


def ttl_ms(ttl: float | None) -> int:
    """The wire's form of a TTL in seconds; None: the pool's default, infinity: never.

    Raises:
        UsageError: it is not above 0, or longer than 300 years.
    """
    if ttl is None:
        return 0
    try:
        allowed = 0 < ttl <= TTL_S_MAX or ttl == math.inf
    except TypeError:  # No number at all.
        allowed = False
    if not allowed:
        raise UsageError(
            f"a ttl is above 0 seconds and at most {TTL_S_MAX}, not {ttl!r}; None takes the"
            " pool's default, math.inf keeps the object forever"
        )
    return FOREVER_MS if math.isinf(ttl) else max(1, round(ttl * 1000))


def put(
    key: Key, value: Memory, ttl: float | None, if_absent: bool, attributes: bytes = b""
) -> Call[_kernel.Put, PutResult]:
    """PUT of one value."""
    name, source, milliseconds = as_key(key), as_source(value), ttl_ms(ttl)
    return Call(
        lambda: _kernel.Put(
            name, source, ttl_ms=milliseconds, if_absent=if_absent, attributes=attributes
        ),
        lambda operation: put_result(operation, name, source.nbytes),
        lambda: f"put of {show(name)}",
        key=name,
    )


def put_result(operation: _kernel.Put, key: bytes, size: int) -> PutResult:
    """What a finished put did."""
    if operation.status in (OK, EXISTS):
        return PutResult(OUTCOMES[operation.result], operation.value_length, operation.version)
    subject = f"put of {size} bytes under {show(key)}"
    raise failure(operation.status, subject, operation.message, size=size)


def append(key: Key, data: Memory, at: int) -> Call[_kernel.Put, int]:
    """APPEND; the result is the object's new length."""
    name, source = as_key(key), as_source(data)
    if not _is_offset(at):
        raise UsageError(
            f"at is the object's present length, 0 or more and below 2**64, not {at!r}"
        )

    def read(operation: _kernel.Put) -> int:
        if operation.status != OK:
            length, subject = operation.value_length, f"append to {show(name)} at {at}"
            raise failure(operation.status, subject, operation.message, size=length)
        return operation.value_length

    return Call(
        lambda: _kernel.Put(name, source, append_at=at),
        read,
        lambda: f"append to {show(name)} at {at}",
        key=name,
    )


def get(key: Key) -> Call[_kernel.Get, bytes | None]:
    """GET into new memory."""
    name = as_key(key)
    return _read(name, lambda: _kernel.Get(name), _bytes_of, fills=False)


def get_into(key: Key, buffer: Memory) -> Call[_kernel.Get, int | None]:
    """GET into the caller's memory; the result is the value's size."""
    name, sink = as_key(key), as_sink(buffer)
    return _read(
        name, lambda: _kernel.Get(name, sink), lambda operation: operation.length, sink.nbytes
    )


def get_range(key: Key, offset: int, length: int) -> Call[_kernel.Get, bytes | None]:
    """GET_RANGE into new memory."""
    name = as_key(key)
    _check_range(offset, length)
    return _read(
        name,
        lambda: _kernel.Get(name, offset=offset, length=length),
        _bytes_of,
        fills=False,
    )


def get_range_into(key: Key, offset: int, buffer: Memory) -> Call[_kernel.Get, RangeResult | None]:
    """GET_RANGE of as much as fits the caller's memory."""
    name, sink = as_key(key), as_sink(buffer)
    _check_range(offset, sink.nbytes)
    return _read(
        name,
        lambda: _kernel.Get(name, sink, offset=offset, length=sink.nbytes),
        lambda done: RangeResult(done.length, done.value_length, done.version),
        sink.nbytes,
    )


def get_tensor(key: Key, framework: str) -> Call[_kernel.Get, tensors.Array]:
    """GET into a new array or tensor with the dtype and shape it was put with."""
    name = as_key(key)
    library = tensors.Library(framework)
    return _read(
        name,
        lambda: _kernel.Get(name, allocate=library.allocate),
        lambda done: library.shaped(done.value, done.attributes, show(name)),
        fills=False,
    )


def _read(
    key: bytes,
    build: Callable[[], _kernel.Get],
    found: Callable[[_kernel.Get], T],
    capacity: int = 0,
    *,
    fills: bool = True,
) -> Call[_kernel.Get, T | None]:
    def read(operation: _kernel.Get) -> T | None:
        if operation.status == OK:
            return found(operation)
        if operation.status == NOT_FOUND:
            return None
        raise get_failure(operation, key, capacity)

    return Call(build, read, lambda: f"get of {show(key)}", key=key, safe=True, fills=fills)


def get_failure(operation: _kernel.Get, key: bytes, capacity: int) -> Error:
    """The exception of a get that neither found nor missed."""
    size = operation.value_length if operation.status == TOO_SMALL else 0
    subject = f"get of {show(key)}"
    return failure(operation.status, subject, operation.message, size=size, capacity=capacity)


def _bytes_of(operation: _kernel.Get) -> bytes:
    value = operation.value
    if not isinstance(value, bytes):
        raise InternalError(f"a get ended without its value, but with {value!r}: please report")
    return value


def _check_range(offset: int, length: int) -> None:
    if not (_is_offset(offset) and _is_offset(length)):
        raise UsageError(
            "offset and length are whole numbers, 0 or more and below 2**64, not"
            f" {offset!r} and {length!r}"
        )


def _is_offset(value: object) -> bool:
    try:
        return 0 <= operator.index(value) < 2**64  # type: ignore[arg-type]
    except TypeError:
        return False


def exists(key: Key) -> Call[_kernel.KeysOnly, bool]:
    """EXISTS of one key."""
    return _present("exists", OPCODE_EXISTS, key, safe=True)


def delete(key: Key) -> Call[_kernel.KeysOnly, bool]:
    """DELETE of one key; the result tells whether it was there."""
    return _present("delete", OPCODE_DELETE, key)


def expire(key: Key, seconds: float | None) -> Call[_kernel.KeysOnly, bool]:
    """EXPIRE of one key; None: never."""
    return _present("expire", OPCODE_EXPIRE, key, ttl_ms(math.inf if seconds is None else seconds))


def _present(
    name: str, opcode: int, key: Key, milliseconds: int = 0, *, safe: bool = False
) -> Call[_kernel.KeysOnly, bool]:
    key = as_key(key)

    def read(operation: _kernel.KeysOnly) -> bool:
        status = operation.statuses[0] if operation.status == OK else operation.status
        if status in (OK, NOT_FOUND):
            return status == OK
        raise failure(status, f"{name} of {show(key)}", operation.message)

    return Call(
        lambda: _kernel.KeysOnly(opcode, [key], ttl_ms=milliseconds),
        read,
        lambda: f"{name} of {show(key)}",
        key=key,
        safe=safe,
    )


def stat(key: Key) -> Call[_kernel.Stat, ObjectStat | None]:
    """STAT of one key."""
    name = as_key(key)

    def read(operation: _kernel.Stat) -> ObjectStat | None:
        if operation.status == NOT_FOUND:
            return None
        if operation.status != OK:
            raise failure(operation.status, f"stat of {show(name)}", operation.message)
        layout = tensors.decode(operation.attributes)
        left = operation.ttl_left_ms
        return ObjectStat(
            size=operation.value_length,
            version=operation.version,
            ttl=None if left == FOREVER_MS else left / 1000,
            chunk_count=operation.chunk_count,
            tier=_TIERS.get(operation.location, f"unknown ({operation.location})"),
            dtype=layout.dtype if layout else None,
            shape=layout.shape if layout else None,
        )

    return Call(
        lambda: _kernel.Stat(name), read, lambda: f"stat of {show(name)}", key=name, safe=True
    )


def scan(prefix: Key, cursor: int) -> Call[_kernel.Scan, tuple[list[KeyInfo], int]]:
    """One page of a SCAN; the results are its keys and the next cursor, 0 at the end."""
    name = as_key(prefix)

    def read(operation: _kernel.Scan) -> tuple[list[KeyInfo], int]:
        if operation.status != OK:
            raise failure(operation.status, f"scan of {show(name)}", operation.message)
        return [KeyInfo(key, size) for key, size in operation.keys], operation.cursor

    return Call(
        lambda: _kernel.Scan(name, cursor, _SCAN_PAGE_COUNT),
        read,
        lambda: f"scan of {show(name)}",
        safe=True,
    )


def admin(name: str, payload: Payload | None) -> Call[_kernel.Admin, Payload]:
    """One administrative command."""
    try:
        packed = pack(payload or {})
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(
            f"the payload of the command {name} is not of plain values: {error}"
        ) from error

    def read(operation: _kernel.Admin) -> Payload:
        try:
            answer = unpack(operation.payload)
        except ValueError as error:
            raise InternalError(
                f"the answer to the command {name} cannot be read: {error}: please report"
            ) from error
        if operation.status != OK:
            text = answer.get("error") or operation.message
            raise failure(operation.status, f"the command {name}", str(text or ""))
        return answer

    return Call(lambda: _kernel.Admin(name, packed), read, lambda: f"the command {name}")
