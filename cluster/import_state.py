"""How far an import has come: counters and a cursor, in a small file that outlives the process."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from kvstrata.store.errors import UsageError

_FORMAT: Final = 1
_NAMED_MAX: Final = 10


@dataclass
class Group:
    """Keys that were not copied for one reason: how many, and the first of them by name."""

    count: int = 0
    first_keys: list[str] = field(default_factory=list)

    def add(self, key: str) -> None:
        self.count += 1
        if len(self.first_keys) < _NAMED_MAX:
            self.first_keys.append(key)


@dataclass
class Counts:
    """What became of the keys that were met, over all runs of one import.

    Attributes:
        met: keys of any type; some may be met twice.
        copied: strings that were put.
        kept: strings that were left as they are in the pool, as was asked for.
        gone: keys that expired, were removed or became something else while they were read.
        skipped: by reason, such as a type of Valkey that is no string.
        failed: by the pool's refusal.
    """

    met: int = 0
    copied: int = 0
    copied_bytes: int = 0
    kept: int = 0
    gone: int = 0
    skipped: dict[str, Group] = field(default_factory=dict)
    failed: dict[str, Group] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Take what `asdict` made."""
        groups = {
            name: {reason: Group(**each) for reason, each in values[name].items()}
            for name in ("skipped", "failed")
        }
        return cls(**{**values, **groups})

    def skip(self, reason: str, key: str) -> None:
        self.skipped.setdefault(reason, Group()).add(key)

    def fail(self, reason: str, key: str) -> None:
        self.failed.setdefault(reason, Group()).add(key)


@dataclass(frozen=True, slots=True)
class Route:
    """What is copied where; a state is of one route."""

    source: str
    target: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Starts:
    """Which start of each server this is: a cursor means nothing to a source that was restarted,
    and a target that was has lost what was copied.
    """

    source_run: str
    target_node: str


@dataclass
class State:
    """One import.

    Attributes:
        cursor: where the source goes on; 0: at the beginning.
        anew: why an import that had begun begins anew; empty if it does not.
    """

    route: Route
    starts: Starts
    cursor: int = 0
    counts: Counts = field(default_factory=Counts)
    anew: str = ""

    def save(self, path: Path) -> None:
        """Replace the file whole, so that a process that is killed leaves the old or the new.

        Raises:
            UsageError: it cannot be written.
        """
        text = json.dumps(
            {
                "format": _FORMAT,
                "route": asdict(self.route),
                "starts": asdict(self.starts),
                "cursor": self.cursor,
                "counts": asdict(self.counts),
            }
        )
        draft = path.with_name(path.name + ".new")
        try:
            draft.write_text(text)
            os.replace(draft, path)
        except OSError as error:
            raise UsageError(
                f"the state of the import cannot be kept in {str(path)!r}: {error.strerror};"
                " choose another --state"
            ) from error


def load_state(path: Path, route: Route, starts: Starts) -> State:
    """The state that was left in a file, or that of an import that begins.

    Raises:
        UsageError: the file is of another import, or no state.
    """
    if not path.exists():
        return State(route, starts)
    try:
        kept = json.loads(path.read_text())
        if kept["format"] != _FORMAT:
            raise UsageError(f"{str(path)!r} has format {kept['format']}, and {_FORMAT} is known")
        kept_route, kept_starts = Route(**kept["route"]), Starts(**kept["starts"])
        state = State(kept_route, starts, int(kept["cursor"]), Counts.of(kept["counts"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{str(path)!r} does not hold the state of an import: {error}; remove it, or choose"
            " another --state"
        ) from error
    if kept_route != route:
        raise UsageError(
            f"{str(path)!r} is of the import of {kept_route.pattern or 'all keys'} from"
            f" {kept_route.source} to {kept_route.target}: remove it, or choose another --state"
        )
    if kept_starts.source_run != starts.source_run:
        return State(route, starts, anew=f"{route.source} was restarted since")
    if kept_starts.target_node != starts.target_node:
        return State(route, starts, anew=f"{route.target} was restarted since")
    return state
