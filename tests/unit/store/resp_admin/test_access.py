"""ACL: forms as Valkey 9.1 gives them for users of the same rights."""

import pytest

from kvstrata.store.pools import READ, WRITE
from tests.unit.store.resp_admin.recorded_node import Asker, RecordedNode, asker, with_secret


@pytest.fixture
def node() -> Asker:
    return asker(RecordedNode(), team=with_secret(), readers=with_secret("read"))


def test_whoami(node: Asker) -> None:
    assert node.ask("ACL WHOAMI") == b"$7\r\ndefault\r\n"
    assert node.ask("acl whoami", pool="team", rights=READ) == b"$4\r\nteam\r\n"


def test_the_nodes_admin_sees_every_pool(node: Asker) -> None:
    lines = [
        b"user default on nopass ~* resetchannels +@all",
        b"user readers on ~* resetchannels +@all -@write -@admin",
        b"user team on ~* resetchannels +@all",
    ]
    bulks = b"".join(b"$%d\r\n%b\r\n" % (len(line), line) for line in lines)
    assert node.ask("ACL LIST") == b"*3\r\n" + bulks


def test_a_tenant_sees_itself(node: Asker) -> None:
    reply = node.ask("ACL LIST", pool="team")
    assert reply == b"*1\r\n$35\r\nuser team on ~* resetchannels +@all\r\n"
    assert node.ask("ACL GETUSER default", pool="team") == b"$-1\r\n"
    assert node.ask("ACL GETUSER default", 3, pool="team") == b"_\r\n"


def test_getuser(node: Asker) -> None:
    fields = (
        b"$8\r\ncommands\r\n$5\r\n+@all\r\n$4\r\nkeys\r\n$2\r\n~*\r\n$8\r\nchannels\r\n$0\r\n\r\n"
        b"$9\r\ndatabases\r\n$6\r\nalldbs\r\n$9\r\nselectors\r\n*0\r\n"
    )
    begin = b"$5\r\nflags\r\n%b2\r\n$2\r\non\r\n$6\r\nnopass\r\n$9\r\npasswords\r\n*0\r\n"
    assert node.ask("ACL GETUSER default") == b"*14\r\n" + begin % b"*" + fields
    assert node.ask("ACL GETUSER default", 3) == b"%7\r\n" + begin % b"~" + fields


def test_no_secret_is_shown(node: Asker) -> None:
    for command in ("ACL LIST", "ACL GETUSER team", "CONFIG GET *", "INFO everything"):
        assert b"xyzzy" not in node.ask(command)


def test_categories(node: Asker) -> None:
    reply = node.ask("ACL CAT", rights=READ)
    assert reply.startswith(b"*11\r\n$8\r\nkeyspace\r\n$4\r\nread\r\n")
    assert b"$6\r\ngetdel\r\n" in node.ask("ACL CAT STRING")
    assert b"$10\r\nconfig|get\r\n" in node.ask("ACL CAT admin")
    assert b"$3\r\nget\r\n" not in node.ask("ACL CAT admin")
    assert node.ask("ACL CAT foo") == b"-ERR Unknown category 'foo'\r\n"
    assert node.ask("ACL CAT a b") == (
        b"-ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.\r\n"
    )


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("ACL LIST", "acl|list"),
        ("CONFIG GET save", "config|get"),
        ("CLIENT LIST", "client|list"),
        ("client KILL ID 1", "client|kill"),
        ("SLOWLOG LEN", "slowlog|len"),
        ("LATENCY LATEST", "latency|latest"),
    ],
)
def test_what_administers_needs_the_right(node: Asker, command: str, name: str) -> None:
    refusal = f"-NOPERM User team has no permissions to run the '{name}' command\r\n".encode()
    assert node.ask(command, pool="team", rights=READ | WRITE) == refusal
    assert node.node.told == []
