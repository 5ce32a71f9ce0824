"""Records what a real Valkey knows of the commands in the table: facts, not its words about them.

`python -m tests.differential.record_commands` writes tests/vectors/valkey_commands.txt, one line of
JSON a command. That is done when another version of Valkey is compared with.
"""

import json
import tempfile
from pathlib import Path
from typing import Any, Final

from kvstrata.store.resp_commands.table import COMMANDS
from tests.differential.client import Client
from tests.differential.resp import Reply
from tests.differential.valkey import valkey_server

RECORD: Final = Path(__file__).parents[1] / "vectors" / "valkey_commands.txt"
# A command's subcommands have lines of their own; the rest is prose.
LEFT_OUT: Final = {"$summary", "$complexity", "$history", "$notes", "$subcommands"}


def noted(reply: Reply) -> Any:  # noqa: ANN401
    """The reply as JSON, without prose: "+simple", "$bulk", 7, and lists that begin with a kind."""
    if reply.kind == ":":
        return reply.integer
    if reply.items is None:
        assert reply.text is not None
        return reply.kind + reply.text.decode()
    items = [noted(item) for item in reply.items]
    if reply.kind == "%":
        pairs = zip(items[::2], items[1::2], strict=True)
        items = [part for pair in pairs if pair[0] not in LEFT_OUT for part in pair]
    return [reply.kind, *items]


def record(client: Client) -> list[str]:
    lines = []
    client.call(b"HELLO", b"3")
    for command in COMMANDS:
        name = command.name.encode()
        info = client.call(b"COMMAND", b"INFO", name)
        docs = client.call(b"COMMAND", b"DOCS", name)
        assert info is not None
        assert info.items is not None
        assert docs is not None
        assert docs.items is not None
        noted_info = noted(info.items[0])
        noted_info[-1] = ["*"]
        lines.append(
            json.dumps({"name": command.name, "info": noted_info, "docs": noted(docs.items[1])})
        )
    return lines


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        valkey_server(Path(folder)) as port,
        Client(port) as client,
    ):
        RECORD.write_text("\n".join(record(client)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
