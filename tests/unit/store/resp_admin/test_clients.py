"""CLIENT LIST, INFO and KILL: lines, filters, and who may see and close whom."""

import pytest

from tests.unit.store.resp_admin.recorded_node import (
    Asker,
    RecordedNode,
    asker,
    connection,
    with_secret,
)

LINE = (
    b"id=1 addr=127.0.0.1:50001 laddr=127.0.0.1:18400 fd=9 name= age=12 idle=3 flags=N capa= db=0"
    b" sub=0 psub=0 ssub=0 multi=-1 watch=0 qbuf=10 qbuf-free=990 argv-mem=0 multi-mem=0 rbs=0"
    b" rbp=0 obl=0 oll=0 omem=0 tot-mem=1000 events=r"
    b" cmd=client|list user=default redir=-1 resp=2 lib-name= lib-ver= tot-net-in=252"
    b" tot-net-out=625 tot-cmds=7\n"
)


@pytest.fixture
def node() -> Asker:
    connections = [
        connection(3, pool="team", protocol="capsule", resp_version=0, last_command="get"),
        connection(1),
        connection(2, name="x", lib_name="py", lib_version="6.2", age_s=99.0, idle_s=50.0),
        connection(4, multi_count=2, no_evict=True, no_touch=True, output_bytes=7, pool="team"),
    ]
    return asker(RecordedNode(open_connections=connections), team=with_secret())


def ids(reply: bytes) -> list[int]:
    return [int(part[3:]) for part in reply.split() if part.startswith(b"id=")]


def test_a_line(node: Asker) -> None:
    assert node.ask("CLIENT INFO") == b"$%d\r\n%b\r\n" % (len(LINE), LINE)
    assert node.ask("CLIENT INFO", 3) == b"=%d\r\ntxt:%b\r\n" % (len(LINE) + 4, LINE)


def test_flags_protocol_and_output(node: Asker) -> None:
    reply = node.ask("CLIENT LIST ID 4")
    assert b" flags=xeT " in reply
    assert b" multi=2 " in reply
    assert b" omem=7 tot-mem=1007 events=rw " in reply
    assert b" resp=0 " in node.ask("CLIENT LIST ID 3")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", [1, 2, 3, 4]),
        ("ID 1 3 9", [1, 3]),
        ("NOT-ID 1 3", [2, 4]),
        ("id 1 2 NAME x", [2]),
        ("TYPE normal", [1, 2, 3, 4]),
        ("TYPE pubsub", []),
        ("NOT-TYPE Replica", [1, 2, 3, 4]),
        ("USER team", [3, 4]),
        ("NOT-USER team", [1, 2]),
        ("ADDR 127.0.0.1:50002", [2]),
        ("LADDR 127.0.0.1:18400", [1, 2, 3, 4]),
        ("SKIPME yes", [2, 3, 4]),
        ("SKIPME no", [1, 2, 3, 4]),
        ("MAXAGE 99", [2]),
        ("IDLE 50", [2]),
        ("IDLE 51", []),
        ("FLAGS x", [4]),
        ("FLAGS Tx", [4]),
        ("NOT-FLAGS N", [4]),
        ("LIB-NAME py LIB-VER 6.2", [2]),
        ("NOT-LIB-NAME py", [1, 3, 4]),
        ("DB 0", [1, 2, 3, 4]),
        ("CAPA r", []),
        ("IP 127.0.0.1", [1, 2, 3, 4]),
        ("NOT-IP 127.0.0.1", []),
    ],
)
def test_filters(node: Asker, words: str, expected: list[int]) -> None:
    assert ids(node.ask(f"CLIENT LIST {words}")) == expected


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("ID", b"syntax error"),
        ("ID x", b"syntax error"),
        ("ID 1 x", b"syntax error"),
        ("ID 1 0", b"client-id should be greater than 0"),
        ("NOT-ID x", b"syntax error"),
        ("FOO bar", b"syntax error"),
        ("NOT-SKIPME yes", b"syntax error"),
        ("NAME", b"syntax error"),
        ("SKIPME maybe", b"syntax error"),
        ("TYPE foo", b"Unknown client type 'foo'"),
        ("USER nope", b"No such user 'nope'"),
        ("NOT-USER nope", b"No such user 'nope'"),
        ("MAXAGE x", b"maxage is not an integer or out of range"),
        ("MAXAGE 0", b"maxage should be greater than 0"),
        ("IDLE 99999999999999999999", b"idle is not an integer or out of range"),
        ("IDLE 0", b"idle should be greater than 0"),
        ("FLAGS q", b"Unknown flags found in the provided filter: q"),
        ("NOT-FLAGS q", b"Unknown flags found in the NOT-FLAGS filter: q"),
        ("DB x", b"DB is not an integer or out of range"),
        ("NOT-DB x", b"NOT-DB is not an integer or out of range"),
        ("DB 1", b"DB number should be between 0 and 0"),
        ("CAPA z", b"Unknown capa found in the provided filter: z"),
    ],
)
def test_refusals_are_valkeys(node: Asker, words: str, refusal: bytes) -> None:
    assert node.ask(f"CLIENT LIST {words}") == b"-ERR %b\r\n" % refusal
    if len(words.split()) > 1:
        assert node.ask(f"CLIENT KILL {words}") == b"-ERR %b\r\n" % refusal
    assert node.node.told == []


def test_kill_spares_the_caller_unless_told(node: Asker) -> None:
    assert node.ask("CLIENT KILL TYPE normal") == b":3\r\n"
    assert node.ask("CLIENT KILL ID 1 SKIPME no") == b":1\r\n"
    assert node.ask("CLIENT KILL ID 1") == b":0\r\n"
    assert node.node.told == [("kill", 2, 3, 4), ("kill", 1)]


def test_kill_by_address_alone(node: Asker) -> None:
    assert node.ask("CLIENT KILL 127.0.0.1:50002") == b"+OK\r\n"
    assert node.ask("CLIENT KILL ID") == b"-ERR No such client\r\n"
    assert node.node.told == [("kill", 2)]


def test_a_tenant_sees_and_kills_its_own(node: Asker) -> None:
    assert ids(node.ask("CLIENT LIST", pool="team")) == [3, 4]
    assert node.ask("CLIENT LIST USER default", pool="team") == b"-ERR No such user 'default'\r\n"
    assert node.ask("CLIENT KILL ID 2", pool="team") == b":0\r\n"
    assert node.ask("CLIENT KILL 127.0.0.1:50002", pool="team") == b"-ERR No such client\r\n"
    assert node.ask("CLIENT KILL ID 2 3 SKIPME no", pool="team") == b":1\r\n"
    assert node.node.told == [("kill", 3)]
