"""The command `bench`: loads a node, and says how fast it answered."""

import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.progress import Progress

from kvstrata import _kernel
from kvstrata.cluster.access import settings
from kvstrata.cluster.exit_codes import NotFoundError
from kvstrata.cluster.output import console, facts, print_json
from kvstrata.store import host_memory, url
from kvstrata.store.client import Store
from kvstrata.store.errors import UsageError
from kvstrata.store.histogram import quantile_us
from kvstrata.store.statuses import OK, failure
from kvstrata.store.units import format_size, parse_size

# PROTOCOL.md, section 3.
_OPCODES: Final = {"get": 1, "put": 3, "exists": 16, "mixed": 1}
_MIXED_PUT_PERCENT: Final = 10
_SLICE_MS: Final = 100
_SECONDS_DEFAULT: Final = 5.0
_COUNT_UNBOUNDED: Final = 1 << 62
_KEY_DIGITS: Final = 12
_REMOVED_AT_ONCE: Final = 4096


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured.

    Attributes:
        value_bytes_per_s: read and written.
        latency_us_p50: bound that half of the commands kept, to a factor of two; likewise p99.
    """

    operation: str
    size_bytes: int
    connections: int
    depth: int
    key_count: int
    operations: int
    seconds: float
    operations_per_s: float
    value_bytes_per_s: float
    latency_us_mean: float
    latency_us_p50: float
    latency_us_p99: float


def run(
    address: str | None,
    operation: str,
    *,
    size: str,
    connections: int,
    depth: int,
    count: int | None,
    seconds: float | None,
    key_count: int,
    key_prefix: str | None,
    as_json: bool,
) -> None:
    """Measure one operation and print the result.

    Raises:
        NotFoundError: keys were absent, though `key_prefix` promised them.
        UsageError: the operation is unknown, an argument is not right, or the values would take
            more memory than the node or this machine has.
    """
    if operation not in _OPCODES:
        raise UsageError(f"--operation is {', '.join(_OPCODES)}, not {operation!r}")
    if count is not None and seconds is not None:
        raise UsageError("give either --count or --seconds, not both")
    try:
        size_bytes = parse_size(size)
    except ValueError as error:
        raise UsageError(f"--size: {error}") from error
    target = url.parse(settings(client={"url": address}).config.client.url)
    own_prefix = f"kvstrata-bench-{secrets.token_hex(4)}-"
    prefix = own_prefix if key_prefix is None else key_prefix
    load = _Load(target, connections, depth, prefix, key_count)
    with Store(target) as store, _ended_in_order():
        reads = operation in ("get", "mixed")
        if key_prefix is not None and reads:
            size_bytes = max(size_bytes, _size_of_first(store, prefix))
        _check_size(size_bytes, load, store.value_bytes_max)
        try:
            if key_prefix is None and operation != "put":
                load.drive("put", size_bytes, "filling", count=key_count, in_turn=True)
            limit = _SECONDS_DEFAULT if count is None and seconds is None else seconds
            report = load.drive(operation, size_bytes, operation, count=count, seconds=limit)
        finally:
            if key_prefix is None:
                _remove(store, prefix, key_count)
    result = _result(operation, size_bytes, load, report)
    if as_json:
        print_json(asdict(result))
    else:
        console().print(facts(_words(result)))
    if operation != "put" and report["absent_count"]:
        remedy = (
            "they did not fit the pool: take a smaller --key-count or --size"
            if key_prefix is None
            else f"put {key_count} of them first, or leave out --key-prefix"
        )
        raise NotFoundError(
            f"{report['absent_count']} of {report['completed_count']} keys {prefix}... were"
            f" absent: {remedy}"
        )


@dataclass(frozen=True, slots=True)
class _Load:
    target: url.Target
    connections: int
    depth: int
    key_prefix: str
    key_count: int

    def drive(
        self,
        operation: str,
        size_bytes: int,
        name: str,
        *,
        count: int | None = None,
        seconds: float | None = None,
        in_turn: bool = False,
    ) -> dict[str, Any]:
        """Run a load to its end, with a bar on a terminal; returns the driver's report."""
        driver = _kernel.LoadDriver(
            host=self.target.host,
            port=self.target.port,
            pool=self.target.pool,
            secret=self.target.secret,
            verify=self.target.verify,
            timeout_ms=round(self.target.timeout * 1000),
            connection_count=self.connections,
            depth=self.depth,
            key_prefix=self.key_prefix,
            key_count=self.key_count,
            in_turn=in_turn,
            opcode=_OPCODES[operation],
            put_percent=_MIXED_PUT_PERCENT if operation == "mixed" else 0,
            value_bytes=size_bytes,
            command_count=_COUNT_UNBOUNDED if count is None else count,
            seed=1,
        )
        screen = console(stderr=True)
        with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
            task = bar.add_task(name, total=seconds if count is None else count)
            _until_ended(driver, seconds, lambda done: bar.update(task, completed=done))
        if driver.status != OK:
            raise failure(driver.status, f"the load on {self.target}", driver.message)
        return driver.report()


def _until_ended(
    driver: _kernel.LoadDriver, seconds: float | None, show: Callable[[float], None]
) -> None:
    started = time.monotonic()
    while not driver.advance(_SLICE_MS):
        elapsed = time.monotonic() - started
        show(driver.report()["completed_count"] if seconds is None else elapsed)
        if seconds is not None and elapsed + _SLICE_MS / 1000 > seconds:
            driver.advance(max(1, round((seconds - elapsed) * 1000)))
            driver.finish_early()


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let SIGTERM end the run as Ctrl-C does: by an exception, so that its keys are removed."""

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)  # As shells tell it.

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_size(size_bytes: int, load: _Load, value_bytes_max: int) -> None:
    if size_bytes > value_bytes_max:
        raise UsageError(
            f"--size: the node could hold no value above {format_size(value_bytes_max)}, and"
            f" {format_size(size_bytes)} are asked for"
        )
    # Each command in flight has memory of its own; the other half is for the node and the rest.
    wanted = load.connections * load.depth * size_bytes
    allowed = host_memory.available_memory_bytes() // 2
    if wanted > allowed:
        raise UsageError(
            f"{load.connections} connections with {load.depth} values of {format_size(size_bytes)}"
            f" in flight take {format_size(wanted)}, which is more than half of the memory that is"
            f" available here ({format_size(allowed)}): take a smaller --size, --depth or"
            " --connections"
        )


def _size_of_first(store: Store, prefix: str) -> int:
    status = store.stat(f"{prefix}{0:0{_KEY_DIGITS}}")
    return 0 if status is None else status.size


def _remove(store: Store, prefix: str, key_count: int) -> None:
    for first in range(0, key_count, _REMOVED_AT_ONCE):
        numbers = range(first, min(first + _REMOVED_AT_ONCE, key_count))
        store.delete_many(f"{prefix}{number:0{_KEY_DIGITS}}" for number in numbers)


def _result(operation: str, size_bytes: int, load: _Load, report: dict[str, Any]) -> Result:
    seconds = report["elapsed_ns"] / 1e9
    completed = report["completed_count"]
    return Result(
        operation=operation,
        size_bytes=size_bytes,
        connections=load.connections,
        depth=load.depth,
        key_count=load.key_count,
        operations=completed,
        seconds=seconds,
        operations_per_s=completed / seconds,
        value_bytes_per_s=report["value_bytes"] / seconds,
        latency_us_mean=report["latency_sum_ns"] / 1e3 / max(1, completed),
        latency_us_p50=quantile_us(report["latency_buckets"], 0.5),
        latency_us_p99=quantile_us(report["latency_buckets"], 0.99),
    )


def _words(result: Result) -> list[tuple[str, object]]:
    return [
        ("operation", f"{result.operation}, values of {format_size(result.size_bytes)}"),
        ("load", f"{result.connections} connections, {result.depth} commands in flight on each"),
        ("done", f"{result.operations:,} operations in {result.seconds:.2f} s"),
        ("rate", f"{result.operations_per_s:,.0f} operations/s"),
        ("bytes", f"{format_size(round(result.value_bytes_per_s))}/s"),
        (
            "latency",
            f"{result.latency_us_mean:,.0f} us on average; half below"
            f" {result.latency_us_p50:,.0f} us, 99 % below {result.latency_us_p99:,.0f} us",
        ),
    ]
