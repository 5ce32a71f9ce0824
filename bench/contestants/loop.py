"""The measuring loop that all contestants share, so that only their clients differ.

A contestant reads one `Work` a line from standard input and answers with one `Outcome`. Values
come from a source pool and go to a sink pool, both larger than the processor's caches and
touched beforehand: else the first rounds would measure page faults.
"""

import gc
import mmap
import os
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import count, islice
from time import perf_counter_ns

from bench.contestants.work import Operation, Outcome, Work, key_name

POOL_BYTES = 128 << 20
# What one round of puts may add to a store before TIDY deletes it again; a round ends early then.
PUT_BYTES_MAX = 256 << 20
PUT_COUNT_MAX = 1 << 16
PUT_COUNT_MIN = 8
_DELETE_LENGTH = 1000
_PATTERN_BYTES = 1 << 20
_FIRST_PUT_INDEX = 1 << 40  # Puts use new keys: Mooncake keeps the old value of a known one.


class Contestant(ABC):
    """A client of one store. Each call returns when its work is done."""

    def adopt(self, memory: mmap.mmap) -> None:
        """Register memory that values will come from or go to; most clients need no such step."""
        del memory

    @abstractmethod
    def put(self, key: str, value: memoryview) -> None:
        """Store a value under a key that does not exist yet."""

    @abstractmethod
    def get_into(self, key: str, buffer: memoryview) -> int:
        """Fill `buffer` with the value of `key`; returns its length in bytes."""

    @abstractmethod
    def delete_many(self, keys: list[str]) -> None:
        """Remove keys and give their memory back."""


class BatchContestant(Contestant):
    """A client that can also ask for many keys at once."""

    @abstractmethod
    def exists_many(self, keys: list[str]) -> int:
        """How many of `keys` exist."""

    @abstractmethod
    def prefix_length(self, keys: list[str]) -> int:
        """How many of `keys` exist before the first that does not."""


class Loop:
    """Runs work on one contestant."""

    def __init__(self, contestant: Contestant) -> None:
        self._contestant = contestant
        self._source_memory = mmap.mmap(-1, POOL_BYTES)
        self._sink_memory = mmap.mmap(-1, POOL_BYTES)
        pattern = random.Random(1).randbytes(_PATTERN_BYTES)
        for memory in (self._source_memory, self._sink_memory):
            for _ in range(POOL_BYTES // _PATTERN_BYTES):
                memory.write(pattern)
            contestant.adopt(memory)
        self._source = memoryview(self._source_memory)
        self._sink = memoryview(self._sink_memory)
        self._put_indices = count(_FIRST_PUT_INDEX)
        self._put_keys: list[str] = []

    def run(self, work: Work) -> Outcome:
        """Do `work`; what it prepares is not part of the outcome."""
        gc.disable()
        try:
            samples = self._samples(work)
        finally:
            gc.enable()
        if not samples:
            return Outcome(0, 0.0, 0.0, 0.0)
        samples.sort()
        at_p99 = min(len(samples) - 1, len(samples) * 99 // 100)
        return Outcome(
            call_count=len(samples),
            p50_us=samples[len(samples) // 2] / 1e3,
            p99_us=samples[at_p99] / 1e3,
            total_s=sum(samples) / 1e9,
        )

    def _samples(self, work: Work) -> list[int]:
        match work.operation:
            case Operation.LOAD:
                self._load(work)
                return []
            case Operation.TIDY:
                self._tidy()
                return []
            case Operation.GET_INTO:
                return self._get_into(work)
            case Operation.PUT:
                return self._put(work)
            case Operation.EXISTS_MANY | Operation.PREFIX_LENGTH:
                return self._ask_many(work)

    def _load(self, work: Work) -> None:
        """Store all keys, and read each back: a fast wrong answer must not win."""
        for index in range(work.key_count):
            key = key_name(work.size_bytes, index)
            self._contestant.put(key, self._value(index, work.size_bytes))
        for index in range(work.key_count):
            value = self._value(index, work.size_bytes)
            buffer = self._buffer(index, work.size_bytes)
            length = self._contestant.get_into(key_name(work.size_bytes, index), buffer)
            if length != work.size_bytes or bytes(buffer) != bytes(value):
                raise RuntimeError(f"key {index} of {work.size_bytes} bytes came back wrong")

    def _get_into(self, work: Work) -> list[int]:
        calls = [
            (key_name(work.size_bytes, index), self._buffer(place, work.size_bytes))
            for place, index in enumerate(_shuffled(work.key_count, work.seed))
        ]

        def call(number: int) -> None:
            key, buffer = calls[number % len(calls)]
            if self._contestant.get_into(key, buffer) != work.size_bytes:
                raise RuntimeError(f"no value of {work.size_bytes} bytes under {key}")

        return _timed(call, work.seconds)

    def _put(self, work: Work) -> list[int]:
        size = work.size_bytes
        call_count_max = max(PUT_COUNT_MIN, min(PUT_COUNT_MAX, PUT_BYTES_MAX // size))
        indices = islice(self._put_indices, call_count_max)
        calls = [(key_name(size, index), self._value(index, size)) for index in indices]
        samples = _timed(lambda n: self._contestant.put(*calls[n]), work.seconds, call_count_max)
        self._put_keys += [key for key, _ in calls[: len(samples)]]
        return samples

    def _tidy(self) -> None:
        for start in range(0, len(self._put_keys), _DELETE_LENGTH):
            self._contestant.delete_many(self._put_keys[start : start + _DELETE_LENGTH])
        self._put_keys = []

    def _ask_many(self, work: Work) -> list[int]:
        if not isinstance(self._contestant, BatchContestant):
            raise TypeError(f"{type(self._contestant).__name__} has no calls for many keys")
        ask = {
            Operation.EXISTS_MANY: self._contestant.exists_many,
            Operation.PREFIX_LENGTH: self._contestant.prefix_length,
        }[work.operation]
        keys = [key_name(work.size_bytes, i) for i in _shuffled(work.key_count, work.seed)]
        batches = list(_batches(keys, work.batch_length))

        def call(number: int) -> None:
            batch = batches[number % len(batches)]
            if (found := ask(batch)) != len(batch):
                raise RuntimeError(f"found {found} of {len(batch)} keys that were stored")

        return _timed(call, work.seconds)

    def _value(self, index: int, size_bytes: int) -> memoryview:
        # One cache line further each time around, so that neighbours differ in content.
        offset = index * (size_bytes + 64) % (POOL_BYTES - size_bytes + 1)
        return self._source[offset : offset + size_bytes]

    def _buffer(self, place: int, size_bytes: int) -> memoryview:
        offset = place * size_bytes % (POOL_BYTES - size_bytes + 1)
        return self._sink[offset : offset + size_bytes]


def serve(contestant: Contestant) -> None:
    """Answer work from standard input until it is closed."""
    # Libraries that print (Mooncake's does) would garble the answers: they get stderr instead.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    loop = Loop(contestant)
    for line in sys.stdin:
        print(loop.run(Work.from_line(line)).to_line(), file=answers)


def _timed(call: Callable[[int], None], seconds: float, count_max: int = 1 << 40) -> list[int]:
    """Latencies in ns of `call(0)`, `call(1)`, ... until the time or the count is over."""
    samples: list[int] = []
    deadline = perf_counter_ns() + int(seconds * 1e9)
    start = perf_counter_ns()
    while start < deadline and len(samples) < count_max:
        call(len(samples))
        now = perf_counter_ns()
        samples.append(now - start)
        start = perf_counter_ns()
    return samples


def _shuffled(length: int, seed: int) -> list[int]:
    return random.Random(seed).sample(range(length), length)


def _batches(keys: list[str], length: int) -> Iterator[list[str]]:
    for start in range(0, len(keys) - length + 1, length):
        yield keys[start : start + length]
