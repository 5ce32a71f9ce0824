"""Every command of the protocol as a stranger would use it, on real nodes of 1 and 4 shards."""

from collections.abc import Iterator

import msgpack  # type: ignore[import-untyped]
import pytest

from tests.e2e.nodes import AttackedNode, attacked_node, pool
from tests.e2e.reference_client import RawConnection, client_hello
from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.golden_vectors import LAYOUT
from tests.unit.transport.reference_decoder import Entry, Request

CHUNK = 512 * 1024


def pattern(count: int, seed: int = 0) -> bytes:
    """Bytes of which no two neighbouring stretches are alike."""
    words = ((at * 2654435761 + seed * 40503) & 0xFFFFFFFF for at in range(count // 4 + 1))
    return b"".join(word.to_bytes(4, "little") for word in words)[:count]


@pytest.fixture(params=[1, 4])
def node(request: pytest.FixtureRequest) -> Iterator[AttackedNode]:
    with attacked_node(pool(), pool("fixed", immutable=True), shard_count=request.param) as running:
        yield running


@pytest.fixture
def client(node: AttackedNode) -> Iterator[RawConnection]:
    with RawConnection(node.port) as connection:
        yield connection


def test_hello_says_what_the_node_is(client: RawConnection) -> None:
    hello = client.hello
    assert hello.first == 1
    assert hello.number(3) == 0
    assert hello.number(4) == 128
    assert hello.number(5) == 0
    assert hello.number(6) < hello.number(16)
    assert hello.number(17) == CHUNK
    assert hello.number(18) > CHUNK
    assert len(hello.attributes()[20]) == 16
    assert hello.number(21) == 0
    assert hello.number(22) == 3
    assert hello.number(23) == 0


def test_noop_is_answered(client: RawConnection) -> None:
    reply = client.call(wire.NOOP, [])
    assert (reply.status, reply.outcomes) == (0, [])


@pytest.mark.parametrize("size", [0, 1, 8_192, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_values_of_all_sizes_come_back(client: RawConnection, size: int) -> None:
    value = pattern(size)
    stored = client.put(b"k", value)
    assert stored.status == 0
    assert (stored.fields["result"], stored.fields["value_length"]) == (0, size)
    assert client.get(b"k") == value
    again = client.put(b"k", value[::-1])
    assert again.fields["result"] == 1
    assert again.fields["version"] != stored.fields["version"]
    assert client.get(b"k") == value[::-1]


def test_any_bytes_are_a_key(client: RawConnection) -> None:
    for key in (b"", b"\x00", bytes(range(256)), b"k" * 4_096):
        assert client.put(key, key + b"!").status == 0
        assert client.get(key) == key + b"!"


def test_a_sink_too_small_learns_the_true_size(client: RawConnection) -> None:
    client.put(b"k", pattern(100))
    reply = client.call(wire.GET, [wire.get_entry(b"k", 99), wire.get_entry(b"k", 100)])
    assert reply.statuses == [3, 0]
    assert reply.outcomes[0].fields["value_length"] == 100


@pytest.mark.parametrize("length", [0, 1, 2, CHUNK, CHUNK + 2, 2 * CHUNK, 10 * CHUNK])
def test_ranges_with_ragged_ends(client: RawConnection, length: int) -> None:
    value = pattern(3 * CHUNK + 100)
    client.put(b"k", value)
    for offset in (0, 1, CHUNK - 1, CHUNK, 2 * CHUNK + 5, len(value) - 1, len(value)):
        entry = Entry(b"k", {"offset": offset, "length": length, "room": length})
        reply = client.call(wire.GET_RANGE, [entry])
        assert reply.values == [value[offset : offset + length]]
        assert reply.outcomes[0].fields["value_length"] == len(value)


def test_ranges_beyond_the_end_are_empty(client: RawConnection) -> None:
    client.put(b"k", b"abc")
    for offset, length in ((3, 1), (4, 1), (2**64 - 1, 2**64 - 1), (0, 0)):
        entry = Entry(b"k", {"offset": offset, "length": length, "room": 10})
        reply = client.call(wire.GET_RANGE, [entry])
        assert (reply.statuses, reply.values) == ([0], [b""])


def test_a_batch_of_200_keys_is_one_outcome_each_in_order(client: RawConnection) -> None:
    entries, data, values = [], b"", []
    for index in range(200):
        value = None if index % 7 == 0 else pattern(index * 150, index)
        values.append(value)
        if value is not None:
            entries.append(wire.put_entry(b"k%d" % index, value, CHUNK))
            data += value
    assert set(client.call(wire.PUT, entries, data).statuses) == {0}
    wanted = [wire.get_entry(b"k%d" % index, 1 << 20) for index in range(200)]
    reply = client.call(wire.GET, wanted)
    assert reply.values == values
    assert len(reply.completions) > 1
    existing = client.call(wire.EXISTS, wire.keys_only(b"k%d" % index for index in range(200)))
    assert existing.statuses == [int(value is None) for value in values]


def test_append_grows_where_it_is_told_the_end(client: RawConnection) -> None:
    whole = b""
    for step, size in enumerate((10, CHUNK - 10, 0, 5, 2 * CHUNK)):
        part = pattern(size, step)
        entry = wire.put_entry(b"k", part, CHUNK, at=len(whole))
        outcome = client.call(wire.APPEND, [entry], part).outcomes[0]
        assert outcome.status == 0
        assert outcome.fields["result"] == (2 if step else 0)
        whole += part
        assert outcome.fields["value_length"] == len(whole)
        assert client.get(b"k") == whole
    entry = wire.put_entry(b"k", b"x", CHUNK, at=1)
    outcome = client.call(wire.APPEND, [entry], b"x").outcomes[0]
    assert (outcome.status, outcome.fields["value_length"]) == (4, len(whole))
    assert client.get(b"k") == whole


def test_prefix_length_counts_up_to_the_first_miss(client: RawConnection) -> None:
    for index in (0, 1, 2, 4):
        client.put(b"p%d" % index, b"")
    keys = wire.keys_only(b"p%d" % index for index in range(6))
    for count, wanted in ((6, 3), (2, 2), (0, 0)):
        reply = client.call(wire.PREFIX_LENGTH, keys[:count])
        assert [outcome.fields["count"] for outcome in reply.outcomes] == [wanted]


def test_delete_expire_and_stat(client: RawConnection) -> None:
    entry = wire.put_entry(b"k", b"value", CHUNK, ttl=3_600_000)
    entry.attributes = LAYOUT
    version = client.call(wire.PUT, [entry], b"value").outcomes[0].fields["version"]
    stat = client.call(wire.STAT, wire.keys_only([b"k", b"none"])).outcomes
    assert [outcome.status for outcome in stat] == [0, 1]
    assert stat[0].attributes == LAYOUT
    assert (stat[0].fields["location"], stat[0].fields["value_length"]) == (1, 5)
    assert stat[0].fields["version"] == version
    assert 3_590_000 < stat[0].fields["ttl_left"] <= 3_600_000
    got = client.call(wire.GET, [wire.get_entry(b"k", 9)]).outcomes[0]
    assert got.attributes == LAYOUT
    never = client.call(wire.EXPIRE, [Entry(b"k", {"ttl": wire.TTL_NEVER}), Entry(b"none")])
    assert never.statuses == [0, 1]
    assert client.call(wire.STAT, wire.keys_only([b"k"])).outcomes[0].fields["ttl_left"] == (
        wire.TTL_NEVER
    )
    assert client.call(wire.DELETE, wire.keys_only([b"k", b"k"])).statuses == [0, 1]
    assert client.get(b"k") is None


def test_values_of_any_size_can_be_given_a_ttl_later(client: RawConnection) -> None:
    sizes = range(8_192 - 200, 8_192 + 8)  # Around the largest value that lies inside its record.
    for size in sizes:
        client.put(b"k%d" % size, bytes(size))
    entries = [Entry(b"k%d" % size, {"ttl": 3_600_000}) for size in sizes]
    assert set(client.call(wire.EXPIRE, entries).statuses) == {0}
    assert all(client.get(b"k%d" % size) == bytes(size) for size in sizes)


def test_a_ttl_of_nothing_ends_the_object(client: RawConnection) -> None:
    client.put(b"k", b"v")
    assert client.call(wire.EXPIRE, [Entry(b"k", {"ttl": 0})]).statuses == [0]
    assert client.get(b"k") is None


def test_put_if_absent_leaves_what_is_there(client: RawConnection) -> None:
    first = client.put(b"k", b"first", flags=wire.IF_ABSENT)
    second = client.put(b"k", b"second!", flags=wire.IF_ABSENT)
    assert (first.status, second.status) == (0, 2)
    assert second.fields["value_length"] == 5
    assert second.fields["version"] == first.fields["version"]
    assert client.get(b"k") == b"first"


def test_scan_returns_every_key_once_over_all_shards(client: RawConnection) -> None:
    keys = {b"scan%d" % index: index % 50 for index in range(1_000)}
    for key, size in keys.items():
        client.put(key, bytes(size))
    client.put(b"other", b"")
    for count in (1, 10, 4_096):
        found: list[tuple[bytes, int]] = []
        cursor, rounds = 0, 0
        while rounds == 0 or cursor != 0:
            reply = client.call(wire.SCAN, [Entry(b"scan", {"cursor": cursor, "count": count})])
            cursor = reply.outcomes[0].fields["cursor"]
            assert len(reply.outcomes[0].keys) <= count + 8  # A few more may share the last place.
            found += reply.outcomes[0].keys
            rounds += 1
            assert rounds < 5_000
        assert dict(found) == keys


def test_help_names_the_commands(client: RawConnection) -> None:
    outcome = client.call(wire.ADMIN, [Entry(b"help")]).outcomes[0]
    assert outcome.status == 0
    assert "help" in msgpack.unpackb(outcome.payload)
    for name, shown in ((b"nonsense", "nonsense"), (b"\xff\x00", "xff")):
        unknown = client.call(wire.ADMIN, [Entry(name, payload=b"\xc1")]).outcomes[0]
        assert unknown.status == 13
        assert shown in msgpack.unpackb(unknown.payload)["error"]
    assert client.call(wire.ADMIN, [Entry(b"help")]).statuses == [0]


def test_immutable_pool_refuses_overwrite_but_grows(node: AttackedNode) -> None:
    with RawConnection(node.port, client_hello("fixed")) as client:
        assert client.hello.number(23) == 1
        assert client.put(b"k", b"one").status == 0
        assert client.put(b"k", b"two").status == 5
        assert client.put(b"k", b"two", flags=wire.IF_ABSENT).status == 2
        entry = wire.put_entry(b"k", b"+", CHUNK, at=3)
        assert client.call(wire.APPEND, [entry], b"+").statuses == [0]
        assert client.get(b"k") == b"one+"


def test_wanted_shard_is_given(node: AttackedNode) -> None:
    with RawConnection(node.port) as plain:
        count = plain.hello.number(16)
    for shard in range(count):
        with RawConnection(node.port, client_hello(shard=shard)) as client:
            assert client.hello.number(6) == shard
            key = next(
                b"k%d" % n for n in range(1_000) if wire.slot(b"k%d" % n) * count >> 14 == shard
            )
            before = node.counters()["hops"]
            client.put(key, b"mine")
            assert client.get(key) == b"mine"
            assert node.counters()["hops"] == before
    with RawConnection(node.port, client_hello(shard=4_000_000)) as client:
        assert client.hello.number(6) < count


def test_capsules_may_follow_the_hello_of_a_handed_over_connection(node: AttackedNode) -> None:
    """A client that does not wait for the answer breaks the rule, yet loses nothing here."""
    for shard in range(4):
        with RawConnection(node.port, greet=False) as client:
            request = Request(wire.NOOP, 77).encode()
            client.send(client_hello(shard=shard).encode() + request)
            assert client.read_hello().second == 0
            completion, _ = client.read_completion()
            assert completion.command_id == 77


def test_commands_complete_out_of_order() -> None:
    """An administrative command that nobody answers does not hold up what comes after it."""
    with attacked_node(answers=False) as node, RawConnection(node.port) as client:
        slow = client.begin(wire.ADMIN, [Entry(b"help")], deadline_ms=300)
        fast = client.begin(wire.NOOP, [])
        replies = client.finish_one()
        assert list(replies) == [fast]
        reply = client.finish_one()[slow]
        assert (reply.status, reply.statuses) == (0, [10])
