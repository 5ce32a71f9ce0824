"""Nodes that hang, die and come back; processes that fork; stores used by many at once."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

import kvstrata
from kvstrata import LocalStore, Store
from tests.concurrency.crowd import crowd
from tests.concurrency.node_process import NodeProcess
from tests.contract.contents import check_described, content, described

MIB = 1 << 20


def test_many_threads_share_one_store(store: LocalStore) -> None:
    """More threads than the store has connections."""
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(15):
                key = f"{number}-{step}"
                store.put(key, described(100 + number * 50, step))
                value = store.get(key)
                assert value is not None
                assert check_described(value) == step
                assert store.delete(key)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=[number]) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert list(store.scan()) == []


def in_child(work: Callable[[], bool]) -> None:
    """Fork, and let the child work. It ends without what the parent would do at its end."""
    child = os.fork()
    if child == 0:
        done = False
        try:
            done = work()
        finally:
            os._exit(0 if done else 1)
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError("the child hangs")
        time.sleep(0.005)
    assert os.waitstatus_to_exitcode(ended[1]) == 0


# A forked child of a threaded process may hang in a sanitizer's allocator: hence slow.
@pytest.mark.slow
def test_a_fork_in_the_middle(node: NodeProcess) -> None:
    """Parent and child go on with the same store while a thread keeps it busy."""
    with kvstrata.connect(node.url) as store:
        store.put("k", described(100_000, 1))

        def use(seed: int) -> None:
            store.put(f"parent-{seed % 5}", described(50_000, seed))
            value = store.get("k")
            assert value is not None
            check_described(value)

        def child() -> bool:
            for seed in range(20):
                store.put(f"child-{seed}", described(50_000, seed))
                value = store.get(f"child-{seed}")
                assert value is not None
                assert check_described(value) == seed
            return check_described(store.get("k") or b"") == 1

        crowd(1, use, use, lambda _: in_child(child))


# The child ends as any interpreter does, while its parent's node goes on.
FORK = """
import os, kvstrata
store = kvstrata.local("32MiB", shards=2)
store.put("k", b"value")
child = os.fork()
if child == 0:
    assert store.get("k") == b"value"
    raise SystemExit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
for i in range(20):
    store.put(f"{i}", bytes(100_000))
    assert store.info()["shards"] == 2
store.close()
print("closed")
"""


# A forked child of a threaded process may hang in a sanitizer's allocator: hence slow.
@pytest.mark.slow
def test_a_forked_child_of_a_node_s_process_leaves_it_alone() -> None:
    command = [sys.executable, "-c", FORK]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("closed\n", "", 0)


def test_a_node_that_hangs_is_met_with_timeouts(node: NodeProcess) -> None:
    with kvstrata.connect(node.url) as store:
        store.put("k", content(3 * MIB))
        with node.stopped():
            for call in (
                lambda: store.get("k", timeout=0.2),
                lambda: store.get_into("k", bytearray(3 * MIB), timeout=0.2),
                lambda: store.put("k", content(40 * MIB), timeout=0.2),
                lambda: store.put("k", b"", timeout=0.2),
                lambda: store.exists_many(["k", "l"], timeout=0.2),
                lambda: store.info(timeout=0.2),
                lambda: list(store.scan(timeout=0.2)),
                lambda: kvstrata.connect(node.url, timeout=0.2),
            ):
                began = time.monotonic()
                with pytest.raises(kvstrata.TimeoutError):
                    call()
                assert 0.15 < time.monotonic() - began < 2
        found = store.get("k")
        assert found in (b"", content(3 * MIB))  # What was put in vain may have arrived yet.


def test_a_node_that_dies_is_unavailable_until_it_is_back(node: NodeProcess) -> None:
    with kvstrata.connect(node.url) as store:
        store.put("k", b"value")
        node.kill()
        for _ in range(3):
            with pytest.raises(kvstrata.UnavailableError):
                store.get("k")
            with pytest.raises(kvstrata.UnavailableError):
                store.put("k", b"value")
            with pytest.raises(kvstrata.UnavailableError):
                store.get_many(["k", "l"])
        node.restart()
        assert store.get("k") is None
        assert store.put("k", b"new").outcome == "created"
        assert store.get_many(["k", "l"]) == [b"new", None]


def test_a_node_restarted_unnoticed_serves_the_same_store(node: NodeProcess) -> None:
    with kvstrata.connect(node.url) as store:
        crowd_of_connections(store)
        node.kill()
        node.restart()
        assert store.get("k") is None
        assert store.put("k", b"new").outcome == "created"
        assert store.get("k") == b"new"


def crowd_of_connections(store: Store) -> None:
    """Leave several idle connections behind."""
    crowd(0.2, *[lambda _: store.get("k")] * 4)


def test_a_node_killed_under_load_fails_every_call_in_time(node: NodeProcess) -> None:
    with kvstrata.connect(node.url, timeout=5) as store:
        store.put("k", content(8 * MIB))
        met: list[kvstrata.Error] = []

        def use(_: int) -> None:
            try:
                store.get("k")
                store.put("j", content(MIB))
            except kvstrata.UnavailableError as error:
                met.append(error)

        began = time.monotonic()
        crowd(1, use, use, lambda step: node.kill() if step == 20 else time.sleep(0.005))
        assert met
        assert time.monotonic() - began < 10
