"""A node from outside: what it is, and what it does from one look to the next."""

import contextlib
import select
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from rich.console import Group, RenderableType
from rich.live import Live

from kvstrata.cluster.access import open_store
from kvstrata.cluster.counters import Counters, hit_ratio
from kvstrata.cluster.output import console, facts, print_json, table
from kvstrata.store.client import Store
from kvstrata.store.errors import DeniedError, UsageError
from kvstrata.store.histogram import merged, quantile_us
from kvstrata.store.payloads import Payload
from kvstrata.store.units import format_size, parse_duration


def info(address: str | None, *, as_json: bool) -> None:
    """Show the node, and its memory and pools to who may see them."""
    with open_store(address) as store:
        node = store.info()
        transport = store.transport
        try:
            counters = Counters.of(store.admin("statistics"))
        except DeniedError:
            counters = None
    if as_json:
        statistics = asdict(counters) if counters else None
        print_json({**node, "transport": transport._asdict(), "statistics": statistics})
        return
    screen = console()
    known = [*_node_facts(node), ("transport", f"{transport.name}: {transport.reason}")]
    if counters is None:
        screen.print(facts(known))
        screen.print("\nMemory and pools are shown to an admin secret of the pool default.")
        return
    screen.print(facts([*known, *_memory_facts(counters)]))
    screen.print()
    screen.print(_pool_table(counters))


def top(address: str | None, interval: str, *, once: bool, as_json: bool) -> None:
    """Show rates, again and again on a terminal, else once."""
    try:
        seconds = parse_duration(interval)
    except ValueError as error:
        raise UsageError(f"--interval: {error}") from error
    if not 0.1 <= seconds <= 3600:
        raise UsageError(f"--interval is 100ms to 1h, not {interval}")
    screen = console()
    with open_store(address) as store:
        if once or as_json or not screen.is_terminal:
            look = _Look.at(store)
            time.sleep(seconds)
            rates = _Look.at(store).since(look)
            if as_json:
                print_json(asdict(rates))
            else:
                screen.print(_frame(store.info(), rates))
            return
        with (
            contextlib.suppress(KeyboardInterrupt),
            _key_pressed() as pressed,
            Live(console=screen, screen=True, auto_refresh=False) as live,
        ):
            look = _Look.at(store)
            while not pressed(seconds):
                before, look = look, _Look.at(store)
                live.update(_frame(store.info(), look.since(before)), refresh=True)


@dataclass(frozen=True, slots=True)
class Rates:
    """What happened between two looks, per second where it is a rate.

    Attributes:
        seconds: between the looks.
        pools: rates by pool: gets, get_bytes, puts, put_bytes, evictions, expirations; and
            hit_ratio, null without a get.
        latency_us: by kind of operation, the bound that half, and 99 %, of them kept.
        counters: as they are at the second look.
    """

    seconds: float
    pools: dict[str, dict[str, float | None]]
    latency_us: dict[str, tuple[float, float]]
    counters: Counters


_RATED = ("gets", "get_bytes", "puts", "put_bytes", "evictions", "expirations")


@dataclass(frozen=True, slots=True)
class _Look:
    counters: Counters
    when: float

    @classmethod
    def at(cls, store: Store) -> "_Look":
        return cls(Counters.of(store.admin("statistics")), time.monotonic())

    def since(self, before: "_Look") -> Rates:
        seconds = self.when - before.when
        pools = {}
        for name, pool in self.counters.pools.items():
            earlier = before.counters.pools.get(name, {})
            change = {each: pool[each] - earlier.get(each, 0) for each in (*_RATED, "get_hits")}
            pools[name] = {
                **{each: change[each] / seconds for each in _RATED},
                "hit_ratio": hit_ratio(change),
            }
        return Rates(seconds, pools, self._latency_since(before), self.counters)

    def _latency_since(self, before: "_Look") -> dict[str, tuple[float, float]]:
        found = {}
        for kind in self.counters.shards[0]["latency"]:
            later, earlier = _histogram(self.counters, kind), _histogram(before.counters, kind)
            counts = [b - a for a, b in zip(earlier, later, strict=True)]
            if sum(counts):
                found[kind] = (quantile_us(counts, 0.5), quantile_us(counts, 0.99))
        return found


def _histogram(counters: Counters, kind: str) -> list[int]:
    return merged(shard["latency"][kind]["buckets"] for shard in counters.shards)


def _node_facts(node: Payload) -> list[tuple[str, object]]:
    return [
        ("version", node["version"]),
        ("node", node["node_id"]),
        ("address", f"{node['host']} port {node['port']}"),
        ("UNIX socket", node["unix_path"] or f"none: {node['unix_path_missing']}"),
        ("shards", node["shards"]),
        ("up for", _duration(node["uptime"])),
    ]


def _memory_facts(counters: Counters) -> list[tuple[str, object]]:
    memory = counters.memory
    total, used = memory["memory_bytes"], counters.arena_used_bytes
    beside = ("index_bytes", "bookkeeping_bytes", "held_bytes")
    return [
        ("memory", f"{format_size(used)} of {format_size(total)} used ({used / total:.1%})"),
        ("huge pages", memory["huge_pages"]),
        ("index etc.", format_size(sum(counters.of_shards(name) for name in beside))),
        ("connections", ", ".join(f"{n:,} {t}" for t, n in counters.connections_open.items())),
    ]


def _pool_table(counters: Counters) -> RenderableType:
    rows = [
        (
            name,
            "immutable" if pool["immutable"] else "mutable",
            f"{pool['objects']:,}",
            format_size(pool["bytes"]),
            format_size(pool["quota_bytes"]) if pool["quota_bytes"] else "all",
            f"{pool['gets']:,}",
            _percent(hit_ratio(pool)),
            f"{pool['puts']:,}",
            f"{pool['evictions']:,}",
            f"{pool['retained_objects']:,}",
            format_size(pool["retained_bytes"]),
        )
        for name, pool in counters.pools.items()
    ]
    columns = ("pool", "kind", ">objects", ">size", ">quota", ">gets", ">hits", ">puts")
    return table(*columns, ">evictions", ">retained", ">their size", rows=rows)


def _frame(node: Payload, rates: Rates) -> RenderableType:
    rows = [
        (
            name,
            f"{rate['gets'] or 0:,.0f}",
            _percent(rate["hit_ratio"]),
            f"{format_size(round(rate['get_bytes'] or 0))}/s",
            f"{rate['puts'] or 0:,.0f}",
            f"{format_size(round(rate['put_bytes'] or 0))}/s",
            f"{rate['evictions'] or 0:,.0f}",
            f"{rate['expirations'] or 0:,.0f}",
        )
        for name, rate in rates.pools.items()
    ]
    pools = table(
        *("pool", ">gets/s", ">hits", ">read", ">puts/s", ">written", ">evicted/s", ">expired/s"),
        rows=rows,
    )
    latency = table(
        *("operation", ">half below", ">99 % below"),
        rows=[
            (kind, f"{half:,.0f} us", f"{most:,.0f} us")
            for kind, (half, most) in rates.latency_us.items()
        ],
    )
    head = facts([*_node_facts(node), *_memory_facts(rates.counters)])
    return Group(head, "", pools, "", latency)


def _percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1%}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


@contextlib.contextmanager
def _key_pressed() -> Iterator[Callable[[float], bool]]:
    """Waits so long for the key q; without a terminal to read from it only waits."""
    if not sys.stdin.isatty():
        nobody = threading.Event()
        yield nobody.wait
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield (
            lambda seconds: (
                bool(select.select([descriptor], [], [], seconds)[0]) and sys.stdin.read(1) in "qQ"
            )
        )
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
