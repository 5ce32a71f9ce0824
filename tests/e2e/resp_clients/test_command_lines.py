"""valkey-cli and Debian's redis-cli in all their modes that look at a server."""

import re
import subprocess

import pytest

from tests.differential.client import Client
from tests.e2e.resp_clients.programs import debian_program, run_program, valkey_cli

KEYS = {b"small": 10, b"larger": 1_000, b"largest": 100_000}


@pytest.fixture(params=["valkey-cli", "redis-cli"])
def command_line(request: pytest.FixtureRequest, port: int) -> list[str]:
    """The program and where it finds the node, on which are a few keys of several sizes."""
    with Client(port) as client:
        for key, size in KEYS.items():
            client.call(b"SET", key, bytes(size))
    is_valkey = request.param == "valkey-cli"
    program = valkey_cli() if is_valkey else debian_program("redis-cli", "redis-tools")
    return [program, "-p", str(port)]


@pytest.mark.parametrize("version", ["-2", "-3"])
def test_commands_one_by_one(command_line: list[str], version: str) -> None:
    commands = b"SET k v\nGET k\nINCR n\nMGET k n absent\nMULTI\nGET k\nEXEC\nINCR k\nLPUSH l x\n"
    lines = run_program(*command_line, version, input=commands).splitlines()
    assert lines[:3] == ["OK", "v", "1"]
    assert lines[3:6] == ["v", "1", ""]
    assert lines[6:9] == ["OK", "QUEUED", "v"]
    assert lines[9] == "ERR value is not an integer or out of range"
    assert "ERR unknown command 'LPUSH', with args beginning with: 'l' 'x' " in lines[10:]


def test_repeated_and_from_standard_input(command_line: list[str]) -> None:
    assert run_program(*command_line, "-r", "3", "INCR", "repeated") == "1\n2\n3\n"
    binary = b"line\r\nother\r\n"
    assert run_program(*command_line, "-x", "SET", "k", input=binary) == "OK\n"
    assert run_program(*command_line, "STRLEN", "k") == f"{len(binary)}\n"
    assert run_program(*command_line, "--csv", "MGET", "absent", "repeated") == 'NULL,"3"\n'


def test_a_mass_of_commands_through_a_pipe(command_line: list[str]) -> None:
    commands = b"".join(b"SET k%d %d\r\n" % (n, n) for n in range(10_000))
    output = run_program(*command_line, "--pipe", input=commands)
    assert "errors: 0, replies: 10000" in output
    assert run_program(*command_line, "DBSIZE") == f"{10_000 + len(KEYS)}\n"


def test_scan(command_line: list[str]) -> None:
    assert set(run_program(*command_line, "--scan").split()) == {key.decode() for key in KEYS}
    found = run_program(*command_line, "--scan", "--pattern", "larg*").split()
    assert sorted(found) == ["larger", "largest"]


def test_big_keys(command_line: list[str]) -> None:
    output = run_program(*command_line, "--bigkeys")
    assert "Sampled 3 keys in the keyspace!" in output
    assert re.search(r"Biggest string found .*largest.* has 100000 bytes", output), output


def test_keys_by_memory(command_line: list[str]) -> None:
    output = run_program(*command_line, "--memkeys")
    found = re.search(r"Biggest string found .*largest.* has (\d+) bytes", output)
    assert found, output
    assert 100_000 <= int(found[1]) < 200_000


def test_hot_keys(command_line: list[str], port: int) -> None:
    """Of the pool that counts uses."""
    with Client(port) as client:
        client.call(b"AUTH", b"hot", b"any")
        client.call(b"MSET", b"used", b"1", b"unused", b"2")
        for _ in range(10):
            client.call(b"GET", b"used")
    as_hot = ("--user", "hot", "--pass", "any", "--no-auth-warning")
    output = run_program(*command_line, *as_hot, "--hotkeys")
    counts = dict(re.findall(r'hot key found with counter: (\d+)\s+keyname: "?(\w+)', output))
    assert "used" in counts.values(), output
    assert max(counts, key=int) != "0"
    assert counts[max(counts, key=int)] == "used"


def test_hot_keys_are_counted_in_no_other_pool(command_line: list[str]) -> None:
    done = subprocess.run([*command_line, "--hotkeys"], capture_output=True, timeout=20)
    assert b"LFU" in done.stdout + done.stderr


def test_latency(command_line: list[str]) -> None:
    words = run_program(*command_line, "--raw", "--latency").split()
    lowest, highest, mean, samples = map(float, words[:4])
    assert 0 <= lowest <= mean <= highest < 1_000
    assert samples > 10


def test_rolling_figures(command_line: list[str]) -> None:
    """`--stat` runs until it is stopped."""
    with subprocess.Popen(
        [*command_line, "-i", "0.01", "--stat"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            lines = [process.stdout.readline() for _ in range(4)]
        finally:
            process.kill()
    assert lines[1].split() == ["keys", "mem", "clients", "blocked", "requests", "connections"]
    keys, _memory, clients, blocked, requests = lines[3].split()[:5]
    assert (int(keys), int(blocked)) == (len(KEYS), 0)
    assert int(clients) >= 1
    assert int(requests) > 0
