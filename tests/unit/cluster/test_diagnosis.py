"""Findings on machines that are laid out as files."""

from pathlib import Path

import pytest

from kvstrata.cluster import diagnosis
from kvstrata.cluster.diagnosis import Finding, State
from kvstrata.store import local

UNUSED = ("libibverbs", "RDMA devices")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with nothing special."""
    lay(tmp_path, "proc/meminfo", "MemAvailable: 1048576 kB\n")
    lay(tmp_path, "proc/cpuinfo", "flags : fpu sse4_2 avx2\n")
    lay(tmp_path, "proc/sys/vm/nr_hugepages", "0\n")
    lay(tmp_path, "sys/devices/system/node/node0/x", "")
    return tmp_path


def lay(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def find(root: Path, name: str) -> Finding:
    (found,) = [each for each in diagnosis.examine(root) if each.name == name]
    return found


def test_every_lack_has_a_cost_and_a_remedy(root: Path) -> None:
    lay(root, "proc/cpuinfo", "flags : fpu\n")
    findings = diagnosis.examine(root)
    assert {each.name for each in findings if each.state is State.LACKS} >= {"AVX2", "huge pages"}
    for each in findings:
        fine = each.state in (State.GOOD, State.UNUSED)
        assert fine == (each.cost == "") == (each.remedy == "")
        assert (each.state is State.UNUSED) == (each.name in UNUSED)


def test_huge_pages(root: Path) -> None:
    assert find(root, "huge pages").state is State.LACKS
    setting = "sys/kernel/mm/transparent_hugepage/enabled"
    lay(root, setting, "always madvise [never]\n")
    assert find(root, "huge pages").state is State.LACKS
    lay(root, setting, "always [madvise] never\n")
    assert find(root, "huge pages").state is State.GOOD
    lay(root, setting, "always madvise [never]\n")
    lay(root, "proc/sys/vm/nr_hugepages", "64\n")
    assert find(root, "huge pages").state is State.GOOD
    assert find(root, "huge pages").found.startswith("64 reserved")


def test_huge_pages_of_shared_memory(root: Path) -> None:
    setting = "sys/kernel/mm/transparent_hugepage/shmem_enabled"
    assert find(root, "huge pages of shared memory").found == "not in this kernel"
    lay(root, setting, "always within_size advise [never] deny force\n")
    assert find(root, "huge pages of shared memory").state is State.LACKS
    lay(root, setting, "always within_size [advise] never deny force\n")
    assert find(root, "huge pages of shared memory").state is State.GOOD


def test_memory_nodes(root: Path) -> None:
    assert find(root, "NUMA").state is State.GOOD
    lay(root, "sys/devices/system/node/node1/x", "")
    assert "numactl" in find(root, "NUMA").remedy


def test_rdma_devices(root: Path) -> None:
    assert find(root, "RDMA devices").found.startswith("none")
    lay(root, "sys/class/infiniband/mlx5_0/x", "")
    assert find(root, "RDMA devices").found.startswith("mlx5_0")


def test_a_store_that_cannot_start_is_broken(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("cannot listen on 127.0.0.1")

    monkeypatch.setattr(local, "RunningNode", refuse)
    found = find(root, "self-test")
    assert found.state is State.BROKEN
    assert found.found == "cannot listen on 127.0.0.1"
