"""Files much larger than what is spent on sending them."""

import subprocess
import sys
from pathlib import Path

import pytest

import kvstrata

MIB = 1 << 20
SIZE = 128 * MIB
# What the sender may grow by, beside what a small file takes as well.
GROWTH_BYTES_MAX = 4 * MIB
SENDER = """
import resource, sys
import kvstrata

with kvstrata.connect(sys.argv[1]) as store:
    for path in sys.argv[2:]:
        store.put_file(path, path)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow  # Its process is a plain one, and what it measures is memory.
def test_a_large_file_needs_neither_memory_nor_a_copy(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(bytes(2 * MIB))
    with open(large, "wb") as file:
        file.truncate(SIZE)
        file.seek(SIZE // 2)
        file.write(b"middle")
    with kvstrata.local(SIZE + 64 * MIB) as store:
        sender = subprocess.run(
            [sys.executable, "-c", SENDER, store.node_url, str(small), str(large)],
            env={"PYTHONPATH": ":".join(sys.path), "TMPDIR": str(tmp_path / "absent")},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        before, after = map(int, sender.stdout.split())
        assert after - before < GROWTH_BYTES_MAX
        status = store.stat(str(large))
        assert status is not None
        assert status.size == SIZE
        assert store.get_range(str(large), SIZE // 2 - 1, 8) == b"\0middle\0"
