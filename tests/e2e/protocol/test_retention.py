"""RETAIN, RELEASE and EXTEND as a stranger uses them, and as a hostile one does."""

import random
from collections.abc import Iterator

import pytest

from tests.e2e.nodes import (
    ADMINISTER,
    READ,
    WRITE,
    AttackedNode,
    attacked_node,
    pool,
    wait_until,
)
from tests.e2e.reference_client import RawConnection, client_hello
from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Entry, Request

OK, NOT_FOUND, DENIED, INVALID = 0, 1, 9, 12
TTL_MAX = 3_600_000


@pytest.fixture(params=[1, 4])
def node(request: pytest.FixtureRequest) -> Iterator[AttackedNode]:
    open_to_all = pool("ruled", open_rights=READ | WRITE | ADMINISTER)
    with attacked_node(pool(), open_to_all, shard_count=request.param) as running:
        yield running


@pytest.fixture
def client(node: AttackedNode) -> Iterator[RawConnection]:
    with RawConnection(node.port) as connection:
        yield connection


def retain(client: RawConnection, keys: list[bytes], **fields: int) -> list[bytes]:
    """Retain keys that are there; the handles, as RELEASE and EXTEND take them."""
    reply = client.call(wire.RETAIN, [Entry(key, {"ttl": 30_000} | fields) for key in keys])
    assert set(reply.statuses) <= {OK}
    words = dict.fromkeys(outcome.fields["handle"] for outcome in reply.outcomes)
    return [word.to_bytes(8, "little") for word in words]


def test_a_batch_of_keys_has_a_handle_for_each_shard(
    client: RawConnection, node: AttackedNode
) -> None:
    keys = [b"key-%d" % i for i in range(512)]
    for key in keys:
        client.put(key, b"value")
    handles = retain(client, keys)
    assert len(handles) == len(node.native.statistics()["shards"])
    extend = [Entry(handle, {"ttl": TTL_MAX}) for handle in handles]
    assert set(client.call(wire.EXTEND, extend).statuses) == {OK}
    release = wire.keys_only([*handles, *handles])
    statuses = client.call(wire.RELEASE, release).statuses
    assert statuses == [OK] * len(handles) + [NOT_FOUND] * len(handles)
    assert set(client.call(wire.EXTEND, extend).statuses) == {NOT_FOUND}


def test_entries_of_other_times_have_other_handles(client: RawConnection) -> None:
    client.put(b"k", b"v")
    entries = [Entry(b"k", {"ttl": ttl}) for ttl in (1_000, 1_000, 2_000, TTL_MAX)]
    reply = client.call(wire.RETAIN, entries)
    handles = [outcome.fields["handle"] for outcome in reply.outcomes]
    assert handles[0] == handles[1]
    assert len(set(handles)) == 3


def test_bad_fields_fail_their_entry_alone(client: RawConnection) -> None:
    client.put(b"k", b"v")
    ttls = [0, 1, TTL_MAX, TTL_MAX + 1, wire.TTL_NEVER]
    reply = client.call(wire.RETAIN, [Entry(b"k", {"ttl": ttl}) for ttl in ttls])
    assert reply.statuses == [INVALID, OK, OK, INVALID, INVALID]
    assert [bool(each.fields["handle"]) for each in reply.outcomes] == [
        status == OK for status in reply.statuses
    ]
    reserved = Entry(b"k", {"ttl": 1_000, "flags": 0xFFFF_FFFE})
    assert client.call(wire.RETAIN, [reserved, Entry(b"x" * 4_097)]).statuses == [OK, INVALID]
    (handle,) = retain(client, [b"k"])
    for ttl, status in ((0, INVALID), (TTL_MAX + 1, INVALID), (TTL_MAX, OK)):
        assert client.call(wire.EXTEND, [Entry(handle, {"ttl": ttl})]).statuses == [status]


def test_handles_that_name_nothing(client: RawConnection, node: AttackedNode) -> None:
    client.put(b"k", b"v")
    (handle,) = retain(client, [b"k"])
    wrong = [b"", b"\0" * 7, b"\0" * 9, handle + b"\0", handle * 512]
    for opcode, fields in ((wire.RELEASE, {}), (wire.EXTEND, {"ttl": 1_000})):
        reply = client.call(opcode, [Entry(key, dict(fields)) for key in wrong])
        assert reply.statuses == [INVALID] * len(wrong)
        seed = random.Random(opcode)
        guesses = [seed.randbytes(8) for _ in range(512)]
        statuses = client.call(opcode, [Entry(key, dict(fields)) for key in guesses]).statuses
        assert set(statuses) == {NOT_FOUND, DENIED}  # Half of them name hard ones.
    number = int.from_bytes(handle, "little")
    for shard in range(64):
        other = (number & ~63 | shard).to_bytes(8, "little")
        status = client.call(wire.RELEASE, wire.keys_only([other])).statuses[0]
        assert status == (OK if other == handle else NOT_FOUND)
    assert node.counters()["connections_dropped_protocol"] == 0


def test_hard_ones_are_for_administrators_of_the_pool(
    client: RawConnection, node: AttackedNode
) -> None:
    client.put(b"k", b"v")
    hard = Entry(b"k", {"ttl": 1_000, "flags": wire.HARD})
    assert client.call(wire.RETAIN, [hard, Entry(b"k", {"ttl": 1_000})]).statuses == [DENIED, OK]
    with RawConnection(node.port, client_hello("ruled")) as ruler:
        ruler.put(b"k", b"v")
        (handle,) = retain(ruler, [b"k"], flags=wire.HARD)
        for opcode, fields in ((wire.RELEASE, {}), (wire.EXTEND, {"ttl": 1_000})):
            assert client.call(opcode, [Entry(handle, dict(fields))]).statuses == [DENIED]
        soft = (int.from_bytes(handle, "little") & ~64).to_bytes(8, "little")
        assert client.call(wire.RELEASE, wire.keys_only([soft])).statuses == [NOT_FOUND]
        assert ruler.call(wire.RELEASE, wire.keys_only([soft, handle])).statuses == [NOT_FOUND, OK]


def test_bodies_that_do_not_hold_their_entries_end_the_connection(node: AttackedNode) -> None:
    whole = Request(wire.RETAIN, 7, [Entry(b"k", {"ttl": 1_000})]).encode()
    for body in (whole[32:-1], whole[32:39], whole[32:] + b"\0"):
        head = bytearray(whole[4:32])
        head[8:12] = len(body).to_bytes(4, "little")
        with RawConnection(node.port) as client:
            client.send(wire.sealed(bytes(head) + body))
            assert client.failure().status == INVALID
    with RawConnection(node.port) as client:
        client.send(Request(wire.RELEASE, 8, [Entry(b"\0" * 8)], data_length=4).encode() + b"1234")
        assert client.failure().status == INVALID


def test_a_client_that_dies_leaves_its_retentions_until_their_time(node: AttackedNode) -> None:
    with RawConnection(node.port) as client:
        client.put(b"k", b"v")
        retain(client, [b"k"], ttl=300)
    wait_until(lambda: node.native.statistics()["pools"]["default"]["retained_objects"] == 0)
