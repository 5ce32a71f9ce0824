"""dtype and shape as an attribute, and back."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvstrata
from kvstrata.store import tensors
from kvstrata.store.errors import InternalError, UsageError
from kvstrata.store.tensors import Layout
from tests.unit.store.fake_kernel import FakeNode

DTYPES = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64"]


def test_the_attribute_is_as_the_protocol_says() -> None:
    text = b"bfloat16;2,32,8,128"
    encoded = tensors.encode(Layout("bfloat16", (2, 32, 8, 128)))
    assert encoded == (512).to_bytes(2, "little") + len(text).to_bytes(2, "little") + text


@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 2**40), max_size=8).map(tuple))
def test_layouts_round_trip(dtype: str, shape: tuple[int, ...]) -> None:
    assert tensors.decode(tensors.encode(Layout(dtype, shape))) == Layout(dtype, shape)


def test_other_attributes_are_skipped() -> None:
    other = (514).to_bytes(2, "little") + (4).to_bytes(2, "little") + bytes(4)
    layout = Layout("int8", ())
    assert tensors.decode(other + tensors.encode(layout)) == layout
    assert tensors.decode(other) is None
    assert tensors.decode(b"") is None


@given(st.binary(max_size=64))
def test_any_attributes_are_decoded_or_refused(attributes: bytes) -> None:
    with contextlib.suppress(InternalError):
        tensors.decode(attributes)


@pytest.fixture
def store(node: FakeNode) -> kvstrata.Store:
    return kvstrata.connect("kvstrata://host")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4), (1, 1, 1, 1)])
def test_arrays_round_trip(store: kvstrata.Store, dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    store.put_tensor("key", array)
    again = store.get_tensor("key")
    assert again is not None
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert np.array_equal(again, array)
    assert again.flags.writeable
    status = store.stat("key")
    assert status is not None
    assert (status.dtype, status.shape) == (dtype, shape)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((4, 4)).T, "C-contiguous"),
        (np.zeros(1, ">f4"), "byte order"),
        (np.zeros(1, "M8[s]"), "cannot be put as a tensor"),
        (np.zeros(1, [("a", "f4")]), "cannot be put as a tensor"),
        (np.array([None]), "cannot be put as a tensor"),
        (b"bytes", "not bytes: use put"),
    ],
)
def test_what_cannot_be_put(store: kvstrata.Store, array: tensors.Array, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        store.put_tensor("key", array)


def test_what_cannot_be_got(store: kvstrata.Store, node: FakeNode) -> None:
    assert store.get_tensor("absent") is None
    store.put("plain", b"1234")
    with pytest.raises(UsageError, match="was not put as a tensor"):
        store.get_tensor("plain")
    node.objects[b"odd"] = (b"1234", tensors.encode(Layout("no_such_dtype", (4,))))
    node.versions[b"odd"] = 1
    with pytest.raises(UsageError, match="numpy has no dtype no_such_dtype"):
        store.get_tensor("odd")
    store.put_tensor("grown", np.zeros(4, "f4"))
    store.append("grown", b"more", at=16)
    with pytest.raises(UsageError, match="20 bytes, which is not float32 of shape"):
        store.get_tensor("grown")
    with pytest.raises(UsageError, match="'numpy' or 'torch'"):
        store.get_tensor("plain", framework="jax")  # type: ignore[arg-type]


def test_torch_keeps_what_numpy_lacks(store: kvstrata.Store) -> None:
    torch = pytest.importorskip("torch")
    for name in ("bfloat16", "float8_e4m3fn", "float32"):
        tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
        store.put_tensor("key", tensor)
        again = store.get_tensor("key", framework="torch")
        assert again is not None
        assert again.dtype == tensor.dtype
        assert torch.equal(again.view(torch.uint8), tensor.view(torch.uint8))
    with pytest.raises(UsageError, match=r"pass tensor\.contiguous"):
        store.put("key", torch.zeros(4, 4).T)
