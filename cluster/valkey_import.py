"""The command `import`: copies the strings of a running Valkey into a pool.

```
page of keys -> what are they, how large -> strings in portions of some MiB -> put, with what is
             left of their time to live -> cursor and counters are saved -> next page
```
A run that is cut off, however hard, goes on with the page that it had begun: what of that was put
already is put again, with the value that it has by then.
"""

import hashlib
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvstrata.cluster.access import open_store, show_key
from kvstrata.cluster.import_source import STRING, Described, Found, ValkeySource
from kvstrata.cluster.import_state import Counts, Route, Starts, State, load_state
from kvstrata.store import limits
from kvstrata.store.client import Store
from kvstrata.store.errors import BatchError, DeniedError, Error, UnavailableError
from kvstrata.store.results import Outcome

_PAGE_KEY_COUNT: Final = 512
_PORTION_BYTES_MAX: Final = 32 << 20
_PUT_S_MAX: Final = 120.0  # Of a portion, also where the network is slow.
_GONE: Final = "none"
_SHOWN_BYTES_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do.

    Attributes:
        source: address of the Valkey, with credentials.
        target: URL of node and pool; None as for all commands.
        pattern: only keys of this pattern of Valkey's; empty: all.
        if_absent: whether keys that the pool has stay as they are.
        state_path: where to keep the state; None: a name made of source and target, here.
    """

    source: str
    target: str | None
    pattern: str
    if_absent: bool
    state_path: Path | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Told after every page.

    Attributes:
        key_count: keys that the source had at the start of this run.
        seconds: since the start of this run; `copied` and `copied_bytes` are of this run as well.
    """

    state: State
    key_count: int
    seconds: float
    copied: int
    copied_bytes: int


def run(plan: Plan, show: Callable[[Progress], None]) -> Progress:
    """Copy everything; returns what `show` was told last.

    Raises:
        UnavailableError: source or target is gone; the same command goes on later.
        UsageError: an address or the state is not right.
    """
    with ValkeySource(plan.source) as source, open_store(plan.target, _PUT_S_MAX) as store:
        route = Route(source.name, store.url, plan.pattern)
        path = plan.state_path or Path(_state_name(route))
        starts = Starts(source.run_id, str(store.info()["node_id"]))
        state = load_state(path, route, starts)
        state.save(path)  # Whether it can be is found out before anything is copied.
        before, before_bytes = state.counts.copied, state.counts.copied_bytes
        key_count, started = source.key_count(), time.monotonic()
        copier = _Copier(source, store, state.counts, if_absent=plan.if_absent)
        while True:
            state.cursor, keys = source.page(state.cursor, plan.pattern, _PAGE_KEY_COUNT)
            copier.copy(keys)
            progress = Progress(
                state,
                key_count,
                time.monotonic() - started,
                state.counts.copied - before,
                state.counts.copied_bytes - before_bytes,
            )
            show(progress)
            if state.cursor == 0:
                path.unlink(missing_ok=True)
                return progress
            state.save(path)


class _Copier:
    def __init__(
        self, source: ValkeySource, store: Store, counts: Counts, *, if_absent: bool
    ) -> None:
        self._source = source
        self._store = store
        self._counts = counts
        self._if_absent = if_absent

    def copy(self, keys: Sequence[bytes]) -> None:
        """Copy what of these keys are strings that a pool can hold; count the others."""
        self._counts.met += len(keys)
        wanted = [each for each in self._source.describe(keys) if self._can_be_copied(each)]
        for portion in _portions(wanted):
            found = list(self._source.read([each.key for each in portion]))
            self._counts.gone += found.count(None)
            self._put([each for each in found if each is not None])

    def _can_be_copied(self, each: Described) -> bool:
        if each.kind == _GONE:
            self._counts.gone += 1
            return False
        reason = ""
        if each.kind != STRING:
            reason = each.kind
        elif not each.key:
            reason = "empty key"
        elif len(each.key) > limits.KEY_BYTES_MAX:
            reason = f"key above {limits.KEY_BYTES_MAX} bytes"
        elif each.size > self._store.value_bytes_max:
            reason = f"value above {self._store.value_bytes_max} bytes"
        if reason:
            self._counts.skip(reason, _shown(each.key))
        return not reason

    def _put(self, found: Sequence[Found]) -> None:
        """Those without an expiry in one call, as a call has one time to live for all its keys."""
        lasting = [each for each in found if each.expires_at is None]
        if lasting:
            outcomes: Sequence[object]
            pairs = [(each.key, each.value) for each in lasting]
            try:
                outcomes = self._store.put_many(pairs, math.inf, self._if_absent)
            except BatchError as error:
                outcomes = error.outcomes
            for each, outcome in zip(lasting, outcomes, strict=True):
                self._count(each, outcome)
        for each in found:
            if each.expires_at is not None:
                self._put_expiring(each, each.expires_at)

    def _put_expiring(self, each: Found, expires_at: float) -> None:
        left = expires_at - time.monotonic()
        if left <= 0:
            self._counts.gone += 1
            return
        try:
            self._count(each, self._store.put(each.key, each.value, left, self._if_absent).outcome)
        except Error as error:
            self._count(each, error)

    def _count(self, each: Found, outcome: object) -> None:
        if isinstance(outcome, UnavailableError | DeniedError):
            raise outcome  # It is not about this key: the next would fare the same.
        if isinstance(outcome, Error):
            self._counts.fail(type(outcome).__name__.removesuffix("Error"), _shown(each.key))
        elif outcome == Outcome.EXISTED:
            self._counts.kept += 1
        else:
            self._counts.copied += 1
            self._counts.copied_bytes += len(each.value)


def _portions(wanted: Sequence[Described]) -> Iterator[list[Described]]:
    """In order, as many at a time as their values fit into memory that is bounded."""
    portion: list[Described] = []
    size = 0
    for each in wanted:
        if portion and size + each.size > _PORTION_BYTES_MAX:
            yield portion
            portion, size = [], 0
        portion.append(each)
        size += each.size
    if portion:
        yield portion


def _state_name(route: Route) -> str:
    """A name that differs wherever the route does, and tells of it."""
    parts = [route.source, route.target]
    if route.pattern:  # Patterns are told apart by marks that file names do not have.
        parts.append(hashlib.sha256(route.pattern.encode()).hexdigest()[:16])
    return "kvstrata-import-" + re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(parts)) + ".json"


def _shown(key: bytes) -> str:
    text = show_key(key[:_SHOWN_BYTES_MAX], as_hex=False)
    return text if len(key) <= _SHOWN_BYTES_MAX else f"{text}... ({len(key)} bytes)"
