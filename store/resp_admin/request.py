"""One command that waits for its reply, and how it is refused."""

from dataclasses import dataclass
from typing import Final

from kvstrata.store import pools

SYNTAX_ERROR: Final = "ERR syntax error"
NOT_AN_INTEGER: Final = "ERR value is not an integer or out of range"
_INTEGER_MAX: Final = 2**63 - 1


class CommandError(Exception):
    """A command is refused; its text begins with the error's code."""


@dataclass(frozen=True, slots=True)
class Request:
    """One command of a client.

    Attributes:
        arguments: the whole command, its name first; the native half knows the command and has
            checked how many there are.
        version: of RESP, 2 or 3.
        client_id: of the connection.
        pool: of the connection, as `rights` are.
        peer: the client's address.
    """

    arguments: tuple[bytes, ...]
    version: int
    client_id: int
    pool: str
    rights: int
    peer: str

    @property
    def administers_node(self) -> bool:
        """Whether the caller may see and change what concerns other pools than its own."""
        return self.pool == pools.DEFAULT and bool(self.rights & pools.ADMIN)

    def words(self, first: int) -> list[str]:
        """The arguments from number `first` on, as text; bytes that are no UTF-8 survive."""
        return [each.decode(errors="surrogateescape") for each in self.arguments[first:]]

    def check_administers_node(self, what: str) -> None:
        """Refuse what concerns the whole node to those who administer a pool alone."""
        if not self.administers_node:
            raise CommandError(
                f"NOPERM {what} concerns all pools: connect to the pool '{pools.DEFAULT}' with an"
                " admin secret"
            )


def parse_integer(text: str, refusal: str = NOT_AN_INTEGER) -> int:
    """A signed 64-bit integer in its one canonical form, as Valkey reads it.

    Raises:
        CommandError: it is something else; `refusal` is its text.
    """
    try:
        number = int(text) if text.isascii() and len(text) <= len(str(-_INTEGER_MAX)) else None
    except ValueError:
        number = None
    if number is None or str(number) != text or not -_INTEGER_MAX <= number + 1 <= _INTEGER_MAX + 1:
        raise CommandError(refusal)
    return number


def quotable(word: str) -> str:
    """What Valkey quotes of a word in a refusal: it ends before a zero byte."""
    return word.partition("\0")[0]


def subcommand_refusal(request: Request) -> CommandError:
    """What a subcommand answers that has too many arguments."""
    container, own = request.words(0)[:2]
    return CommandError(
        f"ERR unknown subcommand or wrong number of arguments for '{quotable(own)}'."
        f" Try {container.upper()} HELP."
    )
