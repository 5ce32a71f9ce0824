"""A server's CPU time, read from its clock."""

import os
from pathlib import Path

from bench.process import ServerProcess

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def test_cpu_time_is_that_of_the_kernel_s_count() -> None:
    with ServerProcess("burner", ["sh", "-c", "while :; do :; done"], lambda: True) as server:
        while server.cpu_s() < 0.1:
            pass
        before_s = server.cpu_s()
        fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
        counted_s = (int(fields[11]) + int(fields[12])) * TICK_S
        assert before_s - 2 * TICK_S <= counted_s <= server.cpu_s() + TICK_S
