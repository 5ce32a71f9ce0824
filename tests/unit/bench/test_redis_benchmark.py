"""What redis-benchmark is asked and what is read from its answer."""

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from bench.redis_benchmark import Command, Load, key_name, requests_per_s, run

HEAD = (
    '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms",'
    '"p95_latency_ms","p99_latency_ms","max_latency_ms"\n'
)
SET_ROW = '"SET","18909.09","2.330","0.256","0.687","9.687","9.719","9.719"\n'
GET_ROW = '"GET","29714.29","0.949","0.176","0.287","5.943","5.991","5.991"\n'
LOAD = Load(Command.GET, 64, 100_000, 5_000, pipeline_depth=16)


def put_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "redis-benchmark"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_reads_the_rate_of_the_test_asked_for() -> None:
    output = HEAD + SET_ROW + GET_ROW
    assert requests_per_s(output, Command.SET) == pytest.approx(18909.09)
    assert requests_per_s(output, Command.GET) == pytest.approx(29714.29)


def test_columns_are_found_by_name() -> None:
    assert requests_per_s('"rps","test"\n"7.5","GET"\n', Command.GET) == pytest.approx(7.5)


@pytest.mark.parametrize(
    "output",
    [
        "",
        HEAD,
        HEAD + SET_ROW,
        HEAD + '"GET"\n',
        HEAD + '"GET","0.00"\n',
        HEAD + '"GET","nan"\n',
        GET_ROW,
    ],
)
def test_an_output_without_the_rate_is_told(output: str) -> None:
    with pytest.raises(ValueError, match="told no rate of GET"):
        requests_per_s(output, Command.GET)


def test_a_rate_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="fast"):
        requests_per_s(HEAD + '"GET","fast"\n', Command.GET)


def test_keys_are_those_of_its_own_tests() -> None:
    assert key_name(42) == b"key:000000000042"


def test_arguments() -> None:
    words = LOAD.arguments(7000)
    assert words[0] == "redis-benchmark"
    options = dict(pairwise(words))
    expected = {"-p": "7000", "-c": "50", "-P": "16", "-n": "5000", "-r": "100000", "-d": "64"}
    assert options.items() >= expected.items()
    assert options["-t"] == "get"


@pytest.mark.parametrize(
    ("value_bytes", "pipeline_depth", "name"),
    [(64, 1, "GET 64 B"), (64, 16, "GET 64 B, pipeline 16"), (1 << 20, 1, "GET 1 MiB")],
)
def test_a_load_is_told_in_words(value_bytes: int, pipeline_depth: int, name: str) -> None:
    assert str(Load(Command.GET, value_bytes, 10, 10, pipeline_depth)) == name


def test_run_returns_the_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_path(tmp_path, monkeypatch, f"printf '%s' '{HEAD + GET_ROW}'")
    assert run(7000, LOAD) == pytest.approx(29714.29)


def test_a_refusal_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_path(tmp_path, monkeypatch, "echo 'Error from server: OOM' >&2; exit 1")
    with pytest.raises(RuntimeError, match=r"ended with 1 in GET 64 B.*Error from server: OOM"):
        run(7000, LOAD)


def test_waiting_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_path(tmp_path, monkeypatch, "exec sleep 50")
    monkeypatch.setattr("bench.redis_benchmark.RUN_S_MAX", 0.1)
    with pytest.raises(subprocess.TimeoutExpired):
        run(7000, LOAD)
