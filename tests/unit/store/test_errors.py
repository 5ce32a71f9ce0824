"""Errors: one per status, catchable as the builtin they resemble, and fit to cross processes."""

import builtins
import pickle

import pytest

from kvstrata import _kernel
from kvstrata.store import errors, statuses
from kvstrata.store.statuses import failure

OUTCOMES = {statuses.OK, statuses.NOT_FOUND, statuses.EXISTS}


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.UsageError, ValueError),
        (errors.UnavailableError, ConnectionError),
        (errors.TimeoutError, builtins.TimeoutError),
        (errors.DeniedError, PermissionError),
        (errors.BusyError, errors.UnavailableError),
        (errors.TooSmallError, errors.UsageError),
    ],
)
def test_are_caught_as_what_they_resemble(kind: type[errors.Error], builtin: type) -> None:
    assert issubclass(kind, builtin)
    assert issubclass(kind, errors.Error)


@pytest.mark.parametrize(
    "status", [*(set(range(17)) - OUTCOMES), _kernel.CLOSED, _kernel.TIMED_OUT, 99]
)
def test_every_status_has_an_error_of_one_line(status: int) -> None:
    error = failure(status, "put of b'key'", "the node's words", size=5, capacity=3)
    assert str(error).startswith("put of b'key': ")
    assert "\n" not in str(error)
    assert type(error) is not errors.Error


def test_fields_survive_pickling() -> None:
    for error in (
        failure(statuses.TOO_SMALL, "get of b'key'", size=5, capacity=3),
        failure(statuses.MISMATCH, "append", size=7),
        failure(_kernel.TIMED_OUT, "get"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (str(again), vars(again)) == (str(error), vars(error))


def test_only_what_passes_by_itself_is_retryable() -> None:
    retryable = {
        kind.__name__
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.Error) and kind.retryable
    }
    assert retryable == {"BusyError", "ChangedError", "TimeoutError", "UnavailableError"}
