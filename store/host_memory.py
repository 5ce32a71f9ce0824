"""How much memory and how many processors this process may use, as cgroup and host allow."""

import os
from pathlib import Path


def available_memory_bytes(root: Path = Path("/")) -> int:
    """Memory that can still be taken: the least of what the host has and each cgroup leaves.

    Args:
        root: where `proc` and `sys` are found.
    """
    amounts = [_host_available(root), *_cgroup_available(root)]
    return max(0, min(amounts))


def usable_cpu_count() -> int:
    """Processors this process may run on, at least 1."""
    return len(os.sched_getaffinity(0)) or 1


def _host_available(root: Path) -> int:
    for line in (root / "proc/meminfo").read_text().splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return int(amount.split()[0]) * 1024
    raise ValueError(f"{root}/proc/meminfo has no MemAvailable: set node.memory")


def _cgroup_available(root: Path) -> list[int]:
    """Limit minus use of this process's memory cgroup and of those above it, where limited."""
    amounts = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mount, limit, usage = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            mount = root / "sys/fs/cgroup/memory"
            limit, usage = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        # Inside a container the path may be the host's, which is not mounted: the mount itself
        # is then this process's cgroup, and it is always asked.
        folder = mount / path.lstrip("/")
        folders = [folder, *folder.parents]
        for each in folders[: folders.index(mount) + 1]:
            limit_text, usage_text = _read(each / limit).strip(), _read(each / usage).strip()
            if limit_text.isdigit() and usage_text.isdigit():
                used = int(usage_text) - _reclaimable(_read(each / "memory.stat"))
                amounts.append(int(limit_text) - used)
    return amounts


def _reclaimable(statistics: str) -> int:
    """Page cache that the kernel gives up first; it counts as used, yet can be taken."""
    found = dict(line.split(" ", 1) for line in statistics.splitlines() if " " in line)
    return int(found.get("total_inactive_file") or found.get("inactive_file") or 0)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # Absent or not for us: that cgroup sets no limit that we could know.
        return ""
