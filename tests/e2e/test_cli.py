"""Every command of `kvstrata`, as a process against a node of its own process."""

import hashlib
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kvstrata
from kvstrata import _kernel
from tests.e2e.command import COMMAND, Node, StartNode, environment, run

COMMANDS = ["serve", "demo", "info", "top", "bench", "doctor", "pool", "config"]
COMMANDS += ["get", "put", "rm", "ls", "stat", "exists"]

pytestmark = pytest.mark.slow


@pytest.fixture
def large_file(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(random.Random(1).randbytes(9_000_001))
    return path


def test_help_names_every_command() -> None:
    shown = run("--help").text
    for command in COMMANDS:
        assert f" {command} " in shown
    assert "Exit status" in shown


@pytest.mark.parametrize("command", ["put", "pool create", "serve", "bench"])
def test_help_of_a_command_has_examples(command: str) -> None:
    shown = run(*command.split(), "--help").text
    assert "Examples" in shown
    assert f"kvstrata {command}" in shown


def test_help_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], "--help"],
        capture_output=True,
        timeout=60,
        env=environment(),
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "typer" in imported
    heavy = {"fastapi", "pydantic", "prometheus_client", "uvicorn", "numpy", "kvstrata._kernel"}
    assert not imported & heavy


def test_version() -> None:
    assert run("--version").text.strip() == _kernel.version()


def test_put_and_get_by_standard_streams(node: Node) -> None:
    value = bytes(range(256)) * 5
    assert node.run("put", "streamed", input=value).text == "streamed: created, 1.2 KiB\n"
    assert node.run("get", "streamed").output == value


def test_put_and_get_of_files(node: Node, large_file: Path, tmp_path: Path) -> None:
    put = node.run("put", "file", large_file, "--json").json()
    assert (put["key"], put["outcome"], put["size"]) == ("file", "created", 9_000_001)
    copy = tmp_path / "copy"
    got = node.run("get", "file", copy, "--json").json()
    assert got == {"key": "file", "file": str(copy), "size": 9_000_001}
    assert copy.read_bytes() == large_file.read_bytes()
    streamed = node.run("get", "file").output
    assert hashlib.sha256(streamed).digest() == hashlib.sha256(large_file.read_bytes()).digest()


def test_input_without_an_end_is_refused(node: Node) -> None:
    with open("/dev/zero", "rb") as zeros:
        endless = subprocess.run(
            [*COMMAND, "put", "endless", "--url", node.url],
            stdin=zeros,
            capture_output=True,
            timeout=60,
            env=environment(),
        )
    assert b"standard input has more than" in endless.stderr
    assert "/dev/zero has more than" in node.run("put", "endless", "/dev/zero").error
    assert node.run("exists", "endless").code == 4


def test_put_outcomes(node: Node) -> None:
    assert node.run("put", "o", "--text", "a").text == "o: created, 1 B\n"
    assert node.run("put", "o", "--text", "bc").text == "o: replaced, 2 B\n"
    assert node.run("put", "o", "--text", "def", "--if-absent").text == "o: existed, 2 B\n"
    assert node.run("get", "o").text == "bc"


def test_ttl(node: Node) -> None:
    node.run("put", "ttl", "--text", "x", "--ttl", "1h")
    (stat,) = node.run("stat", "ttl", "--json").json()
    assert 3590 < stat["ttl"] <= 3600


def test_a_ttl_of_0_is_forever(node: Node) -> None:
    node.run("pool", "create", "brief", "--ttl", "1h")
    url = node.url.replace("://", "://brief@")
    run("put", "k", "--text", "x", "--ttl", "0", "--url", url)
    assert run("stat", "k", "--json", "--url", url).json()[0]["ttl"] is None
    node.run("pool", "drop", "brief", "--yes")
    long = node.run("put", "k", "--text", "x", "--ttl", "999999999d")
    assert long.error == (
        "error: --ttl is at most 10000000000 seconds, not '999999999d'; 0 is never\n"
    )


def test_absent_keys_end_with_4(node: Node, tmp_path: Path) -> None:
    for command in (["get", "no"], ["get", "no", tmp_path / "no"], ["rm", "no"], ["stat", "no"]):
        done = node.run(*command)
        assert done.code == 4
        assert done.error == "error: there is no key 'no': kvstrata ls shows what there is\n"
    assert not (tmp_path / "no").exists()
    assert node.run("stat", "no").text == ""
    assert node.run("rm", "no", "nor").error.startswith("error: there are no keys 'no', 'nor': ")
    assert node.run("exists", "no").text == "absent  no\n"
    assert node.run("exists", "no").code == 4


def test_exists(node: Node) -> None:
    node.run("put", "there", "--text", "x")
    assert node.run("exists", "there").text == "there   there\n"
    assert node.run("exists", "there", "--json").json() == {"there": True}


def test_ls_and_rm(node: Node) -> None:
    for name in ("ls/a", "ls/b", "ls/c"):
        node.run("put", name, "--text", name)
    listed = node.run("ls", "ls/", "--json").text.splitlines()
    assert sorted(map(json.loads, listed), key=lambda each: str(each["key"])) == [
        {"key": name, "size": 4} for name in ("ls/a", "ls/b", "ls/c")
    ]
    assert len(node.run("ls", "ls/", "--limit", "2").text.splitlines()) == 2
    assert node.run("rm", "ls/a", "--json").json() == {"removed": 1, "missing": []}
    assert node.run("rm", "--prefix", "ls/").text == "removed 2\n"
    assert node.run("ls", "ls/").text == ""


def test_an_empty_prefix_removes_nothing_unasked(node: Node) -> None:
    node.run("put", "kept", "--text", "x")
    refused = node.run("rm", "--prefix", "")
    assert refused.code == 2
    assert "give --yes" in refused.error
    assert node.run("exists", "kept").code == 0
    assert node.run("rm", "--prefix", "", "--yes").code == 0
    assert node.run("ls").text == ""


def test_keys_that_a_terminal_would_obey(node: Node) -> None:
    key = "\x1b[31m:smile:"
    assert node.run("put", key, "--text", "x").text == r"\x1b[31m:smile:: created, 1 B" + "\n"
    assert r"\x1b[31m:smile:" in node.run("ls", key).text
    assert r"\x1b[31m:smile:" in node.run("stat", key).text
    assert node.run("ls", key, "--json").json()["key"] == key
    assert node.run("exists", key).text == r"there   \x1b[31m:smile:" + "\n"


def test_keys_in_hexadecimal(node: Node) -> None:
    node.run("put", "00ff", "--hex", "--text", "x")
    assert node.run("ls", "00", "--hex").text.split()[-1] == "00ff"
    assert node.run("ls", "--json", "00", "--hex").json() == {"key": "00ff", "size": 1}
    assert "is not hexadecimal" in node.run("get", "xyz", "--hex").error


def test_stat_shows_a_table(node: Node) -> None:
    node.run("put", "[red]", "--text", "x")
    shown = node.run("stat", "[red]").text.splitlines()
    assert shown[0].split() == ["key", "size", "version", "expires", "chunks", "tier", "tensor"]
    cells = shown[1].split()
    assert cells[:3] + cells[4:] == ["[red]", "1", "B", "never", "1", "dram", "-"]
    assert "\x1b" not in shown[1]  # No colours where there is no terminal.


def test_info(node: Node) -> None:
    shown = node.run("info").text
    assert "pool" in shown
    assert "32 MiB used" in shown
    information = node.run("info", "--json").json()
    assert information["shards"] == 1
    assert "default" in information["statistics"]["pools"]


def test_top(node: Node) -> None:
    shown = node.run("top", "--once", "--interval", "200ms").text
    assert "gets/s" in shown
    rates = node.run("top", "--interval", "200ms", "--json").json()
    assert rates["seconds"] >= 0.2
    assert rates["pools"]["default"]["gets"] == 0
    assert "is not a duration" in node.run("top", "--interval", "soon").error


def test_pools(node: Node) -> None:
    created = node.run(
        *("pool", "create", "cache", "--kind", "immutable", "--eviction", "s3fifo"),
        *("--quota", "8MiB", "--ttl", "1h", "--secret", "read:r", "--secret", "admin:a", "--json"),
    ).json()
    assert created["kind"] == "immutable"
    assert (created["quota"], created["ttl"], created["read"]) == (8 << 20, 3600, 1)
    assert "cache" in node.run("pool", "list").text
    assert set(node.run("pool", "list", "--json").json()) == {"default", "cache"}
    assert (
        node.run("pool", "set", "cache", "--quota", "16MiB", "--json").json()["quota"] == 16 << 20
    )
    assert "s3fifo" in node.run("pool", "show", "cache").text
    twice = node.run("pool", "create", "cache")
    assert twice.code == 2
    assert "exists already" in twice.error
    dropped = node.run("pool", "drop", "cache", "--yes", "--json").json()
    assert (dropped["dropped"], dropped["saved"]) == ("cache", False)


def test_an_absent_pool_ends_with_4(node: Node) -> None:
    for command in (["show"], ["set", "--quota", "1MiB"], ["drop", "--yes"]):
        done = node.run("pool", *command, "absent")
        assert done.code == 4
        assert done.error == "error: there is no pool 'absent'; there are: default\n"


def test_a_change_of_a_pool_says_whether_it_was_saved(
    start_node: StartNode, node: Node, tmp_path: Path
) -> None:
    made = node.run("pool", "create", "kv")
    assert "not saved: the node has no --pools-file" in made.text
    assert (
        "not saved: a restart brings back" in node.run("pool", "set", "default", "--ttl", "0").text
    )
    node.run("pool", "drop", "kv", "--yes")
    file = tmp_path / "pools.json"
    saving = start_node("--pools-file", str(file))
    shown = saving.run("pool", "create", "kv", "--json").json()
    assert (shown["name"], shown["saved"], shown["where"]) == ("kv", True, str(file))
    assert f"saved in {file}" in saving.run("pool", "set", "kv", "--quota", "1MiB").text
    assert saving.run("pool", "drop", "kv", "-y").text == f"dropped kv, saved in {file}\n"


def test_pool_drop_asks(node: Node) -> None:
    node.run("pool", "create", "asked")
    assert node.run("pool", "drop", "asked", input=b"n\n").code == 1
    assert "asked" in node.run("pool", "list", "--json").json()
    assert (
        node.run("pool", "drop", "asked", input=b"y\n").text.strip().startswith("dropped asked, ")
    )


def test_an_immutable_pool_refuses_with_5(node: Node) -> None:
    node.run("pool", "create", "fixed", "--kind", "immutable")
    url = node.url.replace("://", "://fixed@")
    assert run("put", "k", "--text", "a", "--url", url).code == 0
    refused = run("put", "k", "--text", "b", "--url", url)
    assert refused.code == 5
    assert "put only if absent, or append" in refused.error


def test_config(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text('[node]\nshards = 3\n[pools.default]\nadmin = "s3cret"\n')
    assert run("config", "check", path).text == f"{path} is right; it sets 2 values\n"
    assert run("config", "check", path, "--json").json()["valid"] is True
    shown = run("config", "show", "--config", path, "--origin", "--json").json()
    assert shown["node.shards"] == {"value": 3, "origin": str(path)}
    assert shown["node.port"]["origin"] == "default"
    text = run("config", "show", "-c", path, "--origin").text
    assert "s3cret" not in text
    assert any(line.split() == ["node.shards", "3", str(path)] for line in text.splitlines())


def test_config_show_has_units_for_people_and_bare_numbers_for_machines(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text('[node]\nmemory = "1GiB"\n[pools.kv]\nquota = "8MiB"\nttl = "90s"\n')
    lines = [" ".join(line.split()) for line in run("config", "show", "-c", path).text.splitlines()]
    assert "node.memory 1 GiB" in lines
    assert "node.spin 100 us" in lines
    assert "node.minimum_rate 64 KiB/s" in lines
    assert {"pools.kv.quota 8 MiB", "pools.kv.ttl 90 s"} <= set(lines)
    bare = run("config", "show", "-c", path, "--json").json()
    assert (bare["node.memory"], bare["node.spin"], bare["pools.kv.ttl"]) == (1 << 30, 1e-4, 90)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[node]\nhost = "0.0.0.0"\n', "can be reached from other machines"),
        ('[pools.default]\nadmin_file = "/no/such"\n', "cannot read the secrets in '/no/such'"),
        ('[pools."A b"]\n', "cannot name a pool"),
    ],
)
def test_config_check_refuses_what_serve_refuses(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "node.toml"
    path.write_text(text)
    ports = ("--port", "0", "--http-port", "0", "--memory", "32MiB")
    for done in (run("config", "check", path), run("serve", "--config", path, *ports)):
        assert done.code == 2
        assert words in done.error


def test_config_check_takes_the_operators_word(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text('[node]\nhost = "0.0.0.0"\n')
    assert run("config", "check", path, "--insecure").code == 0


def test_config_mistakes_end_with_2(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text("[node]\nshard = 3\n")
    wrong = run("config", "check", path)
    assert wrong.code == 2
    assert "did you mean shards?" in wrong.error
    absent = run("config", "check", tmp_path / "none.toml")
    assert absent.code == 2
    assert absent.error.startswith("error: cannot read")


def test_no_node_ends_with_3() -> None:
    done = run("get", "k", "--url", "kvstrata://127.0.0.1:1?timeout=1")
    assert done.code == 3
    assert done.error.startswith("error: ")
    assert len(done.error.splitlines()) == 1


def test_wrong_url_ends_with_2() -> None:
    assert run("get", "k", "--url", "redis://localhost").code == 2


def test_wrong_secret_ends_with_5(start_node: StartNode, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    node = start_node("--admin-secret-file", str(secret))
    assert node.run("put", "k", "--text", "x").code == 5
    url = node.url.replace("://", "://default:s3cret@")
    assert run("put", "k", "--text", "x", "--url", url).code == 0


@pytest.mark.parametrize("operation", ["get", "put", "exists", "mixed"])
def test_bench(node: Node, operation: str) -> None:
    arguments = ["--operation", operation, "--key-count", "100", "--connections", "3"]
    result = node.run("bench", *arguments, "--count", "2000", "--json").json()
    assert result["operations"] == 2000
    assert result["operations_per_s"] > 0
    assert node.run("ls", "kvstrata-bench").text == ""  # It leaves nothing behind.


def test_bench_for_a_time_in_words(node: Node) -> None:
    shown = node.run("bench", "--seconds", "0.3", "--key-count", "10", "--size", "16KiB").text
    assert "operations/s" in shown


def test_bench_on_keys_that_are_there(node: Node) -> None:
    for number in range(3):
        node.run("put", f"mine-{number:012}", "--text", "value")
    arguments = ["--operation", "get", "--key-prefix", "mine-", "--count", "100"]
    assert node.run("bench", node.url, *arguments, "--key-count", "3", "--json").json()
    missing = node.run("bench", node.url, *arguments, "--key-count", "30")
    assert missing.code == 4
    assert "were absent" in missing.error
    assert len(node.run("ls", "mine-").text.splitlines()) == 3


def test_bench_removes_its_keys_when_it_is_terminated(node: Node) -> None:
    with subprocess.Popen(
        [*COMMAND, "bench", node.url, "--seconds", "50", "--key-count", "10"], env=environment()
    ) as bench:
        await_keys(node, "kvstrata-bench")
        bench.terminate()
        assert bench.wait(timeout=30) == 143
    assert node.run("ls", "kvstrata-bench").text == ""


def await_keys(node: Node, prefix: str) -> None:
    deadline = time.monotonic() + 30
    with kvstrata.connect(node.url) as store:
        while not any(store.scan(prefix)):
            assert time.monotonic() < deadline, f"no key {prefix}... within 30 s"
            time.sleep(0.05)


def test_doctor() -> None:
    shown = run("doctor").text
    assert "self-test" in shown
    findings = run("doctor", "--json").json()
    by_name = {finding["name"]: finding for finding in findings}
    assert by_name["self-test"]["state"] == "good"
    for finding in findings:
        assert (finding["state"] in ("good", "unused")) == (finding["remedy"] == "")


def test_demo() -> None:
    shown = run("demo").text
    assert " 0 failed" in shown
    assert "Llama-3.1-8B" in shown


def test_debug_shows_the_traceback() -> None:
    done = subprocess.run(
        [*COMMAND, "get", "k", "--url", "redis://localhost"],
        capture_output=True,
        timeout=60,
        env=environment(KVSTRATA_LOG__LEVEL="debug"),
    )
    assert b"Traceback" in done.stderr
