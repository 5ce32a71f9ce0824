import pytest

from kvstrata.cluster.exit_codes import ExitCode, NotFoundError, exit_code
from kvstrata.store import errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InternalError("x"), 1),
        (errors.CorruptError("x"), 1),
        (OSError("x"), 1),
        (errors.UsageError("x"), 2),
        (errors.TooSmallError("x"), 2),
        (errors.UnavailableError("x"), 3),
        (errors.BusyError("x"), 3),
        (errors.TimeoutError("x"), 3),
        (NotFoundError("x"), 4),
        (errors.DeniedError("x"), 5),
        (errors.ImmutableError("x"), 5),
        (errors.NoSpaceError("x"), 5),
        (errors.MismatchError("x"), 5),
    ],
)
def test_each_kind_of_error_has_its_code(error: BaseException, code: int) -> None:
    assert exit_code(error) == code


def test_codes_never_change() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "OK": 0,
        "FAULT": 1,
        "USAGE": 2,
        "UNAVAILABLE": 3,
        "NOT_FOUND": 4,
        "REFUSED": 5,
    }
