"""What is known of one command. Knows nothing of connections, nor of how commands are run."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

Flag = Literal[
    "write",
    "readonly",
    "denyoom",
    "admin",
    "noscript",
    "blocking",
    "loading",
    "stale",
    "skip_commandlog",
    "fast",
    "no_auth",
    "no_multi",
    "movablekeys",
    "allow_busy",
]
Category = Literal[
    "keyspace",
    "read",
    "write",
    "string",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
]
Group = Literal["connection", "string", "generic", "server", "transactions", "cluster"]
Access = Literal["RO", "RW", "OW", "RM", "access", "update", "insert", "delete", "variable_flags"]

# As COMMAND INFO lists them.
CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
FLAGS: Final[tuple[Flag, ...]] = get_args(Flag)

CATEGORIES_OF_FLAGS: Final[dict[Flag, tuple[Category, ...]]] = {
    "write": ("write",),
    "readonly": ("read",),
    "admin": ("admin", "dangerous"),
    "blocking": ("blocking",),
}


@dataclass(frozen=True, slots=True)
class Keys:
    """Where keys stand among a command's arguments, of which the command's name is number 0.

    `last` counts from `first`, or is -1 for the last argument. With `count_at`, the argument of
    that number says how many keys there are.
    """

    access: tuple[Access, ...]
    first: int = 1
    last: int = 0
    step: int = 1
    count_at: int | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """One command, or one subcommand, whose name is `container|subcommand`.

    `arity` counts the arguments with the names; -3 means three or more. `categories` are those
    beside the ones that follow from the flags. `syntax` is read by `syntax.read_syntax`.
    """

    name: str
    arity: int
    flags: tuple[Flag, ...]
    group: Group
    since: str
    complexity: str
    summary: str
    categories: tuple[Category, ...] = ()
    keys: Keys | None = None
    tips: tuple[str, ...] = ()
    syntax: str = ""

    @property
    def container(self) -> str:
        """The command that this is a subcommand of; empty for a command of its own."""
        return self.name.rpartition("|")[0]

    @property
    def all_categories(self) -> tuple[Category, ...]:
        """Every category of access control, in the order of COMMAND INFO."""
        found: set[Category] = {*self.categories, "fast" if "fast" in self.flags else "slow"}
        for flag in self.flags:
            found.update(CATEGORIES_OF_FLAGS.get(flag, ()))
        return tuple(category for category in CATEGORIES if category in found)
