"""Limits of open files: raised where they may be, and a bound on connections where not."""

import resource
from collections.abc import Callable

import pytest

from kvstrata.cluster.open_files import allow_connections, files_beside_connections
from kvstrata.store.errors import UsageError

OTHERS = files_beside_connections(2)
UNLIMITED = resource.RLIM_INFINITY

Pretend = Callable[[int, int], list[tuple[int, int]]]


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Pretend:
    """Sets the limits that this process seems to have; returns what they are set to later."""

    def set_limits(soft: int, hard: int) -> list[tuple[int, int]]:
        changes: list[tuple[int, int]] = []
        monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
        monkeypatch.setattr(resource, "setrlimit", lambda _, pair: changes.append(pair))
        return changes

    return set_limits


@pytest.mark.parametrize(
    ("soft", "hard", "room", "expected"),
    [
        (1024, 65_536, 5_000, [(5_000 + OTHERS, 65_536)]),
        (1024, UNLIMITED, 5_000, [(5_000 + OTHERS, UNLIMITED)]),
        (1024, 2_000, 2_000 - OTHERS, [(2_000, 2_000)]),
        (1024, 1024, 1024 - OTHERS, []),
        (65_536, 65_536, 5_000, []),
        (UNLIMITED, UNLIMITED, 5_000, []),
    ],
)
def test_as_far_as_it_may(
    pretend: Pretend, soft: int, hard: int, room: int, expected: list[tuple[int, int]]
) -> None:
    changes = pretend(soft, hard)
    assert allow_connections(5_000, 2) == room
    assert changes == expected


def test_no_room_at_all_is_told(pretend: Pretend) -> None:
    pretend(64, OTHERS)
    with pytest.raises(UsageError, match=f"may have {OTHERS} files open.*ulimit -n"):
        allow_connections(5_000, 2)


def test_where_it_is_forbidden_what_there_is_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 65_536))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert allow_connections(5_000, 2) == 1024 - OTHERS
