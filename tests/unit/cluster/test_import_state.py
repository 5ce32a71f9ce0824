"""The state of an import: what it keeps, and when it means nothing any more."""

from pathlib import Path

import pytest

from kvstrata.cluster.import_state import Counts, Route, Starts, State, load_state
from kvstrata.store.errors import UsageError

ROUTE = Route("valkey://a:1", "kvstrata://default@b:2", "")
STARTS = Starts("run", "node")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def saved(path: Path) -> State:
    counts = Counts(met=9, copied=5, copied_bytes=500)
    for number in range(12):
        counts.skip("hash", f"h{number}")
    counts.fail("NoSpace", "big")
    state = State(ROUTE, STARTS, 2**63 + 1, counts)
    state.save(path)
    return state


def test_a_state_is_found_again(path: Path) -> None:
    state = saved(path)
    assert load_state(path, ROUTE, STARTS) == state
    assert state.counts.skipped["hash"].count == 12
    assert state.counts.skipped["hash"].first_keys == [f"h{number}" for number in range(10)]
    assert list(path.parent.iterdir()) == [path]


def test_without_a_file_it_begins(path: Path) -> None:
    assert load_state(path, ROUTE, STARTS) == State(ROUTE, STARTS)


@pytest.mark.parametrize(
    ("starts", "restarted"),
    [(Starts("other", "node"), "valkey://a:1"), (Starts("run", "other"), "kvstrata://default@b:2")],
)
def test_after_a_restart_it_begins_anew(path: Path, starts: Starts, restarted: str) -> None:
    saved(path)
    state = load_state(path, ROUTE, starts)
    assert (state.cursor, state.counts, state.starts) == (0, Counts(), starts)
    assert state.anew == f"{restarted} was restarted since"


def test_the_state_of_another_import_is_left_alone(path: Path) -> None:
    saved(path)
    with pytest.raises(UsageError, match=r"all keys from valkey://a:1 .* choose another --state"):
        load_state(path, Route(ROUTE.source, ROUTE.target, "x*"), STARTS)
    assert load_state(path, ROUTE, STARTS).cursor == 2**63 + 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "route": {}}'])
def test_what_is_no_state(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(UsageError, match=r"state\.json"):
        load_state(path, ROUTE, STARTS)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="choose another --state"):
        State(ROUTE, STARTS).save(tmp_path / "none" / "state.json")
