"""No reader ever sees a torn value, whatever is done to the key meanwhile."""

import contextlib
import random
import subprocess
import sys
import threading

import pytest

import kvstrata
from kvstrata import LocalStore, PoolConfig, _kernel
from kvstrata.store import limits
from kvstrata.store.url import parse
from tests.concurrency.crowd import crowd
from tests.concurrency.stalled import StalledClient, live_bytes
from tests.contract.contents import check_described, content, described, wait_until
from tests.e2e.reference_client import RawConnection, client_hello
from tests.unit.transport import reference_decoder as wire

MIB = 1 << 20
CHUNK = limits.CHUNK_BYTES
SIZES = (16, 200, 9_000, 70_000, CHUNK, 2 * CHUNK + 77)

# Overwrites one key until it is killed, like a second user of the store.
WRITER = """
import sys, kvstrata
from tests.contract.contents import described
store = kvstrata.connect(sys.argv[1])
sizes = [int(size) for size in sys.argv[2:]]
print("ready", flush=True)
for seed in range(10**9):
    store.put("k", described(sizes[seed % len(sizes)], seed))
"""


def test_two_writers_of_one_key_and_readers(store: LocalStore) -> None:
    store.put("k", described(16, 0))
    own = threading.local()

    def write(seed: int) -> None:
        store.put("k", described(SIZES[seed % len(SIZES)], seed))

    def read(_: int) -> None:
        value = store.get("k")
        assert value is not None
        check_described(value)

    def read_into(_: int) -> None:
        if not hasattr(own, "buffer"):
            own.buffer = bytearray(3 * CHUNK)
        size = store.get_into("k", own.buffer)
        check_described(memoryview(own.buffer)[:size])

    def read_range(step: int) -> None:
        head = store.get_range("k", 0, 16)
        assert head is not None
        buffer = bytearray(2 * CHUNK)
        result = store.get_range_into("k", step % 16, buffer)
        assert result is not None
        assert result.length == min(len(buffer), result.size - step % 16)

    crowd(1, write, lambda step: write(step + 10**6), read, read_into, read_range)


def test_writers_in_other_processes(store: LocalStore) -> None:
    store.put("k", described(16, 0))
    command = [sys.executable, "-c", WRITER, store.node_url, *map(str, SIZES)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
        seeds = set()

        def read(_: int) -> None:
            value = store.get("k")
            assert value is not None
            seeds.add(check_described(value))

        crowd(0.7, read)
        assert len(seeds) > 3
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


def test_put_if_absent_has_one_winner(store: LocalStore) -> None:
    members = 6
    meeting = threading.Barrier(members)
    created: list[tuple[int, int]] = []

    def member(number: int) -> None:
        for step in range(60):
            meeting.wait(10)
            size = SIZES[step % 5]
            if store.put(f"{step}", described(size, number), if_absent=True).outcome == "created":
                created.append((step, number))

    threads = [threading.Thread(target=member, args=[number]) for number in range(members)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(step for step, _ in created) == list(range(60))
    for step, number in created:
        value = store.get(f"{step}")
        assert value is not None
        assert check_described(value) == number


def test_appends_of_many_leave_no_gap_and_no_overlap(store: LocalStore) -> None:
    """Each part tells where it belongs, so that a lost or doubled one shows."""
    part_bytes = 12_345

    def append(_: int) -> None:
        status = store.stat("k")
        length = status.size if status else 0
        if length < 4 * MIB:
            # Another was faster.
            with contextlib.suppress(kvstrata.MismatchError):
                store.append("k", described(part_bytes, length), length)

    def read(_: int) -> None:
        value = store.get("k")
        for at in range(0, len(value or b""), part_bytes):
            assert check_described(memoryview(value or b"")[at : at + part_bytes]) == at

    crowd(1, append, append, append, read)


def test_readers_while_keys_are_evicted_expire_and_are_replaced() -> None:
    """A store too small for its keys: what is found is right, what is not found is gone."""
    pools = {"default": PoolConfig(eviction="s3fifo")}
    with kvstrata.local("32MiB", shards=2, pools=pools) as store:
        hits = []

        def write(seed: int) -> None:
            size = SIZES[seed * 7 % len(SIZES)]
            ttl = 0.05 if seed % 3 == 0 else None
            store.put(f"{seed % 300}", described(size, seed), ttl=ttl)

        def read(step: int) -> None:
            value = store.get(f"{step * 13 % 300}")
            if value is not None:
                hits.append(check_described(value))

        def read_many(step: int) -> None:
            keys = [f"{(step + i) % 300}" for i in range(10)]
            for value in store.get_many(keys):
                assert value is None or check_described(value) >= 0

        def delete(step: int) -> None:
            store.delete(f"{step * 17 % 300}")

        crowd(2, write, lambda step: write(step + 10**6), read, read, read_many, delete)
        counters = store.admin("statistics")["pools"]["default"]
        assert counters["evictions"] > 0
        assert counters["expirations"] > 0
        assert counters["corruptions"] == 0
        assert len(hits) > 10


def test_a_stalled_reader_keeps_its_version_and_blocks_no_writer(store: LocalStore) -> None:
    first = described(32 * MIB, 1)
    store.put("k", first)
    buffer = bytearray(len(first))
    reader = StalledClient(store, _kernel.Get(b"k", buffer))
    for seed in range(100):
        store.put("k", described(MIB, seed))
    newest = store.get("k")
    assert newest is not None
    assert check_described(newest) == 99
    reader.finish()
    assert reader.operation.status == 0
    assert buffer == first
    reader.vanish()
    wait_until(lambda: live_bytes(store) < 2 * MIB, "the old version's memory is free")


@pytest.mark.parametrize("end", ["delete", "expire"])
def test_a_stalled_reader_finishes_what_is_gone(store: LocalStore, end: str) -> None:
    value = described(24 * MIB, 1)
    store.put("k", value)
    buffer = bytearray(len(value))
    reader = StalledClient(store, _kernel.Get(b"k", buffer))
    if end == "delete":
        store.delete("k")
    else:
        store.expire("k", 0.001)
    wait_until(lambda: store.get("k") is None, "the object goes")
    store.put("other", described(40 * MIB, 2))
    reader.finish()
    assert buffer == value
    reader.vanish()


def test_a_reader_that_vanishes_gives_its_memory_back(store: LocalStore) -> None:
    store.put("k", content(32 * MIB))
    reader = StalledClient(store, _kernel.Get(b"k", bytearray(32 * MIB)))
    store.delete("k")
    reader.vanish()
    wait_until(lambda: live_bytes(store) == 0, "its memory is free")


def test_stalled_readers_survive_eviction_and_moves() -> None:
    """Memory is turned over and moved about under readers that hold parts of it."""
    with kvstrata.local("48MiB") as store:
        choose = random.Random(3)
        for round_number in range(3):
            values = [described(5 * MIB, seed) for seed in range(4)]
            buffers = [bytearray(len(value)) for value in values]
            readers = []
            for value, buffer in zip(values, buffers, strict=True):
                store.put("k", value)
                readers.append(StalledClient(store, _kernel.Get(b"k", buffer)))
            for i in range(6_000):
                store.put(f"{i % 3000}", content(choose.choice([40, 700, 5_000])))
            for i in range(60):
                size = choose.choice([20_000, 300_000, MIB])
                store.put(f"large-{i}", described(size, i))
                found = store.get(f"large-{i}")
                assert found is not None, round_number
                check_described(found)
            for value, buffer, reader in zip(values, buffers, readers, strict=True):
                reader.finish()
                assert buffer == value
                reader.vanish()


def send_half_a_put(store: LocalStore, key: bytes, value: bytes) -> None:
    """Announces the value, sends half of it and leaves."""
    target = parse(store.node_url)
    hello = client_hello(target.pool, target.secret)
    with RawConnection(target.port, hello) as writer:
        entry = wire.put_entry(key, value, writer.chunk_bytes)
        capsule = wire.Request(wire.PUT, 1, [entry], len(value)).encode()
        writer.send(capsule + value[: len(value) // 2])


def test_a_writer_that_stops_half_way_leaves_no_trace(store: LocalStore) -> None:
    store.put("old", b"value")
    for key in (b"new", b"old"):
        send_half_a_put(store, key, content(64 * MIB))
    wait_until(lambda: live_bytes(store) < MIB, "the reserved memory is free")
    assert store.get("new") is None
    assert store.get("old") == b"value"
    assert list(store.scan()) == [(b"old", 5)]


def test_a_writer_killed_at_any_time_leaves_a_whole_value(store: LocalStore) -> None:
    command = [sys.executable, "-c", WRITER, store.node_url, str(24 * MIB)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        wait_until(lambda: live_bytes(store) > MIB, "it writes")
    finally:
        writer.kill()
        writer.communicate()
    value = store.get("k")
    assert value is None or check_described(value) >= 0
    store.delete("k")
    wait_until(lambda: live_bytes(store) == 0, "its memory is free")
