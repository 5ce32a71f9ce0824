"""Memory as callers have it: what is taken as it is, and what is refused in words."""

import mmap

import numpy as np
import pytest

from kvstrata.store.buffers import Memory, as_sink, as_source, show, tensor_library
from kvstrata.store.errors import UsageError


@pytest.mark.parametrize(
    "value",
    [
        b"12345678",
        bytearray(b"12345678"),
        memoryview(b"12345678"),
        memoryview(b"12345678").cast("I"),
        np.frombuffer(b"12345678", "f4").reshape(2, 1),
        np.frombuffer(b"12345678", "M8[s]"),
    ],
)
def test_sources_are_their_bytes(value: Memory) -> None:
    source = as_source(value)
    assert source.tobytes() == b"12345678"
    assert source.nbytes == 8


def test_nothing_is_copied() -> None:
    array = np.zeros((2, 3), "f4")
    as_sink(array)[:4] = np.float32(1).tobytes()
    assert array[0, 0] == 1
    with mmap.mmap(-1, 4096) as memory:
        sink = as_sink(memory)
        sink[0] = 7
        assert memory[0] == 7
        sink.release()


@pytest.mark.parametrize("value", [b"", bytearray(), np.zeros((0, 4)), memoryview(b"")])
def test_empty_is_fine(value: Memory) -> None:
    assert as_source(value).nbytes == 0


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros((4, 4)).T, r"strides \(8, 32\)\) is not C-contiguous: pass numpy.ascont"),
        (np.zeros(8)[::2], "not C-contiguous"),
        (memoryview(bytes(8))[::2], r"strides \(2,\)\) is not contiguous"),
        (np.array([object()]), "array of Python objects"),
        (5, "type int has no bytes"),
        ("text", "type str has no bytes"),
        (None, "type NoneType has no bytes"),
    ],
)
def test_what_is_no_source(value: Memory, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        as_source(value)


def test_a_sink_is_writable() -> None:
    read_only = np.zeros(4)
    read_only.flags.writeable = False
    for buffer in (b"bytes", memoryview(b"view"), read_only):
        with pytest.raises(UsageError, match="read-only"):
            as_sink(buffer)


def test_gpu_memory_is_refused_with_the_remedy() -> None:
    class OnGpu:
        __cuda_array_interface__: dict[str, object] = {}  # noqa: RUF012 - as the protocol has it.
        shape = (4,)
        dtype = "float32"

    with pytest.raises(UsageError, match=r"copy it to the host first, by \.cpu\(\)"):
        as_source(OnGpu())


def test_libraries_are_told_without_importing_them() -> None:
    assert tensor_library(np.zeros(1)) == "numpy"
    assert tensor_library(b"") is None


def test_long_keys_are_cut_in_messages() -> None:
    assert show(b"short") == "b'short'"
    assert show(b"x" * 1000).endswith("... (1000 bytes)")
    assert len(show(b"\xff" * 4096)) < 100
