"""What a node refuses, that it says why, and whether the connection goes on."""

import time
from collections.abc import Iterator

import pytest

from tests.e2e.nodes import READ, WRITE, AttackedNode, attacked_node, pool
from tests.e2e.reference_client import RawConnection, RefusedError, client_hello
from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Entry, Hello, Request

CHUNK = 512 * 1024
OK, BUSY, TOO_LARGE, DENIED, DEADLINE, CORRUPT, INVALID, UNSUPPORTED = 0, 6, 8, 9, 10, 11, 12, 13


@pytest.fixture(params=[1, 3])
def node(request: pytest.FixtureRequest) -> Iterator[AttackedNode]:
    secrets = [("reader", READ), ("writer", READ | WRITE)]
    with attacked_node(
        pool(),
        pool("team-a", secrets=secrets, open_rights=0),
        pool("team-b", secrets=[("other", READ | WRITE)], open_rights=0),
        shard_count=request.param,
    ) as running:
        yield running


@pytest.fixture
def client(node: AttackedNode) -> Iterator[RawConnection]:
    with RawConnection(node.port) as connection:
        yield connection


def refusal(port: int, hello: Hello) -> Hello:
    with pytest.raises(RefusedError) as caught:
        RawConnection(port, hello)
    assert caught.value.hello.first == 0
    return caught.value.hello


# ---- hello ----


@pytest.mark.parametrize("versions", [(2, 2), (2, 900), (0, 0)])
def test_unknown_version_is_refused_in_words(node: AttackedNode, versions: tuple[int, int]) -> None:
    answer = refusal(node.port, Hello(*versions, client_hello().body))
    assert answer.second == UNSUPPORTED
    assert f"versions {versions[0]} to {versions[1]}" in answer.message
    assert "version 1" in answer.message


def test_a_newer_client_that_still_speaks_version_1_is_served(node: AttackedNode) -> None:
    with RawConnection(node.port, Hello(1, 40_000, client_hello().body)) as client:
        assert client.hello.first == 1


def test_unknown_attributes_of_a_hello(node: AttackedNode) -> None:
    optional = wire.attribute(20_000, b"from a later version")
    with RawConnection(node.port, client_hello(extra=optional)) as client:
        assert client.put(b"k", b"v").status == OK
    required = wire.attribute(20_000, b"", required=True)
    answer = refusal(node.port, client_hello(extra=required))
    assert answer.second == UNSUPPORTED
    assert "20000" in answer.message


@pytest.mark.parametrize(
    ("name", "secret"),
    [("team-a", ""), ("team-a", "wrong"), ("team-a", "other"), ("nobody", ""), ("default", "x")],
)
def test_wrong_secrets_are_denied_alike(node: AttackedNode, name: str, secret: str) -> None:
    answer = refusal(node.port, client_hello(name, secret))
    assert answer.second == DENIED
    assert name in answer.message
    assert "or there is no such pool" in answer.message


def test_a_pool_name_that_is_none_is_refused_in_words(node: AttackedNode) -> None:
    for name in (b"", b"\xff\xfe", b"Team", b"p" * 65):
        answer = refusal(node.port, Hello(1, 1, wire.attribute(1, name)))
        assert answer.second == INVALID
        assert "attribute 1 " in answer.message


def test_one_connection_too_many_is_told_so() -> None:
    with (
        attacked_node(connection_count_max=2) as node,
        RawConnection(node.port) as first,
        RawConnection(node.port),
    ):
        answer = refusal(node.port, client_hello())
        assert answer.second == BUSY
        assert "connections" in answer.message
        assert first.put(b"k", b"v").status == OK


# ---- rights and pools ----


def test_a_reader_may_not_write(node: AttackedNode) -> None:
    with RawConnection(node.port, client_hello("team-a", "writer")) as writer:
        assert writer.hello.number(22) == READ | WRITE
        writer.put(b"k", b"value")
        with RawConnection(node.port, client_hello("team-a", "reader")) as reader:
            assert reader.hello.number(22) == READ
            assert reader.get(b"k") == b"value"
            refused = {
                wire.PUT: wire.put_entry(b"k", b"other", CHUNK),
                wire.APPEND: wire.put_entry(b"k", b"other", CHUNK, at=5),
                wire.DELETE: Entry(b"k"),
                wire.EXPIRE: Entry(b"k", {"ttl": 1}),
            }
            for opcode, entry in refused.items():
                data = b"other" if opcode in (wire.PUT, wire.APPEND) else b""
                reply = reader.call(opcode, [entry], data)
                assert reply.status == DENIED
                assert "write" in reply.message
            assert reader.get(b"k") == b"value"


def test_pools_see_nothing_of_each_other(node: AttackedNode) -> None:
    with (
        RawConnection(node.port, client_hello("team-a", "writer")) as one,
        RawConnection(node.port, client_hello("team-b", "other")) as two,
    ):
        one.put(b"k", b"of a")
        assert two.get(b"k") is None
        assert two.call(wire.SCAN, [Entry(b"", {"count": 100})]).outcomes[0].keys == []
        assert two.call(wire.DELETE, wire.keys_only([b"k"])).statuses == [1]
        two.put(b"k", b"of b")
        assert (one.get(b"k"), two.get(b"k")) == (b"of a", b"of b")


# ---- commands that fail alone ----


def test_an_unknown_opcode_fails_alone_and_its_data_are_skipped(client: RawConnection) -> None:
    for opcode in (5, 48, 67, 80, 127):
        body = Request(opcode, 9, data_length=100_000)
        client.send(body.encode() + bytes(100_000))
        completion, _ = client.read_completion()
        assert (completion.command_id, completion.status) == (9, UNSUPPORTED)
        assert str(opcode) in completion.message
    assert client.put(b"k", b"v").status == OK


def test_unknown_attributes_of_a_command(client: RawConnection) -> None:
    client.put(b"k", b"v")
    for required, status in ((False, OK), (True, UNSUPPORTED)):
        extra = wire.attribute(300, b"later", required=required)
        client.send(Request(wire.EXISTS, 5, [Entry(b"k")], attributes=extra).encode())
        completion, _ = client.read_completion()
        assert completion.status == status


def test_unknown_attributes_of_an_entry(client: RawConnection) -> None:
    client.put(b"k", b"v")
    entries = [
        Entry(b"k", attributes=wire.attribute(300, b"later")),
        Entry(b"k", attributes=wire.attribute(300, b"later", required=True)),
    ]
    assert client.call(wire.EXISTS, entries).statuses == [OK, UNSUPPORTED]


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"kind": 1}, UNSUPPORTED),
        ({"kind": wire.REGION}, UNSUPPORTED),
        ({"kind": 77}, UNSUPPORTED),
        ({"room": 4}, INVALID),
        ({"checksum_count": 0}, INVALID),
    ],
)
def test_a_bad_field_fails_its_entry_only(
    client: RawConnection, wrong: dict[str, int], status: int
) -> None:
    good = wire.put_entry(b"good", b"12345", CHUNK)
    bad = wire.put_entry(b"bad", b"abcde", CHUNK, **wrong)
    if "checksum_count" in wrong:
        bad.checksums = []
    of_bad = b"" if wrong.get("kind") == wire.REGION else b"abcde"  # A region's data do not travel.
    reply = client.call(wire.PUT, [bad, good, bad], of_bad + b"12345" + of_bad)
    assert reply.statuses == [status, OK, status]
    assert client.get(b"good") == b"12345"
    assert client.get(b"bad") is None


def test_keys_beyond_the_limit_fail_alone(client: RawConnection) -> None:
    entries = [Entry(b"k" * 4_097), Entry(b"k" * 4_096)]
    assert client.call(wire.EXISTS, entries).statuses == [INVALID, 1]


def test_attributes_beyond_the_limit_fail_alone(client: RawConnection) -> None:
    entry = wire.put_entry(b"k", b"v", CHUNK)
    entry.attributes = wire.attribute(600, bytes(1_021))
    assert client.call(wire.PUT, [entry], b"v").statuses == [INVALID]
    entry.attributes = wire.attribute(600, bytes(1_020))
    assert client.call(wire.PUT, [entry], b"v").statuses == [OK]


@pytest.mark.parametrize("size", [5, CHUNK + 5])
def test_a_wrong_checksum_stores_nothing(client: RawConnection, size: int) -> None:
    entry = wire.put_entry(b"k", bytes(size), CHUNK)
    entry.checksums[-1] ^= 1
    good = wire.put_entry(b"good", b"fine", CHUNK)
    reply = client.call(wire.PUT, [entry, good], bytes(size) + b"fine")
    assert reply.statuses == [CORRUPT, OK]
    assert client.get(b"k") is None
    assert client.get(b"good") == b"fine"


def test_a_value_larger_than_the_node_is_refused_by_name(client: RawConnection) -> None:
    size = client.hello.number(18) + 1
    entry = Entry(b"k", {"value_length": size, "room": size})
    client.send(Request(wire.PUT, 3, [entry], data_length=size).encode())
    block = bytes(1 << 20)
    for _ in range(size >> 20):
        client.send(block)
    client.send(bytes(size % (1 << 20)))
    completion, _ = client.read_completion()
    assert [outcome.status for outcome in completion.outcomes] == [TOO_LARGE]
    assert client.put(b"k", b"v").status == OK


def test_scan_and_admin_take_one_entry_and_noop_none(client: RawConnection) -> None:
    for opcode in (wire.SCAN, wire.ADMIN):
        for count in (0, 2):
            reply = client.call(opcode, [Entry(b"")] * count)
            assert reply.status == INVALID
            assert f"not {count}" in reply.message
    assert client.call(wire.NOOP, [Entry(b"")]).status == INVALID


def test_a_cursor_from_nowhere_is_refused(client: RawConnection) -> None:
    reply = client.call(wire.SCAN, [Entry(b"", {"cursor": 2**64 - 1, "count": 5})])
    assert reply.status == INVALID
    assert "cursor" in reply.message


# ---- deadlines ----


def test_values_that_come_after_the_deadline_are_not_stored(client: RawConnection) -> None:
    entries = [wire.put_entry(b"early", b"12345", CHUNK), wire.put_entry(b"late", b"abcde", CHUNK)]
    client.send(Request(wire.PUT, 3, entries, 10, deadline_ms=50).encode() + b"123")
    time.sleep(0.1)  # Longer than the deadline, shorter than a stall.
    client.send(b"45abcde")
    completion, _ = client.read_completion()
    assert [outcome.status for outcome in completion.outcomes] == [OK, DEADLINE]
    assert client.get(b"early") == b"12345"
    assert client.get(b"late") is None


# ---- streams that lost their meaning ----


def with_header_byte(request: Request, at: int, value: int) -> bytes:
    capsule = bytearray(request.encode())
    capsule[at] = value
    return wire.sealed(bytes(capsule[4:]))


MEANINGLESS = {
    "a completion": with_header_byte(Request(wire.NOOP, 4), 4, 128),
    "more entries than the body": with_header_byte(Request(wire.EXISTS, 4, [Entry(b"k")]), 6, 2),
    "fewer entries than the body": with_header_byte(
        Request(wire.EXISTS, 4, [Entry(b"a"), Entry(b"b")]), 6, 1
    ),
    "513 entries": Request(wire.EXISTS, 4, [Entry(b"")] * 513).encode(),
    "attributes beyond the body": with_header_byte(Request(wire.EXISTS, 4, [Entry(b"")]), 28, 9),
    "a body over 1 MiB": with_header_byte(Request(wire.EXISTS, 4, [Entry(b"")]), 14, 17),
    "data that nobody asked for": Request(wire.GET, 4, [Entry(b"k")], data_length=1).encode(),
    "less data than the values": Request(
        wire.PUT, 4, [wire.put_entry(b"k", b"abc", CHUNK)], data_length=2
    ).encode(),
    "more data than the values": Request(
        wire.PUT, 4, [wire.put_entry(b"k", b"abc", CHUNK)], data_length=4
    ).encode(),
    "lengths that overflow": Request(
        wire.PUT,
        4,
        [Entry(b"k", {"value_length": 2**63, "room": 2**63})] * 2,
        data_length=0,
    ).encode(),
    "a wrong CRC": b"\x00\x00\x00\x00" + Request(wire.NOOP, 4).encode()[4:],
}


@pytest.mark.parametrize("what", MEANINGLESS)
def test_a_stream_without_meaning_is_closed_with_words(node: AttackedNode, what: str) -> None:
    before = node.counters()["connections_dropped_protocol"]
    with RawConnection(node.port) as client:
        client.send(MEANINGLESS[what])
        completion = client.failure()
        assert (completion.command_id, completion.status) == (4, INVALID)
        assert completion.message
    assert node.counters()["connections_dropped_protocol"] == before + 1


def test_more_commands_than_credits_are_cut_off_with_words() -> None:
    with (
        attacked_node(answers=False) as node,
        RawConnection(node.port, client_hello(credits_=4)) as client,
    ):
        assert client.credits == 4
        for _ in range(4):
            client.begin(wire.ADMIN, [Entry(b"help")])
        client.begin(wire.NOOP, [])
        completion = client.failure()
        assert completion.status == INVALID
        assert "4 credits" in completion.message
