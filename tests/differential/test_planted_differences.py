"""The comparison finds a reply that was altered, and says which command it belongs to."""

from collections.abc import Iterator

import pytest

from tests.differential.altering_proxy import altering_proxy
from tests.differential.commands import DATA, TALK, TRANSACTIONS, sequence
from tests.differential.comparison import KnownDifference, known_differences
from tests.differential.run import Comparison, explain
from tests.differential.valkey import valkey_server

STEPS = sequence(0, 1_500, DATA, TALK, TRANSACTIONS)
ALTERED = [
    (b"-ERR value is not an integer or out of range\r\n", b"-ERR Value\r\n"),
    (b"$20000\r\nyyy", b"$20000\r\nyyx"),
    (b"+QUEUED\r\n", b"+queued\r\n"),
    (b"+string\r\n", b"+String\r\n"),
]


@pytest.fixture(scope="module")
def second_valkey_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """In place of a node: what two of one kind answer is alike, but for what is altered."""
    with valkey_server(tmp_path_factory.mktemp("second")) as port:
        yield port


@pytest.mark.parametrize(("reply", "altered"), ALTERED)
def test_an_altered_reply_is_found(
    valkey_port: int, second_valkey_port: int, reply: bytes, altered: bytes
) -> None:
    with altering_proxy(second_valkey_port, reply, altered) as port:
        comparison = Comparison(valkey_port, port)
        difference = comparison.run(STEPS, 2)
        assert difference is not None
        words = explain(comparison, STEPS, 2, difference)
    assert len(words.splitlines()) < 15, "not much was left out"
    assert reply[:9].split(b"\r\n")[0].decode() in words


def test_what_is_never_replied_is_no_difference(valkey_port: int, second_valkey_port: int) -> None:
    with altering_proxy(second_valkey_port, b"$5\r\nnever\r\n", b"$5\r\nNever\r\n") as port:
        assert Comparison(valkey_port, port).run(STEPS, 2) is None


def test_a_known_difference_is_excused(valkey_port: int, second_valkey_port: int) -> None:
    known = known_differences(
        "## What is answered otherwise\n\n| `OBJECT ENCODING` | `$raw` | `$embstr` | form |\n"
    )
    steps = sequence(1, 1_500, DATA)
    with altering_proxy(second_valkey_port, b"$3\r\nraw\r\n", b"$6\r\nembstr\r\n") as port:
        assert Comparison(valkey_port, port).run(steps, 2) is not None
        assert Comparison(valkey_port, port, known).run(steps, 2) is None


def test_a_row_that_cannot_be_read_is_refused() -> None:
    assert (
        known_differences("## What is answered otherwise\n| command | Valkey |\n|---|---|\n") == []
    )
    with pytest.raises(ValueError, match="OBJECT"):
        known_differences("## What is answered otherwise\n| `OBJECT` | `*` |\n")
    assert isinstance(
        known_differences("## What is answered otherwise\n| `A B` | `*` | `-ERR *` | x |\n")[0],
        KnownDifference,
    )
