"""Clients that share memory with the node and scribble over it, lie about it, or are killed: the
node lives, others are served, and nothing of them stays behind.
"""

import fcntl
import mmap
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import kvstrata
from kvstrata import Store
from tests.e2e.nodes import MIB, AttackedNode, attacked_node, wait_for_rest, wait_until
from tests.e2e.shared_memory_client import (
    COMPLETION_READER,
    FIRST_RING,
    SUBMISSION_WRITER,
    RingConnection,
    region_fields,
)
from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Entry, Hello

CHUNK = 512 * 1024
OK, DENIED, INVALID, TOO_LARGE = 0, 9, 12, 8
WITNESS = bytes(range(256)) * 8_192  # 2 MiB

F_ADD_SEALS = 1033
SEAL_SHRINK = 2


@pytest.fixture(params=[1, 2], ids=["one_shard", "two_shards"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AttackedNode]:
    with attacked_node(
        shard_count=request.param, memory_bytes=128 * MIB, unix_path=str(tmp_path / "node.sock")
    ) as running:
        yield running


@pytest.fixture
def path(node: AttackedNode) -> str:
    return node.native.unix_path


@pytest.fixture
def witness(node: AttackedNode) -> Iterator[Store]:
    """Another client, which is served as ever: before, meanwhile and afterwards."""
    with kvstrata.connect(f"kvstrata://127.0.0.1:{node.port}", transport="shm") as store:
        region = store.allocate(len(WITNESS))
        memory = memoryview(region)
        over = threading.Event()
        faults: list[BaseException] = []

        def work() -> None:
            try:
                while not over.wait(0.003):
                    memory[:] = WITNESS
                    store.put("witness", memory)
                    memory[:] = bytes(len(WITNESS))
                    assert store.get_into("witness", memory) == len(WITNESS)
                    assert memory == WITNESS
            except BaseException as fault:
                faults.append(fault)
                raise

        thread = threading.Thread(target=work)
        thread.start()
        yield store
        over.set()
        thread.join(20)
        assert not faults
        assert not thread.is_alive()
        memory.release()
        region.close()
    wait_for_rest(node)
    wait_until(lambda: node.counters()["region_bytes"] == 0, 1)


def sealed_memory(length: int, seals: int = SEAL_SHRINK) -> int:
    descriptor = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, length)
    fcntl.fcntl(descriptor, F_ADD_SEALS, seals)
    return descriptor


def test_a_stranger_is_served(witness: Store, path: str) -> None:
    with RingConnection(path) as client:
        value = b"v" * 3_000
        put = Entry(b"key", {"value_length": 3_000, "room": 3_000})
        assert client.call(wire.PUT, [put], value).outcomes[0].status == OK
        assert client.call(wire.GET, [wire.get_entry(b"key", MIB)]).outcomes[0].status == OK
        assert client.received == value
        descriptor = sealed_memory(MIB)
        memory = mmap.mmap(descriptor, MIB)
        memory[1000:301_000] = b"r" * 300_000
        assert client.add_region(descriptor, MIB) == OK
        os.close(descriptor)
        source = region_fields(1000, 300_000) | {"value_length": 300_000}
        assert client.call(wire.PUT, [Entry(b"key", source)]).outcomes[0].status == OK
        memory[:] = bytes(MIB)
        sink = Entry(b"key", region_fields(MIB - 400_000, 400_000))
        outcome = client.call(wire.GET, [sink]).outcomes[0]
        assert outcome.checksums == wire.checksums(b"r" * 300_000, CHUNK)
        assert memory[MIB - 400_000 : MIB - 100_000] == b"r" * 300_000
        removal = Entry(b"", region_fields(0, MIB))
        assert client.call(wire.REMOVE_REGION, [removal]).outcomes[0].status == OK
        assert client.call(wire.GET, [sink]).outcomes[0].status == DENIED


@pytest.mark.parametrize(
    ("place", "count"),
    [
        *((SUBMISSION_WRITER, count) for count in (1 << 20, (1 << 64) - 1, 1 << 63)),
        *((COMPLETION_READER, count) for count in (1 << 20, 1 << 40, 1 << 63)),
    ],
)
def test_an_impossible_count_ends_the_connection(
    witness: Store, path: str, place: int, count: int
) -> None:
    with RingConnection(path) as client:
        client.call(wire.EXISTS, [Entry(b"key")])
        client.set_line(place, count)
        client.ring_doorbell()
        if place == COMPLETION_READER:
            with suppress(OSError):  # Which makes the node look at it.
                client.begin(wire.EXISTS, [Entry(b"key")])
        assert client.at_end()


def test_whoever_scribbles_over_everything_harms_only_himself(witness: Store, path: str) -> None:
    for seed in range(12):
        rng = random.Random(seed)
        with RingConnection(path) as client:
            for _ in range(60):
                with suppress(OSError, ValueError, AssertionError):
                    kind = rng.randrange(4)
                    if kind == 0:
                        at = rng.randrange(128, 640, 4)
                        client.memory[at : at + 4] = rng.randbytes(4)
                    elif kind == 1:
                        client.set_line(rng.randrange(128, 640, 128), rng.randrange(1 << 20))
                    elif kind == 2:
                        at = FIRST_RING + rng.randrange(2 * client.ring_bytes - 300)
                        client.memory[at : at + 300] = rng.randbytes(300)
                    else:
                        client.begin(rng.choice([wire.GET, wire.PUT, 40, 41]), [Entry(b"key")])
                    client.ring_doorbell()
            time.sleep(0.01)


def test_what_is_no_region_is_refused(witness: Store, path: str) -> None:
    with RingConnection(path) as client, open("/dev/zero", "rb") as device:
        unsealed = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(unsealed, MIB)
        good = sealed_memory(MIB)
        assert client.add_region(unsealed, MIB) == INVALID
        assert client.add_region(device.fileno(), MIB) == INVALID
        assert client.add_region(client.socket.fileno(), MIB) == INVALID
        assert client.add_region(good, MIB + 1) == INVALID
        assert client.add_region(good, 0) == INVALID
        assert client.add_region(good, MIB, rights=0) == INVALID
        assert client.add_region(good, MIB, rights=4) == INVALID
        assert client.add_region(good, 1 << 60) == TOO_LARGE
        assert client.add_region(good, MIB) == OK
        assert client.add_region(good, MIB) == INVALID  # The id is taken.
        entry = Entry(b"", {"rights": 3} | region_fields(0, MIB, region=2))
        assert client.call(wire.ADD_REGION, [entry]).outcomes[0].status == INVALID  # No descriptor.
        for number in range(2, 257):
            assert client.add_region(good, MIB, region=number) == OK
        assert client.add_region(good, MIB, region=300) == TOO_LARGE
        os.close(unsealed)
        os.close(good)


@pytest.mark.parametrize(
    ("offset", "length", "region"),
    [(0, MIB + 1, 1), (1, MIB, 1), (MIB, 5_000, 1), (2**64 - 1, 5_000, 1), (0, 5_000, 2)],
)
def test_no_place_outside_of_a_region_is_reached(
    witness: Store, path: str, offset: int, length: int, region: int
) -> None:
    with RingConnection(path) as client:
        descriptor = sealed_memory(MIB)
        assert client.add_region(descriptor, MIB) == OK
        os.close(descriptor)
        fields = region_fields(offset, length, region=region)
        read = Entry(b"witness", fields)
        assert client.call(wire.GET, [read]).outcomes[0].status == DENIED
        write = Entry(b"key", fields | {"value_length": length})
        assert client.call(wire.PUT, [write]).outcomes[0].status == DENIED
        assert client.call(wire.EXISTS, [Entry(b"key")]).outcomes[0].status != OK


def test_rights_are_kept_to(witness: Store, path: str) -> None:
    with RingConnection(path) as client:
        descriptor = sealed_memory(2 * len(WITNESS))
        for region, rights in ((1, 1), (2, 2)):
            assert (
                client.add_region(descriptor, 2 * len(WITNESS), region=region, rights=rights) == OK
            )
        os.close(descriptor)
        wait_until(lambda: witness.exists("witness"))
        for region, opcode, allowed in ((1, wire.GET, False), (2, wire.GET, True)):
            entry = Entry(b"witness", region_fields(0, len(WITNESS), region=region))
            status = client.call(opcode, [entry]).outcomes[0].status
            assert status == (OK if allowed else DENIED)
        for region, allowed in ((1, True), (2, False)):
            fields = region_fields(0, 9_000, region=region) | {"value_length": 9_000}
            status = client.call(wire.PUT, [Entry(b"key", fields)]).outcomes[0].status
            assert status == (OK if allowed else DENIED)


def test_regions_that_go_while_they_are_used(witness: Store, path: str) -> None:
    size = 16 * MIB
    for _ in range(5):
        with RingConnection(path) as client:
            descriptor = sealed_memory(size)
            assert client.add_region(descriptor, size) == OK
            fields = region_fields(0, size) | {"value_length": size}
            client.begin(wire.PUT, [Entry(b"key", fields)])
            client.begin(wire.REMOVE_REGION, [Entry(b"", region_fields(0, size))])
            client.begin(wire.PUT, [Entry(b"key", fields)])
            # Its pages go, and come back as zeros, while they are copied.
            with mmap.mmap(descriptor, size) as memory:
                os.close(descriptor)
                memory.madvise(mmap.MADV_REMOVE)


def test_regions_and_rings_are_for_who_shares_memory_only(
    witness: Store, node: AttackedNode, path: str
) -> None:
    entry = Entry(b"", {"rights": 3} | region_fields(0, MIB))
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect(path)
        plain.sendall(Hello().encode())
        answer, descriptors, _, _ = socket.recv_fds(plain, 1 << 16, 4)
        assert descriptors == []
        assert wire.decode_hello(answer).number(5) == 0
        plain.sendall(wire.Request(wire.ADD_REGION, 1, [entry]).encode())
        completion = wire.decode_completion(plain.recv(1 << 16))
        assert completion.status == 13
        assert "share memory" in completion.message
    with socket.create_connection(("127.0.0.1", node.port)) as tcp:
        tcp.sendall(Hello(body=wire.attribute(5, 1)).encode())
        assert wire.decode_hello(tcp.recv(1 << 16)).number(5) == 0


CLIENT = """
import sys, kvstrata
store = kvstrata.connect(sys.argv[1], transport="shm")
size = 8 << 20
region = store.allocate(2 * size)
memory = memoryview(region)
keys = [f"victim {number}" for number in range(16)]
parts = [memory[number << 19:][: 1 << 19] for number in range(16)]
store.put_many(zip(keys, parts))
print("ready", flush=True)
while True:
    if sys.argv[2] == "put":
        store.put("victim", memory[:size])
    elif sys.argv[2] == "get":
        store.get_into("victim 0", memory[:size])
    elif sys.argv[2] == "many":
        store.put_many(zip(keys, parts))
        store.get_many_into(keys, parts)
    elif sys.argv[2] == "plain":
        store.put("victim", bytes(size))
        store.get("victim")
    else:
        store.exists("victim")
"""


@pytest.mark.parametrize("doing", ["put", "get", "many", "plain", "small"])
def test_of_a_killed_client_nothing_stays(witness: Store, node: AttackedNode, doing: str) -> None:
    rng = random.Random(doing)
    url = f"kvstrata://127.0.0.1:{node.port}"
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", CLIENT, url, doing], stdout=subprocess.PIPE, text=True
        ) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n"
            time.sleep(rng.random() / 5)
            client.send_signal(signal.SIGKILL)
            client.wait(10)
            killed = time.monotonic()
        wait_until(lambda: node.counters()["connections_open"] <= 2, 1)
        wait_until(lambda: node.counters()["region_bytes"] <= len(WITNESS), 1)
        assert time.monotonic() - killed < 1.5
