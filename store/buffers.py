"""Keys and memory as callers have them, made into what the extension module takes.

The extension module itself refuses what is not contiguous or not writable, but not in words that
help; so the fast path hands objects over as they are, and only a refusal comes here.
"""

import operator
import reprlib
import sys
from collections.abc import Sequence
from typing import Any, Final, Protocol

from typing_extensions import Buffer

from kvstrata.store import limits
from kvstrata.store.errors import TooLargeError, UsageError

# What the extension module raises for an argument that it cannot take as it is.
REFUSALS: Final = (TypeError, ValueError, BufferError)

_KEY_CHARACTERS_SHOWN: Final = 60


class Tensor(Protocol):
    """What arrays of numpy, torch and cupy have in common."""

    @property
    def shape(self) -> Sequence[int]: ...
    @property
    def dtype(self) -> object: ...


Memory = Buffer | Tensor


def as_key(key: bytes | str) -> bytes:
    """The key's bytes; text is encoded as UTF-8.

    Raises:
        UsageError: it is neither bytes nor str.
        TooLargeError: it is longer than 4096 bytes.
    """
    if isinstance(key, str):
        try:
            key = key.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"the key {key!r} has no UTF-8 form ({error}): give bytes") from error
    elif not isinstance(key, bytes):
        raise UsageError(f"a key is bytes or str, not {type(key).__name__}: {reprlib.repr(key)}")
    if len(key) > limits.KEY_BYTES_MAX:
        raise TooLargeError(
            f"a key has at most {limits.KEY_BYTES_MAX} bytes, not {len(key)}: {show(key)}",
            size=len(key),
        )
    return key


def show(key: bytes | str) -> str:
    """The key for a message, cut where it is long."""
    text = repr(key)
    if len(text) <= _KEY_CHARACTERS_SHOWN:
        return text
    unit = "bytes" if isinstance(key, bytes) else "characters"
    return f"{text[:_KEY_CHARACTERS_SHOWN]}... ({len(key)} {unit})"


def as_source(value: Memory) -> memoryview:
    """A contiguous view of the value's bytes; nothing is copied.

    Raises:
        UsageError: the object has no memory we can read, or its elements do not lie in one piece.
    """
    return _flat(_exporter(value), value)


def as_sink(buffer: Memory) -> memoryview:
    """A contiguous, writable view of the buffer's bytes.

    Raises:
        UsageError: as for `as_source`, or it is read-only.
    """
    view = _flat(_exporter(buffer), buffer)
    if view.readonly:
        raise UsageError(
            f"the buffer ({type(buffer).__name__}) is read-only: give a bytearray, a writable"
            " array, or use get"
        )
    return view


def check_nbytes(nbytes: int) -> int:
    """The size of a region itself.

    Raises:
        UsageError: it is no whole number above 0.
    """
    try:
        size = operator.index(nbytes)
    except TypeError:
        size = 0
    if not 0 < size < 2**63:
        raise UsageError(f"a region has a whole number of bytes, 1 or more, not {nbytes!r}")
    return size


def tensor_library(value: object) -> str | None:
    """ "torch", "cupy" or "numpy" if the object is an array of it. Imports none of them."""
    for name, kind in (("torch", "Tensor"), ("numpy", "ndarray"), ("cupy", "ndarray")):
        module = sys.modules.get(name)
        if module is not None and isinstance(value, getattr(module, kind, ())):
            return name
    return None


def _exporter(value: Memory) -> Memory:
    """An object with the buffer protocol over the same memory."""
    library = tensor_library(value)
    if library == "cupy" or hasattr(value, "__cuda_array_interface__"):
        raise _on_gpu(value)
    if library == "torch":
        return _torch_memory(value)
    if library == "numpy":
        return _numpy_memory(value)
    return value


def _numpy_memory(value: object) -> Memory:
    array: Any = value
    if array.dtype.hasobject:
        raise UsageError(
            f"an array of Python objects (dtype {array.dtype}) has no bytes to store: give it a"
            " dtype of numbers, by array.astype"
        )
    if not array.flags.c_contiguous:
        raise UsageError(
            f"the array (shape {array.shape}, strides {array.strides}) is not C-contiguous:"
            " pass numpy.ascontiguousarray(array)"
        )
    # As bytes: the buffer protocol has no format for bfloat16, float8 and dates.
    flat: Memory = array.reshape(-1).view("u1") if array.size else bytearray()
    return flat


def _torch_memory(value: object) -> Memory:
    tensor: Any = value
    torch: Any = sys.modules["torch"]
    if tensor.device.type != "cpu":
        raise _on_gpu(tensor)
    if tensor.layout != torch.strided:
        raise UsageError(
            f"a tensor of layout {tensor.layout} has no one piece of memory: pass tensor.to_dense()"
        )
    if not tensor.is_contiguous():
        raise UsageError(
            f"the tensor (shape {tuple(tensor.shape)}, strides {tensor.stride()}) is not"
            " contiguous: pass tensor.contiguous()"
        )
    if tensor.numel() == 0:
        return bytearray()
    flat: Memory = tensor.detach().reshape(-1).view(torch.uint8).numpy()
    return flat


def _on_gpu(value: object) -> UsageError:
    return UsageError(
        f"the {type(value).__name__} is in GPU memory, which this version does not reach: copy it"
        " to the host first, by .cpu() (torch) or .get() (cupy)"
    )


def _flat(exporter: Memory, value: object) -> memoryview:
    try:
        view = memoryview(exporter)  # type: ignore[arg-type]
    except (TypeError, BufferError, ValueError) as error:
        raise UsageError(
            f"a value of type {type(value).__name__} has no bytes to reach: give bytes (of a str by"
            " encode()), bytearray, memoryview, mmap, or an array of numpy or torch"
        ) from error
    if not view.c_contiguous:
        raise UsageError(
            f"the memory (shape {view.shape}, strides {view.strides}) is not contiguous: copy it"
            " first, for example by bytes(view)"
        )
    return view if view.nbytes == 0 else view.cast("B")
