"""The demo: a store at work on real data. Each step does something, and checks what came back."""

import hashlib
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kvstrata.cluster.demo_data import KvShape, kv_shapes, library_files
from kvstrata.store.client import Store, connect
from kvstrata.store.config import PoolConfig
from kvstrata.store.errors import ImmutableError, NoSpaceError
from kvstrata.store.local import LocalStore, local
from kvstrata.store.results import Outcome

if TYPE_CHECKING:
    import numpy

_MEMORY: Final = "256MiB"
_TTL_S: Final = 0.25
_TTL_WAIT_S_MAX: Final = 5.0
_CHUNKS_PER_SHAPE: Final = 3
_KV_POOL: Final = "kv-cache"
_FULL_POOL: Final = "full"


@dataclass(slots=True)
class Step:
    """What one step did.

    Attributes:
        name: in words.
        count: calls or keys.
        moved_bytes: to or from the store.
        seconds: spent in the store's calls.
        checks: how many values or answers were compared with what they should be.
        failures: those that were not so, in words.
    """

    name: str
    count: int = 0
    moved_bytes: int = 0
    seconds: float = 0.0
    checks: int = 0
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def timed(self, moved_bytes: int = 0, count: int = 1) -> Iterator[None]:
        """Time some calls."""
        started = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - started
        self.count += count
        self.moved_bytes += moved_bytes

    def check(self, words: str, right: bool) -> None:
        """Count a comparison."""
        self.checks += 1
        if not right:
            self.failures.append(words)


def pools() -> dict[str, PoolConfig]:
    """The demo's pools beside `default`: one as a KV cache has it, one that may not evict."""
    return {
        _KV_POOL: PoolConfig(kind="immutable", eviction="s3fifo"),
        _FULL_POOL: PoolConfig(eviction="none", quota=1 << 20),
    }


def run() -> Iterator[Step]:
    """Start a store in this process and yield each step once it is done.

    Everything the steps leave behind ends with the store.
    """
    with local(_MEMORY, pools=pools()) as store:
        files = library_files()
        for step in (_put_files, _get_files):
            yield step(store, files)
        yield _copy_largest(store, files)
        for use in (_overwrite, _put_if_absent, _expire):
            yield use(store)
        with _pool_of(store, _KV_POOL) as cache:
            for shape in kv_shapes():
                yield _tensors(cache, shape)
            yield _prefix(cache)
            yield _immutable(cache)
        with _pool_of(store, _FULL_POOL) as full:
            yield _no_space(full)
        yield _evict(store)


def _pool_of(store: LocalStore, pool: str) -> Store:
    return connect(store.node_url, pool=pool)


def _put_files(store: Store, files: list[Path]) -> Step:
    step = Step("put the files of Python's library")
    for path in files:
        size = path.stat().st_size
        with step.timed(size):
            result = store.put_file(str(path), path)
        step.check(f"{path} was put as {result}", result.size == size)
    return step


def _get_files(store: Store, files: list[Path]) -> Step:
    step = Step("get them again")
    for path in files:
        with step.timed(path.stat().st_size):
            value = store.get(str(path))
        step.check(f"{path} came back changed", value == path.read_bytes())
    listed = {each.key for each in store.scan(str(files[0].anchor))}
    step.check("scan does not find all files", listed >= {str(path).encode() for path in files})
    return step


def _copy_largest(store: Store, files: list[Path]) -> Step:
    step = Step("get one into a file, in pieces")
    largest = max(files, key=lambda path: path.stat().st_size)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        with step.timed(largest.stat().st_size):
            store.get_file(str(largest), copy)
        step.check(f"the copy of {largest} differs", _digest(copy) == _digest(largest))
    return step


def _overwrite(store: Store) -> Step:
    step = Step("overwrite, with another size each time")
    generator = random.Random(2)
    for size in (0, 1, 4096, 100_000, 1 << 20, 3 << 20):
        value = generator.randbytes(size)
        with step.timed(2 * size, count=2):
            store.put("changing", value)
            read = store.get("changing")
        step.check(f"{size} bytes came back changed", read == value)
    return step


def _put_if_absent(store: Store) -> Step:
    step = Step("put if absent, on a key that is there")
    with step.timed(count=2):
        first = store.put("once", b"first", if_absent=True)
        second = store.put("once", b"second", if_absent=True)
    step.check("the first put was no creation", first.outcome is Outcome.CREATED)
    step.check("the second put changed it", second.outcome is Outcome.EXISTED)
    step.check("the value is not the first", store.get("once") == b"first")
    return step


def _expire(store: Store) -> Step:
    step = Step(f"let a value expire after {_TTL_S:g} s")
    with step.timed():
        store.put("short-lived", b"value", ttl=_TTL_S)
    step.check("it is not there before its time", store.get("short-lived") == b"value")
    gone = _wait_until(lambda: not store.exists("short-lived"))
    step.check("it is there after its time", gone)
    return step


def _tensors(cache: Store, shape: KvShape) -> Step:
    step = Step(f"put and get KV cache of {shape.model}, {shape.tokens} tokens")
    for number in range(_CHUNKS_PER_SHAPE):
        key = f"{shape.model}/{shape.tokens}/{number}"
        data = random.Random(number).randbytes(shape.size_bytes)
        tensor = _as_tensor(data, shape)
        buffer = bytearray(len(data))
        with step.timed(2 * len(data), count=2):
            if tensor is None:
                cache.put(key, data)
            else:
                cache.put_tensor(key, tensor)
            cache.get_into(key, buffer)
        step.check(f"{key} came back changed", buffer == data)
        if tensor is not None:
            stat = cache.stat(key)
            step.check(f"{key} lost its shape", stat is not None and stat.shape == shape.shape)
        cache.delete(key)
    return step


def _as_tensor(data: bytes, shape: KvShape) -> "numpy.ndarray[Any, Any] | None":
    """The data as an array of 16-bit elements; None where numpy is not installed."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy.frombuffer(data, numpy.uint16).reshape(shape.shape)


def _prefix(cache: Store) -> Step:
    step = Step("count how far a chain of 512 chunks is cached")
    chain = []
    digest = b"model, tokenizer and layout"
    for number in range(512):
        digest = hashlib.sha256(digest + number.to_bytes(4)).digest()
        chain.append(digest)
    with step.timed(count=300):
        cache.put_many({key: b"chunk" for key in chain[:300]}, if_absent=True)
    with step.timed(count=len(chain)):
        length = cache.prefix_length(chain)
    step.check(f"{length} chunks of 300 were counted", length == 300)
    return step


def _immutable(cache: Store) -> Step:
    step = Step("refuse to overwrite in an immutable pool")
    cache.put("fixed", b"content")
    refused = False
    with step.timed():
        try:
            cache.put("fixed", b"other")
        except ImmutableError:
            refused = True
    step.check("it was not refused", refused)
    step.check("the content changed", cache.get("fixed") == b"content")
    return step


def _no_space(full: Store) -> Step:
    step = Step("fill a pool of 1 MiB that may not evict")
    refused = False
    while not refused and step.count < 100:
        try:
            with step.timed(64 << 10):
                full.put(f"piece-{step.count}", bytes(64 << 10))
        except NoSpaceError:
            refused = True
    step.check("it took more than its quota", refused and step.count <= 16)
    kept = sum(full.exists_many(f"piece-{number}" for number in range(step.count)))
    step.check("pieces were lost", kept == step.count)
    return step


def _evict(store: LocalStore) -> Step:
    step = Step("put more than fits: the oldest go")
    value = random.Random(3).randbytes(4 << 20)
    count = 80  # 320 MiB into 256.
    for number in range(count):
        with step.timed(len(value)):
            store.put(f"large-{number}", value)
    statistics: Mapping[str, Any] = store.admin("statistics")["pools"]["default"]
    step.check("nothing was evicted", statistics["evictions"] > 0)
    step.check("the last one is gone", store.get(f"large-{count - 1}") == value)
    step.check("the first one is there", not store.exists("large-0"))
    return step


def _wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _TTL_WAIT_S_MAX
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()
