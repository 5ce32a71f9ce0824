"""A process ends as it likes while its threads are inside calls."""

import subprocess
import sys

import pytest

PROGRAM = """
import threading, time
import kvstrata
store = kvstrata.local("64MiB")
value = bytes(5 << 20)
store.put("large", value)
store.put("small", b"v")
def work():
    while True:
        {call}
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
{end}
"""
CALLS = {
    "get": "store.get('large')",
    "small_get": "store.get('small')",
    "put": "store.put('new', value)",
    "exists": "store.exists_many(['small'] * 100)",
}
# With the node in this process, and with one that is of no concern to it any more.
ENDS = {"open": "", "closed": "store.node.stop()"}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_daemon_threads_inside_calls_do_not_spoil_the_exit(call: str, end: str) -> None:
    for _ in range(3):
        program = PROGRAM.format(call=call, end=end)
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "terminate" not in done.stderr
