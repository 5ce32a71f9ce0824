"""Arrays and tensors: dtype and shape as an object attribute, and back into the caller's library.

The attribute is number 512 of PROTOCOL.md, section 4: text such as `bfloat16;2,32,8,128`. dtypes
have the names that numpy and torch share. Neither library is imported unless a caller asks for it.
"""

import importlib
import math
import struct
import sys
from typing import Any, Final, NamedTuple

from typing_extensions import Buffer

from kvstrata.store import limits
from kvstrata.store.buffers import Tensor, tensor_library
from kvstrata.store.errors import InternalError, UsageError

# numpy.ndarray or torch.Tensor; neither is a dependency, so checkers cannot be told.
Array = Any

_DTYPE_AND_LAYOUT: Final = 512
_HEADER: Final = struct.Struct("<HH")


class Layout(NamedTuple):
    """dtype by name, and the length of each dimension, in C order."""

    dtype: str
    shape: tuple[int, ...]


def describe(tensor: Tensor) -> bytes:
    """The attribute for a tensor.

    Raises:
        UsageError: it is no tensor, or of a kind that cannot be told in the attribute.
    """
    library = tensor_library(tensor)
    if library == "numpy":
        dtype: Any = tensor.dtype
        # Kinds of numpy: bool, signed, unsigned, float, complex; V with a name: bfloat16, float8.
        if dtype.kind not in "biufcV" or dtype.fields or dtype.name.startswith("void"):
            raise UsageError(
                f"an array of {dtype} cannot be put as a tensor: put array.view('u1'), or its bytes"
            )
        if not dtype.isnative:
            raise UsageError(
                f"the array's byte order is not this machine's ({dtype.str}): pass"
                " array.astype(array.dtype.newbyteorder('='))"
            )
        return encode(Layout(dtype.name, tuple(tensor.shape)))
    if library == "torch":
        return encode(Layout(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)))
    raise UsageError(f"a tensor of numpy or torch is wanted, not {type(tensor).__name__}: use put")


def encode(layout: Layout) -> bytes:
    """The attribute as it travels with a put."""
    text = f"{layout.dtype};{','.join(map(str, layout.shape))}".encode()
    if len(text) + _HEADER.size > limits.ATTRIBUTE_BYTES_MAX:
        raise UsageError(
            f"dtype and shape of a tensor of {len(layout.shape)} dimensions are too long to be kept"
            f" (more than {limits.ATTRIBUTE_BYTES_MAX} bytes): put it with fewer dimensions"
        )
    return _HEADER.pack(_DTYPE_AND_LAYOUT, len(text)) + text


def decode(attributes: bytes) -> Layout | None:
    """The layout among an object's attributes, or None if it was not put as a tensor.

    Raises:
        InternalError: the attributes are malformed.
    """
    offset = 0
    try:
        while offset < len(attributes):
            kind, length = _HEADER.unpack_from(attributes, offset)
            offset += _HEADER.size
            if kind & 0x7FFF == _DTYPE_AND_LAYOUT:
                text = attributes[offset : offset + length].decode()
                dtype, _, dimensions = text.partition(";")
                return Layout(dtype, tuple(int(d) for d in dimensions.split(",") if d))
            offset += length
    except (struct.error, ValueError) as error:
        raise InternalError(f"attributes {attributes!r} cannot be read: please report") from error
    return None


class Library:
    """Where `get_tensor` puts what it reads.

    Args:
        framework: "numpy" or "torch"; imported here.

    Raises:
        UsageError: it is another, or not installed.
    """

    def __init__(self, framework: str) -> None:
        if framework not in ("numpy", "torch"):
            raise UsageError(f"framework is 'numpy' or 'torch', not {framework!r}")
        try:
            self._module: Any = sys.modules.get(framework) or importlib.import_module(framework)
        except ImportError as error:
            raise UsageError(
                f"framework={framework!r} is not installed: pip install {framework}"
            ) from error
        self._name = framework

    def allocate(self, size: int) -> Buffer:
        """New memory of that many bytes, as a flat array of the library's bytes."""
        if self._name == "numpy":
            memory: Buffer = self._module.empty(size, dtype="u1")
        else:  # torch offers no buffer protocol; numpy's array keeps the storage alive.
            memory = self._module.empty(size, dtype=self._module.uint8).numpy()
        return memory

    def shaped(self, memory: object, attributes: bytes, key: str) -> Array:
        """The memory with the dtype and shape of the attributes; nothing is copied.

        Raises:
            UsageError: the object was not put as a tensor, or the library lacks its dtype.
        """
        layout = decode(attributes)
        if layout is None:
            raise UsageError(f"{key} was not put as a tensor: use get")
        flat: Any = memory if self._name == "numpy" else self._module.from_numpy(memory)
        dtype = self._dtype(layout.dtype, key)
        if math.prod(layout.shape) * dtype.itemsize != flat.nbytes:
            raise UsageError(
                f"{key} has {flat.nbytes} bytes, which is not {layout.dtype} of shape"
                f" {layout.shape}: was it appended to?"
            )
        if flat.nbytes == 0:
            return self._module.empty(layout.shape, dtype=dtype)
        return flat.view(dtype).reshape(layout.shape)

    def _dtype(self, name: str, key: str) -> Array:
        if self._name == "torch":
            dtype = getattr(self._module, name, None)
            if isinstance(dtype, self._module.dtype):
                return dtype
        else:
            try:
                return self._module.dtype(name)
            except TypeError:
                pass
        other = "'torch'" if self._name == "numpy" else "'numpy'"
        raise UsageError(
            f"{self._name} has no dtype {name}, which {key} is of: use framework={other}"
        )
