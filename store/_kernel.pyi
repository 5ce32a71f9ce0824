"""Typed face of the extension module: the native node, and the native client connection.

The binding converts, releases the GIL and calls; it decides nothing. Times are milliseconds, sizes
bytes. A status is the number of
transport/PROTOCOL.md section 5, or one of the two that only a client sees: CLOSED and TIMED_OUT.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Self, final

from typing_extensions import Buffer

CLOSED: Final = 32  # The connection broke before the outcome was known.
# The caller's own timeout passed; the connection is closed, so the buffer is the caller's again.
TIMED_OUT: Final = 33

def version() -> str: ...
def uring_is_usable() -> bool:
    """Whether shards can wait for their connections with io_uring on this machine."""

def status_name(status: int) -> str: ...
def key_slot(key: Buffer) -> int:
    """The slot of a key, 0..16383 (PROTOCOL.md, "Slots and shards")."""

def chunk_checksum(data: Buffer) -> int: ...

class Operation:
    """One request and, once `done`, its outcomes. Holds its keys and buffers alive until then.

    `status` is the status of the whole; `message` a text where the node gave one. Lists have one
    element a key, in order.
    """

    done: bool
    status: int
    message: str
    statuses: list[int]
    status_set: int  # Bit n is set if some key's status is n.
    # What can be sent again without harm on a new connection: nothing of it has reached the wire.
    unsent: bool

@final
class Get(Operation):
    """GET or GET_RANGE of one key into a buffer, or into memory that `allocate(size)` returns once
    the size is known.

    Without either, the value becomes a `bytes` object in `value`.
    """

    def __init__(
        self,
        key: bytes | str,
        buffer: Buffer | None = None,
        *,
        allocate: Callable[[int], Buffer] | None = None,
        offset: int = 0,
        length: int | None = None,
    ) -> None: ...

    value: Buffer | None
    length: int  # Bytes moved.
    value_length: int  # Size of the whole value, also when TOO_SMALL.
    version: int
    attributes: bytes

@final
class GetMany(Operation):
    """GET of many keys, in capsules as large as the protocol allows and all in flight within the
    credits.
    """

    def __init__(
        self, keys: Sequence[bytes | str], buffers: Sequence[Buffer] | None = None
    ) -> None: ...

    values: list[bytes | None]  # Only without buffers.
    # Size of the whole value, also when TOO_SMALL; else None.
    lengths: list[int | None]

@final
class FileSource:
    """The first `length` bytes of a file, read while they are sent; keeps a descriptor of its own.

    The caller has read them once, for the checksums of pieces of the node's `chunk_bytes`. Bytes
    that are others by the time they are sent end the put with CORRUPT.
    """

    def __init__(self, descriptor: int, length: int, checksums: Sequence[int]) -> None: ...

@final
class Put(Operation):
    """PUT or APPEND of one value; checksums of memory are computed here."""

    def __init__(
        self,
        key: Buffer,
        value: Buffer | FileSource,
        *,
        ttl_ms: int = 0,
        if_absent: bool = False,
        append_at: int | None = None,
        attributes: bytes = b"",
    ) -> None: ...

    result: int  # WriteResult: 0 created, 1 replaced, 2 appended, 3 nothing done.
    value_length: int
    version: int

@final
class PutMany(Operation):
    def __init__(
        self,
        keys: Sequence[bytes | str],
        values: Sequence[Buffer],
        *,
        ttl_ms: int = 0,
        if_absent: bool = False,
    ) -> None: ...

    results: list[int]

@final
class KeysOnly(Operation):
    """EXISTS, DELETE, EXPIRE or PREFIX_LENGTH over many keys (or one); RELEASE or EXTEND over the
    handles of retentions, of 8 bytes each.
    """

    def __init__(self, opcode: int, keys: Sequence[bytes | str], *, ttl_ms: int = 0) -> None: ...

    prefix_length: int
    present: list[bool]  # Whether each key's status is OK.

@final
class Retain(Operation):
    """RETAIN of many keys, softly or hard."""

    def __init__(self, keys: Sequence[bytes | str], *, ttl_ms: int, hard: bool) -> None: ...

    handles: list[int]  # 0 where the key's status is not OK.

@final
class Stat(Operation):
    def __init__(self, key: bytes | str) -> None: ...

    location: int
    chunk_count: int
    value_length: int
    version: int
    ttl_left_ms: int
    attributes: bytes

@final
class Scan(Operation):
    def __init__(self, prefix: bytes | str, cursor: int, count: int) -> None: ...

    cursor: int
    keys: list[tuple[bytes, int]]  # Key and value length.

@final
class Admin(Operation):
    def __init__(self, name: str, payload: bytes) -> None: ...

    payload: bytes

@final
class Regions:
    """Memory of this process that nodes on the same host may reach: a store's."""

    def __init__(self) -> None: ...

@final
class Region(Buffer):
    """Memory that this process shares with nodes on its host: they copy values straight to and
    from it.

    It has the buffer protocol: `memoryview(region)`, `numpy.frombuffer(region, dtype)`,
    `torch.frombuffer(region, dtype=...)`; slices of those are reached as well. A child process
    after a fork has the same memory, not a copy.

    Raises:
        ValueError: `nbytes` is 0.
        MemoryError: there is not so much.
    """

    def __init__(self, regions: Regions, nbytes: int, closed: Callable[[], None]) -> None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def close(self) -> None:
        """No node may reach it from now on.

        Raises:
            BufferError: there are views of it, such as arrays.
        """

@final
class Connection:
    """One capsule connection of a client; used by one thread at a time.

    The same state machine serves blocking callers (`execute`) and event loops (`fileno`, `submit`,
    `progress`).
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        unix_path: str = "",
        trusts_any_owner: bool = False,
        regions: Regions | None = None,
        pool: str,
        secret: str,
        client_name: str,
        credits: int,
        shard: int | None,
        verify: bool,
        spin_us: int,
        timeout_ms: int,
    ) -> None:
        """Connect and exchange hellos, GIL released. Look at `status` and `message` afterwards:
        nothing is raised for a refusal.

        With `unix_path` it connects there, not by TCP. A secret is then shown to a node of root or
        of this user only, unless it `trusts_any_owner`. With `regions` it asks the node to share
        memory, which that may not grant: `shares_memory` tells.
        """

    status: int  # OK while usable.
    message: str
    credits: int
    shard: int
    shard_count: int
    chunk_bytes: int
    value_bytes_max: int
    node_id: bytes
    epoch: int
    rights: int
    pool_kind: int
    unix_path: str  # Where the node can be reached as well; "" if nowhere.
    stays_on_host: bool  # As far as addresses tell: a port may be forwarded.
    shares_memory: bool

    def execute(self, operations: Sequence[Operation], timeout_ms: int) -> None:
        """Submit all, then wait for all, GIL released. On a timeout the connection is closed and
        what is left becomes TIMED_OUT.
        """

    def execute_one(self, operation: Operation, timeout_ms: int) -> None:
        """The same for one, the short way."""

    def fileno(self) -> int: ...
    def submit(self, operation: Operation) -> None: ...
    def progress(self) -> list[Operation]:
        """Send and receive what goes without waiting; returns the operations that ended. After a
        fault all of them end as CLOSED.
        """

    def tend(self) -> None:
        """Tell the node of regions that were closed: with what is sent next."""

    @property
    def wants_write(self) -> bool: ...
    @property
    def unfinished(self) -> bool: ...  # Call progress() again, without waiting.
    @property
    def in_flight(self) -> int: ...
    def close(self) -> None:
        """Close the socket; operations in flight end as CLOSED and their buffers are not touched
        afterwards.
        """

    def abandon(self) -> None:
        """In a forked child: close the descriptor without a word to the peer."""

@final
class PoolOptions:
    """One pool as the native node holds it; secrets are (text, rights) pairs, rights as in the
    hello.
    """

    def __init__(
        self,
        name: str,
        *,
        immutable: bool,
        eviction: str,
        quota_bytes: int,
        ttl_ms_default: int,
        retained_bytes_max: int,
        secrets: Sequence[tuple[str, int]],
        open_rights: int,
    ) -> None: ...

@final
class NodeOptions:
    def __init__(
        self,
        *,
        host: str,
        port: int,
        shard_count: int,
        memory_bytes: int,
        populate_full: bool,
        huge_pages: str,
        spin_us: int,
        uring: bool,
        credits: int,
        connection_count_max: int,
        connection_bytes_max: int,
        buffer_bytes_max: int,
        minimum_rate: int,
        stall_ms_max: int,
    ) -> None: ...

@final
class AdminCall:
    """An administrative command parked in the node until `Node.complete` or its deadline.

    One of a Valkey client has `arguments`, the whole command with its name first, and is answered
    with a whole reply in `resp_version`; that is 0 for one of the capsule protocol.
    """

    call_id: int
    name: str
    payload: bytes
    pool: str
    rights: int
    peer: str
    arguments: list[bytes]
    resp_version: int
    client_id: int

@final
class Node:
    """A node's native half: shard threads, memory, listener. Every method is thread-safe."""

    def __init__(self, options: NodeOptions, pools: Sequence[PoolOptions]) -> None:
        """Take the memory and listen. Raises OSError (address in use) or ValueError (sizes)."""

    port: int
    node_id: bytes
    unix_path: str  # "" without one.

    def listen_unix(self, path: str) -> None:
        """Before the start: be reached under this path too. Raises OSError, in words."""

    def start(self) -> None: ...
    def stop(self, timeout_ms: int) -> bool:
        """Refuse new work, let transfers end, then close. False if the timeout cut some off."""

    def set_pool(self, pool: PoolOptions) -> str:
        """Create the pool or change what may change. Returns "" or the reason why not (a pool's
        kind never changes).
        """

    def drop_pool(self, name: str) -> str: ...
    def statistics(self) -> dict[str, Any]:
        """Counters since start; their names are listed in store/DESIGN.md.

        Each shard has `resp_commands`, by name of those that were called: calls, nanoseconds,
        failed, rejected, buckets (24, by power of two of a microsecond); and `errors`, how many
        were answered to Valkey clients, by code.
        """

    def connections(self) -> list[dict[str, Any]]:
        """Every open connection of either protocol, asked of the shards within a bound.

        client_id, shard, fd, peer and local (host:port; of a UNIX socket path:pid and path:0),
        transport ("tcp" or "unix"), peer_uid (-1 but for "unix"), pool, protocol ("resp" or
        "capsule"), age_s, idle_s, input_bytes, input_capacity, output_bytes, received_bytes,
        sent_bytes, commands (how many), name, lib_name, lib_version, last_command (in lower case; a
        subcommand's as "client|list"), resp_version, multi_count (-1: no MULTI), watch_count,
        no_evict, no_touch, replies_off.
        """

    def kill_connections(self, client_ids: Sequence[int]) -> int:
        """Close connections, each after the replies that are due to it. How many there were."""

    def slow_commands(self) -> list[dict[str, Any]]:
        """Slow commands of Valkey clients, the newest first: id, time_s (Unix), microseconds,
        arguments (shortened), peer, name, pool.
        """

    def clear_slow_commands(self) -> None: ...
    def set_slow_log(self, threshold_us: int, length_max: int) -> None:
        """Note commands that take at least so long, or none for -1; at first 10,000 and 128."""

    def latency_spikes(self) -> dict[str, list[tuple[int, int]]]:
        """By event up to 160 delays, oldest first: Unix second, milliseconds."""

    def clear_latency_spikes(self, events: Sequence[str]) -> int:
        """Forget the delays of these events. How many of them had any."""

    def set_latency_threshold(self, milliseconds: int) -> None:
        """Note delays of at least so long, or none for 0, as at first."""

    def admin_fileno(self) -> int:
        """Readable while administrative calls wait."""

    def next_admin_call(self) -> AdminCall | None: ...
    def complete(self, call: AdminCall, status: int, payload: bytes) -> None: ...

@final
class LoadDriver:
    """A load generator: many connections of one thread, each with `depth` commands in flight.

    Keys are `key_prefix` and 12 decimal digits, at random or in turn. Nothing is raised for a
    failure: look at `status`.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        pool: str,
        secret: str,
        verify: bool,
        timeout_ms: int,
        connection_count: int,
        depth: int,
        key_prefix: str,
        key_count: int,
        in_turn: bool,
        opcode: int,
        put_percent: int,
        value_bytes: int,
        command_count: int,
        seed: int,
    ) -> None: ...

    status: int  # OK unless connecting or a command failed; absent keys are no failure.
    message: str

    def advance(self, milliseconds: int) -> bool:
        """Drive the load for about so long, GIL released. True when it has ended."""

    def finish_early(self) -> None:
        """Begin no further commands; `advance` still completes those in flight."""

    def report(self) -> dict[str, Any]:
        """completed_count, absent_count, value_bytes, elapsed_ns, latency_buckets (as statistics),
        latency_sum_ns.
        """
