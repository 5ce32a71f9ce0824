"""Available memory, told from files such as the kernel writes."""

from pathlib import Path

import pytest

from kvstrata.store.host_memory import available_memory_bytes, usable_cpu_count

GIB = 1 << 30


def lay(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MEMINFO = {"proc/meminfo": "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n"}


def test_without_cgroups_the_host_decides(tmp_path: Path) -> None:
    assert available_memory_bytes(lay(tmp_path, MEMINFO)) == 8 * GIB


def test_a_cgroup_of_version_2_limits_also_from_above(tmp_path: Path) -> None:
    files = {
        **MEMINFO,
        "proc/self/cgroup": "0::/outer/inner\n",
        "sys/fs/cgroup/outer/inner/memory.max": "max\n",
        "sys/fs/cgroup/outer/inner/memory.current": "5\n",
        "sys/fs/cgroup/outer/memory.max": f"{4 * GIB}\n",
        "sys/fs/cgroup/outer/memory.current": f"{2 * GIB}\n",
        "sys/fs/cgroup/outer/memory.stat": f"anon 1\ninactive_file {GIB}\n",
    }
    # 4 GiB less 2 GiB used, of which 1 GiB is page cache that can be taken.
    assert available_memory_bytes(lay(tmp_path, files)) == 3 * GIB


def test_a_cgroup_of_version_1_limits(tmp_path: Path) -> None:
    folder = "sys/fs/cgroup/memory"
    files = {
        **MEMINFO,
        "proc/self/cgroup": "5:cpu:/x\n4:memory,hugetlb:/not/mounted/here\n",
        f"{folder}/memory.limit_in_bytes": f"{2 * GIB}\n",
        f"{folder}/memory.usage_in_bytes": f"{GIB}\n",
    }
    assert available_memory_bytes(lay(tmp_path, files)) == GIB


def test_this_machine() -> None:
    assert available_memory_bytes() > 0
    assert usable_cpu_count() >= 1


def test_a_host_that_does_not_say(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="set node"):
        available_memory_bytes(lay(tmp_path, {"proc/meminfo": "MemTotal: 1 kB\n"}))
