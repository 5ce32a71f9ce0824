"""Debian's redis-benchmark: it runs to its end, and what it wrote is there."""

import pytest

from tests.differential.client import Client
from tests.e2e.resp_clients.programs import debian_program, run_program

REQUESTS = 2_000
TESTS = ("SET", "GET", "INCR", "MSET (10 keys)")


@pytest.mark.parametrize("depth", [1, 16])
def test_it_runs_to_its_end(port: int, depth: int) -> None:
    program = debian_program("redis-benchmark", "redis-tools")
    load = ("-n", str(REQUESTS), "-c", "20", "-P", str(depth), "-r", "1000", "--csv")
    output = run_program(program, "-p", str(port), "-t", "set,get,incr,mset", *load)
    rates = dict(line.replace('"', "").split(",")[:2] for line in output.splitlines())
    assert set(TESTS) < set(rates), output
    assert all(float(rates[name]) > 0 for name in TESTS)
    with Client(port) as client:
        info = client.call(b"INFO", b"commandstats")
        counters = client.call(b"KEYS", b"counter:*")
        assert info is not None
        assert counters is not None
        assert counters.items
        sums = [client.call(b"GET", each.text or b"") for each in counters.items]
    assert sum(int(each.text or 0) for each in sums if each) == REQUESTS
    assert b"cmdstat_mset:calls=" in (info.text or b"")
