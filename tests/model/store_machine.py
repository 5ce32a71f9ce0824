"""The client against a dict, by random steps: hypothesis finds a shortest failing sequence."""

import contextlib
import os
import socket
from pathlib import Path
from typing import ClassVar, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import kvstrata
from kvstrata import LocalStore, Retention, Store
from kvstrata.store import limits
from tests.contract.contents import content, wait_until

CHUNK = limits.CHUNK_BYTES

KEYS = [b"", b"a", b"ab", b"{tag}1", b"{tag}2", b"\0\xff", b"k" * 4096, b"b"]


class Value(NamedTuple):
    """What a rule is given instead of the bytes: Hypothesis keeps all that it ever drew."""

    size: int
    seed: int

    @property
    def bytes(self) -> bytes:
        return content(self.size, self.seed)


keys = st.sampled_from(KEYS)
sizes = st.one_of(
    st.integers(0, 64),
    st.sampled_from([4096, 8_191, 8_192, 8_193, 65_536, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK]),
    st.integers(0, 2 * CHUNK),
)
values = st.builds(Value, sizes, st.integers(0, 1_000))
LONG_S = 3_600.0


def break_connections(port: int) -> None:
    """Cut every connection of this process to that port, as a network would."""
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # Closed meanwhile, or no socket, or not connected.
            if not entry.readlink().name.startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(entry.name))) as found:
                if found.family == socket.AF_INET and found.getpeername()[1] == port:
                    found.shutdown(socket.SHUT_RDWR)


class StoreMachine(RuleBasedStateMachine):
    """What both machines know: a store on an empty pool, and the dict it should equal.

    Attributes:
        node: that holds the pools, set by the test.
    """

    node: LocalStore
    settings: ClassVar[dict[str, object]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[bytes, bytes] = {}
        self.store = self.connected()
        self.store.delete_many([info.key for info in self.store.scan()])

    @classmethod
    def pool(cls) -> str:
        return cls.__name__.lower()

    @classmethod
    def prepare(cls) -> None:
        """Make the pool that all examples use, one after the other."""
        settings = {"admin": "secret", **cls.settings}
        cls.node.admin("pool_create", {"name": cls.pool(), "settings": settings})

    def connected(self) -> Store:
        return kvstrata.connect(self.node.node_url, pool=self.pool(), secret="secret")

    def teardown(self) -> None:
        self.store.close()


class DictMachine(StoreMachine):
    """Nothing is evicted, so store and dict are equal at all times."""

    def __init__(self) -> None:
        super().__init__()
        self.retentions: list[Retention] = []

    @rule(key=keys, drawn=values, ttl=st.sampled_from([None, LONG_S]))
    def put(self, key: bytes, drawn: Value, ttl: float | None) -> None:
        value = drawn.bytes
        outcome, size, _ = self.store.put(key, value, ttl=ttl)
        assert outcome == ("replaced" if key in self.model else "created")
        assert size == len(value)
        self.model[key] = value

    @rule(key=keys, drawn=values)
    def put_if_absent(self, key: bytes, drawn: Value) -> None:
        value = drawn.bytes
        outcome, size, _ = self.store.put(key, value, if_absent=True)
        assert outcome == ("existed" if key in self.model else "created")
        assert size == len(self.model.setdefault(key, value))

    @rule(drawn=st.lists(st.tuples(keys, values), max_size=6))
    def put_many(self, drawn: list[tuple[bytes, Value]]) -> None:
        pairs = [(key, value.bytes) for key, value in drawn]
        expected = []
        for key, value in pairs:
            expected.append("replaced" if key in self.model else "created")
            self.model[key] = value
        assert self.store.put_many(pairs) == expected

    @rule(key=keys)
    def get(self, key: bytes) -> None:
        assert self.store.get(key) == self.model.get(key)

    @rule(asked=st.lists(keys, max_size=8))
    def get_many(self, asked: list[bytes]) -> None:
        assert self.store.get_many(asked) == [self.model.get(key) for key in asked]
        assert self.store.exists_many(asked) == [key in self.model for key in asked]

    @rule(asked=st.lists(keys, max_size=8))
    def prefix_length(self, asked: list[bytes]) -> None:
        missing = (index for index, key in enumerate(asked) if key not in self.model)
        assert self.store.prefix_length(asked) == next(missing, len(asked))

    @rule(key=keys, capacity=sizes)
    def get_into(self, key: bytes, capacity: int) -> None:
        buffer = bytearray(b"\xa5") * capacity
        value = self.model.get(key)
        if value is not None and len(value) > capacity:
            with pytest.raises(kvstrata.TooSmallError) as caught:
                self.store.get_into(key, buffer)
            assert caught.value.size == len(value)
            value = b""
        else:
            assert self.store.get_into(key, buffer) == (None if value is None else len(value))
        value = value or b""
        assert buffer == value + b"\xa5" * (capacity - len(value))

    @rule(key=keys, offset=sizes, length=sizes)
    def get_range(self, key: bytes, offset: int, length: int) -> None:
        value = self.model.get(key)
        expected = None if value is None else value[offset : offset + length]
        assert self.store.get_range(key, offset, length) == expected

    @rule(key=keys, drawn=values, off=st.sampled_from([0, 0, 0, 1, -1]))
    def append(self, key: bytes, drawn: Value, off: int) -> None:
        value = drawn.bytes
        length = len(self.model.get(key, b""))
        at = max(0, length + off)
        if at == length:
            self.model[key] = self.model.get(key, b"") + value
            assert self.store.append(key, value, at) == len(self.model[key])
            return
        with pytest.raises(kvstrata.MismatchError) as caught:
            self.store.append(key, value, at)
        assert caught.value.length == length

    @rule(key=keys)
    def delete(self, key: bytes) -> None:
        assert self.store.delete(key) == (self.model.pop(key, None) is not None)

    @rule(key=keys, seconds=st.sampled_from([LONG_S, None]))
    def expire_later(self, key: bytes, seconds: float | None) -> None:
        assert self.store.expire(key, seconds) == (key in self.model)
        status = self.store.stat(key)
        assert (status is None) == (key not in self.model)
        if status is not None:
            assert (status.ttl is None) == (seconds is None)

    @rule(key=keys)
    def expire_now(self, key: bytes) -> None:
        assert self.store.expire(key, 0.001) == (self.model.pop(key, None) is not None)
        wait_until(lambda: not self.store.exists(key), "the object expires")

    @rule(asked=st.lists(keys, max_size=8), hard=st.booleans())
    def retain(self, asked: list[bytes], hard: bool) -> None:
        retention = self.store.retain_many(asked, LONG_S, hard)
        here = [key in self.model for key in asked]
        assert retention.outcomes == ["retained" if found else "absent" for found in here]
        assert retention.extend(LONG_S) == any(here)
        self.retentions.append(retention)

    @rule()
    def release(self) -> None:
        if self.retentions:
            retention = self.retentions.pop()
            assert retention.release() == ("retained" in retention.outcomes)

    @rule(prefix=st.sampled_from([b"", b"a", b"{tag}", b"none"]))
    def scan(self, prefix: bytes) -> None:
        met = dict(self.store.scan(prefix))
        assert met == {k: len(v) for k, v in self.model.items() if k.startswith(prefix)}

    @rule()
    def reconnect(self) -> None:
        break_connections(self.node.node.port)

    @rule()
    def connect_anew(self) -> None:
        self.retentions.clear()  # They end with their time.
        self.store.close()
        self.store = self.connected()


class EvictingMachine(StoreMachine):
    """Larger than its quota: a value may be gone, but never wrong, and each loss is counted."""

    settings: ClassVar[dict[str, object]] = {
        "quota": "4MiB",
        "eviction": "lru",
        "retained_max": "256KiB",
    }

    def __init__(self) -> None:
        super().__init__()
        self.lost = 0
        self.hard: set[bytes] = set()  # Retained so: never lost.
        self.retention: Retention | None = None
        self.evictions_before = self.counters()["evictions"]

    def counters(self) -> dict[str, int]:
        pools: dict[str, dict[str, int]] = self.node.admin("statistics")["pools"]
        return pools[self.pool()]

    def found(self, key: bytes, value: bytes | None) -> None:
        expected = self.model.get(key)
        if value is None and expected is not None:
            self.lose(key)
        else:
            assert value == expected

    def lose(self, key: bytes) -> None:
        assert key not in self.hard
        del self.model[key]
        self.lost += 1

    @rule(asked=st.sets(st.integers(0, 30), max_size=8), hard=st.booleans())
    def retain(self, asked: set[int], hard: bool) -> None:
        self.release()
        keys = [b"%d" % number for number in asked]
        try:
            self.retention = self.store.retain_many(keys, LONG_S, hard)
        except (kvstrata.BusyError, kvstrata.TooLargeError):
            assert hard
            assert sum(len(self.model.get(key, b"")) for key in keys) > 200 << 10
            return
        for key, outcome in zip(keys, self.retention.outcomes, strict=True):
            if outcome == "absent" and key in self.model:
                self.lose(key)
            if outcome == "retained" and hard:
                self.hard.add(key)

    @rule()
    def release(self) -> None:
        self.hard.clear()
        if self.retention is not None:
            self.retention.release()
            self.retention = None

    @rule(number=st.integers(0, 30), drawn=values)
    def put(self, number: int, drawn: Value) -> None:
        key, value = b"%d" % number, drawn.bytes
        outcome = self.store.put(key, value).outcome
        if outcome == "created" and key in self.model:
            self.lose(key)
        self.hard.discard(key)
        assert outcome == ("replaced" if key in self.model else "created")
        self.model[key] = value

    @rule(number=st.integers(0, 30))
    def get(self, number: int) -> None:
        self.found(b"%d" % number, self.store.get(b"%d" % number))

    @rule()
    def get_all(self) -> None:
        asked = [b"%d" % number for number in range(31)]
        for key, value in zip(asked, self.store.get_many(asked), strict=True):
            self.found(key, value)

    @rule(number=st.integers(0, 30), drawn=values)
    def append(self, number: int, drawn: Value) -> None:
        key, value = b"%d" % number, drawn.bytes
        length = len(self.model.get(key, b""))
        try:
            total = self.store.append(key, value, length)
        except kvstrata.MismatchError:  # It had been evicted, or was while room was made.
            assert length > 0
            self.lose(key)
            assert self.store.append(key, b"", 0) == 0
            self.model[key] = b""
        except kvstrata.TooLargeError:
            assert length + len(value) > 3 << 20
        else:
            assert total == length + len(value)
            # At 0 it may have met an empty object or none any more: the outcome is the same.
            self.model[key] = self.model.get(key, b"") + value
            self.hard.discard(key)

    @rule(number=st.integers(0, 30))
    def delete(self, number: int) -> None:
        key = b"%d" % number
        was_there = self.store.delete(key)
        if key in self.model and not was_there:
            self.lose(key)
        self.model.pop(key, None)
        self.hard.discard(key)

    @invariant()
    def every_loss_is_counted(self) -> None:
        counters = self.counters()
        assert self.lost <= counters["evictions"] - self.evictions_before
        # The object put last is weighed before its memory is rounded up to a cell or pages.
        assert counters["bytes"] <= (4 << 20) + 2 * limits.PAGE_BYTES
