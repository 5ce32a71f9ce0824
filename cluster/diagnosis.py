"""What a machine has for a store, and what it lacks: one finding a matter.

Findings are read from files of the kernel below `root`, so that tests can lay others there. What
costs something says how much, and what to do.
"""

import ctypes.util
import enum
import os
import platform
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvstrata import _kernel
from kvstrata.cluster.open_files import REMEDY, files_beside_connections
from kvstrata.store import host_memory
from kvstrata.store.errors import Error
from kvstrata.store.local import local
from kvstrata.store.units import format_size

_ROOT: Final = Path("/")
_SELF_TEST_BYTES: Final = 1 << 20
# For node.connections_max of them, on up to 16 shards.
_OPEN_FILES_WANTED: Final = 16_384 + files_beside_connections(16)
_KERNEL_WANTED: Final = (5, 14)  # MADV_POPULATE_WRITE, by which memory is populated.

_IO_URING_SETUP: Final = 425  # The system call's number, on every architecture.
_PARAMETER_BYTES: Final = 120  # sizeof(struct io_uring_params)


class State(enum.StrEnum):
    """How a finding bears on a store."""

    GOOD = "good"
    LACKS = "lacks"  # It works, but slower or with less.
    BROKEN = "broken"
    UNUSED = "unused"  # This version does without it, there or not.


@dataclass(frozen=True, slots=True)
class Finding:
    """One matter.

    Attributes:
        name: of the matter.
        state: how it bears on a store.
        found: what is there.
        cost: what a lack costs; empty where there is none.
        remedy: what to do about it; empty where there is nothing to do.
    """

    name: str
    state: State
    found: str
    cost: str = ""
    remedy: str = ""


def examine(root: Path = _ROOT) -> list[Finding]:
    """All findings, in the order of their importance to a store of this version."""
    return [
        _package(),
        _self_test(),
        *_kernel_and_processors(root),
        _memory(root),
        *_huge_pages(root),
        _locked_memory(),
        _open_files(),
        _numa(root),
        _io_uring(),
        *_devices(root),
    ]


def _package() -> Finding:
    return Finding(
        "kvstrata", State.GOOD, f"{_kernel.version()}, Python {platform.python_version()}"
    )


def _self_test() -> Finding:
    value = bytes(range(256)) * (_SELF_TEST_BYTES // 256)
    try:
        started = time.perf_counter()
        with local("16MiB") as store:
            store.put("doctor", value)
            read = store.get("doctor")
        elapsed = time.perf_counter() - started
    except (Error, OSError) as error:
        return Finding(
            "self-test",
            State.BROKEN,
            str(error),
            "a node cannot be started, or not be reached, on this machine",
            "Look at the reason above; loopback must be up and memory available.",
        )
    if read != value:
        return Finding(
            "self-test",
            State.BROKEN,
            "a value of 1 MiB came back changed",
            "values are not safe on this machine",
            "Test its memory, and report it with the output of kvstrata doctor --json.",
        )
    return Finding(
        "self-test", State.GOOD, f"started a node, put and got 1 MiB, in {elapsed * 1e3:.0f} ms"
    )


def _kernel_and_processors(root: Path) -> Iterator[Finding]:
    release = platform.release()
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    if numbers >= _KERNEL_WANTED:
        yield Finding("kernel", State.GOOD, release)
    else:
        yield Finding(
            "kernel",
            State.LACKS,
            release,
            "memory is populated page by page: a start takes longer",
            "Use Linux 5.14 or newer.",
        )
    count = host_memory.usable_cpu_count()
    if count > 1:
        yield Finding("processors", State.GOOD, f"{count} usable")
    else:
        yield Finding(
            "processors",
            State.LACKS,
            "1 usable",
            "node and clients take turns, and nobody can spin: latencies of tens of microseconds",
            "Give the process two processors or more (cgroup cpuset, taskset, container limits).",
        )
    flags = _cpu_flags(root)
    for flag, name, cost in (
        ("avx2", "AVX2", "checksums of values cost about twice the processor time"),
        ("sse4_2", "CRC32C instruction", "headers are checked in software: some 0.1 us a command"),
    ):
        if flag in flags:
            yield Finding(name, State.GOOD, "there")
        else:
            yield Finding(name, State.LACKS, "not there", cost, "Use a processor that has it.")


def _cpu_flags(root: Path) -> set[str]:
    for line in (root / "proc/cpuinfo").read_text().splitlines():
        if line.startswith(("flags", "Features")):
            return set(line.partition(":")[2].split())
    return set()


def _memory(root: Path) -> Finding:
    amount = host_memory.available_memory_bytes(root)
    return Finding(
        "memory",
        State.GOOD,
        f"{format_size(amount)} available by host and cgroup; a node takes"
        f" {format_size(amount // 2)} unless told",
    )


def _huge_pages(root: Path) -> Iterator[Finding]:
    reserved = _number(root / "proc/sys/vm/nr_hugepages")
    transparent = _selected(root / "sys/kernel/mm/transparent_hugepage/enabled")
    found = f"{reserved} reserved; transparent ones: {transparent or 'not in this kernel'}"
    if reserved or transparent in ("always", "madvise"):
        yield Finding("huge pages", State.GOOD, found)
    else:
        yield Finding(
            "huge pages",
            State.LACKS,
            found,
            "look-ups among millions of keys miss the TLB and cost up to twice the processor time;"
            " a start takes longer",
            "As root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; or reserve them"
            " for node.huge_pages=explicit: sysctl vm.nr_hugepages=<memory / 2 MiB>.",
        )
    shared = _selected(root / "sys/kernel/mm/transparent_hugepage/shmem_enabled")
    if shared in ("always", "within_size", "advise", "force"):
        yield Finding("huge pages of shared memory", State.GOOD, shared)
    else:
        yield Finding(
            "huge pages of shared memory",
            State.LACKS,
            shared or "not in this kernel",
            "values of pools that trust same-host readers lie in ordinary pages: reading large ones"
            " in place is slower by some percent",
            "As root: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled.",
        )


def _locked_memory() -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY:
        return Finding("locked memory", State.GOOD, "unlimited")
    return Finding(
        "locked memory",
        State.LACKS,
        f"at most {format_size(soft)}",
        "nothing over TCP; memory cannot be registered with an RDMA device beyond that",
        "ulimit -l unlimited, LimitMEMLOCK=infinity in systemd, or --ulimit memlock=-1 in Docker.",
    )


def _open_files() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # A node raises the soft one itself.
    unlimited = resource.RLIM_INFINITY
    if hard == unlimited or hard >= _OPEN_FILES_WANTED:
        return Finding("open files", State.GOOD, "unlimited" if hard == unlimited else f"{hard:,}")
    return Finding(
        "open files",
        State.LACKS,
        f"{hard:,}",
        f"a node has room for about {max(0, hard - files_beside_connections(1)):,} connections",
        f"Allow {_OPEN_FILES_WANTED:,} and more, {REMEDY}.",
    )


def _numa(root: Path) -> Finding:
    nodes = sorted((root / "sys/devices/system/node").glob("node[0-9]*"))
    if len(nodes) <= 1:
        return Finding("NUMA", State.GOOD, "one memory node")
    return Finding(
        "NUMA",
        State.LACKS,
        f"{len(nodes)} memory nodes",
        "memory of the other node is slower by half or more",
        "Run one node process a memory node: numactl --cpunodebind=0 --membind=0 kvstrata serve.",
    )


def _devices(root: Path) -> Iterator[Finding]:
    """What other transports and tiers would use; this version does without."""
    for name, found in (
        ("libibverbs", ctypes.util.find_library("ibverbs") or "not installed"),
        ("RDMA devices", ", ".join(_names(root / "sys/class/infiniband")) or "none"),
    ):
        yield Finding(name, State.UNUSED, found)


def _io_uring() -> Finding:
    if _kernel.uring_is_usable():
        return Finding("io_uring", State.GOOD, "used by the shards")
    return Finding(
        "io_uring",
        State.LACKS,
        _why_no_io_uring(),
        "each small request costs a shard system calls of its own, instead of a share of one",
        "Linux 6.1 or newer, sysctl kernel.io_uring_disabled=0, liburing 2.3 or newer, also when"
        " kvstrata is built.",
    )


def _why_no_io_uring() -> str:
    """What the kernel says when this process wants a ring: it may be disabled, or filtered."""
    if ctypes.util.find_library("uring") is None:
        return "liburing is not installed"
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(_IO_URING_SETUP, 1, ctypes.create_string_buffer(_PARAMETER_BYTES))
    if descriptor < 0:
        return f"not usable: {os.strerror(ctypes.get_errno())}"
    os.close(descriptor)
    return "the kernel or liburing is too old, or kvstrata was built without it"


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # Absent in this kernel: as if it were not set.
        return 0


def _selected(path: Path) -> str:
    """The choice in brackets of a file such as "always [advise] never"."""
    try:
        text = path.read_text()
    except OSError:
        return ""
    return text.partition("[")[2].partition("]")[0]
