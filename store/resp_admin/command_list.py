"""COMMAND LIST: the names of the commands, or of those that a filter takes."""

from collections.abc import Callable
from typing import Final

from kvstrata.store.resp_admin.glob import matches
from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import SYNTAX_ERROR, CommandError, Request
from kvstrata.store.resp_commands.command import Command
from kvstrata.store.resp_commands.table import COMMANDS
from kvstrata.store.resp_encoding import Reply

# There are no modules, so none of their commands.
_FILTERS: Final[dict[str, Callable[[Command, str], bool]]] = {
    "MODULE": lambda _command, _module: False,
    "ACLCAT": lambda command, category: category.lower() in command.all_categories,
    "PATTERN": lambda command, pattern: matches(pattern, command.name),
}


def names(_state: NodeState, request: Request) -> Reply:
    """COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern].

    Subcommands are named only where a filter takes them, as Valkey does.
    """
    words = request.words(2)
    if not words:
        return [each.name for each in COMMANDS if not each.container]
    if len(words) != 3 or words[0].upper() != "FILTERBY" or words[1].upper() not in _FILTERS:
        raise CommandError(SYNTAX_ERROR)
    takes = _FILTERS[words[1].upper()]
    return [each.name for each in COMMANDS if takes(each, words[2])]
