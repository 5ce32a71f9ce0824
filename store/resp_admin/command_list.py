"""COMMAND LIST: which commands there are, from the table."""

from kvstrata.store.resp_admin import glob
from kvstrata.store.resp_admin.node_state import NodeState
from kvstrata.store.resp_admin.request import SYNTAX_ERROR, CommandError, Request
from kvstrata.store.resp_commands.table import COMMANDS
from kvstrata.store.resp_encoding import Reply


def answer(_state: NodeState, request: Request) -> Reply:
    """The names of all commands; with a filter, of those and their subcommands that it takes."""
    words = request.words(2)
    if not words:
        return [each.name for each in COMMANDS if not each.container]
    if len(words) != 3 or words[0].upper() != "FILTERBY":
        raise CommandError(SYNTAX_ERROR)
    wanted = words[2].lower()
    match words[1].upper():
        case "MODULE":
            return []
        case "ACLCAT":
            return [each.name for each in COMMANDS if wanted in each.all_categories]
        case "PATTERN":
            return [each.name for each in COMMANDS if glob.matches(wanted, each.name)]
    raise CommandError(SYNTAX_ERROR)
