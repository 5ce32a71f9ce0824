"""Which connections CLIENT LIST and CLIENT KILL mean: pairs of words, all of which must hold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvstrata.store.resp_admin.request import (
    SYNTAX_ERROR,
    CommandError,
    parse_integer,
    quotable,
)

Connection = Mapping[str, Any]
Test = Callable[[Connection], bool]

_FLAGS_KNOWN: Final = frozenset("bcdeirtuxABEIMNOPRSTU")  # Valkey's.
_TYPES_KNOWN: Final = frozenset({"normal", "master", "primary", "slave", "replica", "pubsub"})
# A connection's field by the word that asks for it; each can be asked for with NOT- as well.
_TEXTS: Final = {
    "ADDR": "peer",
    "LADDR": "local",
    "NAME": "name",
    "LIB-NAME": "lib_name",
    "LIB-VER": "lib_version",
}


@dataclass(frozen=True, slots=True)
class ClientFilter:
    """What was asked for.

    Attributes:
        skip_me: whether the caller's own connection is left out; None: it was not said.
    """

    tests: tuple[Test, ...] = ()
    skip_me: bool | None = None

    def matches(self, connection: Connection) -> bool:
        """Whether everything that was asked for holds."""
        return all(test(connection) for test in self.tests)


def flags_of(connection: Connection) -> str:
    """The connection's flags, in Valkey's letters."""
    held = {
        "x": connection["multi_count"] >= 0,
        "e": connection["no_evict"],
        "T": connection["no_touch"],
    }
    return "".join(letter for letter, holds in held.items() if holds) or "N"


def parse_filter(words: Sequence[str], users: Sequence[str]) -> ClientFilter:
    """Read the words after CLIENT LIST or CLIENT KILL; `users` are those who may be named.

    Raises:
        CommandError: a word is unknown, lacks its value, or has one of a wrong kind.
    """
    tests: list[Test] = []
    skip_me: bool | None = None
    at = 0
    while at < len(words):
        option = words[at].upper()
        if at + 1 == len(words):
            raise CommandError(SYNTAX_ERROR)
        value = words[at + 1]
        plain = option.removeprefix("NOT-")
        end = at + 2
        if option == "SKIPME":
            skip_me = _yes_or_no(value)
        elif plain == "ID":
            end = _end_of_ids(words, at + 1)
            tests.append(_negated(option, _has_id(words[at + 1 : end])))
        elif option in ("MAXAGE", "IDLE"):
            tests.append(_at_least(option, value))
        else:
            tests.append(_negated(option, _test(option, plain, value, users)))
        at = end
    return ClientFilter(tuple(tests), skip_me)


def _test(option: str, plain: str, value: str, users: Sequence[str]) -> Test:
    """The test of an option that takes one word and can be negated, before it is."""
    if plain in _TEXTS:
        field = _TEXTS[plain]
        return lambda connection: connection[field] == value
    match plain:
        case "USER":
            if value not in users:
                raise CommandError(f"ERR No such user '{quotable(value)}'")
            return lambda connection: connection["pool"] == value
        case "TYPE":
            if value.lower() not in _TYPES_KNOWN:
                raise CommandError(f"ERR Unknown client type '{quotable(value)}'")
            return lambda _: value.lower() == "normal"
        case "FLAGS":
            if unknown := "".join(letter for letter in value if letter not in _FLAGS_KNOWN):
                place = "NOT-FLAGS" if option != plain else "provided"
                raise CommandError(f"ERR Unknown flags found in the {place} filter: {unknown}")
            return lambda connection: set(value) <= set(flags_of(connection))
        case "DB":
            database = parse_integer(value, f"ERR {option} is not an integer or out of range")
            if database != 0:
                raise CommandError("ERR DB number should be between 0 and 0")
            return lambda _: True
        case "CAPA":
            if value != "r":
                raise CommandError(f"ERR Unknown capa found in the provided filter: {value}")
            return lambda _: False  # No client of ours can have told that it follows redirects.
        case "IP":
            return lambda connection: connection["peer"].rpartition(":")[0].strip("[]") == value
    raise CommandError(SYNTAX_ERROR)


def _negated(option: str, test: Test) -> Test:
    return (lambda connection: not test(connection)) if option.startswith("NOT-") else test


def _yes_or_no(value: str) -> bool:
    if value.lower() not in ("yes", "no"):
        raise CommandError(SYNTAX_ERROR)
    return value.lower() == "yes"


def _end_of_ids(words: Sequence[str], first: int) -> int:
    """Ids follow each other up to the first word that is no number; there is at least one."""
    end = first
    while end < len(words) and _is_number(words[end]):
        end += 1
    if end == first:
        raise CommandError(SYNTAX_ERROR)
    return end


def _is_number(word: str) -> bool:
    try:
        parse_integer(word)
    except CommandError:
        return False
    return True


def _has_id(words: Sequence[str]) -> Test:
    wanted = {int(word) for word in words}
    if min(wanted) < 1:
        raise CommandError("ERR client-id should be greater than 0")
    return lambda connection: connection["client_id"] in wanted


def _at_least(option: str, value: str) -> Test:
    """MAXAGE and IDLE mean connections that are at least so old, or idle for so long."""
    name = option.lower()
    seconds = parse_integer(value, f"ERR {name} is not an integer or out of range")
    if seconds < 1:
        raise CommandError(f"ERR {name} should be greater than 0")
    field = "age_s" if option == "MAXAGE" else "idle_s"
    return lambda connection: int(connection[field]) >= seconds
