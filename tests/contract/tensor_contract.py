"""Arrays with their dtype and shape, and objects as files."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kvstrata
from kvstrata import Store, _kernel
from kvstrata.store import limits
from tests.contract.contents import content, overwrite

CHUNK = limits.CHUNK_BYTES
DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


class TensorContract:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_arrays_keep_dtype_and_shape(self, store: Store, dtype: str) -> None:
        array = (np.arange(2 * 3 * 5) % 7).astype(dtype).reshape(2, 3, 5)
        store.put_tensor("t", array)
        back = store.get_tensor("t")
        assert back is not None
        assert (back.dtype, back.shape) == (array.dtype, array.shape)
        assert np.array_equal(back, array)
        status = store.stat("t")
        assert status is not None
        assert (status.dtype, status.shape) == (dtype, (2, 3, 5))
        assert store.get("t") == array.tobytes()

    @pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (3, CHUNK)])
    def test_shapes_of_any_kind(self, store: Store, shape: tuple[int, ...]) -> None:
        array = np.ones(shape, "float32")
        store.put_tensor("t", array)
        back = store.get_tensor("t")
        assert back is not None
        assert back.shape == shape
        assert np.array_equal(back, array)

    def test_torch_tensors(self, store: Store) -> None:
        torch = pytest.importorskip("torch", reason="torch is not installed: torch is NOT tested")
        for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.int64, torch.bool):
            tensor = torch.arange(24).reshape(2, 3, 4).to(dtype)
            store.put_tensor("t", tensor)
            back = store.get_tensor("t", "torch")
            assert back is not None
            assert back.dtype == dtype
            assert torch.equal(back, tensor)
        with pytest.raises(kvstrata.UsageError, match=r"tensor\.contiguous\(\)"):
            store.put_tensor("t", torch.ones(4, 6).t())
        sink = torch.zeros(2, 3, 4, dtype=torch.bool)
        assert store.get_into("t", sink) == sink.numel()

    def test_an_array_in_pieces_is_refused_in_words(self, store: Store) -> None:
        array = np.ones((4, 6))
        for pieces in (array.T, array[:, ::2]):
            with pytest.raises(kvstrata.UsageError, match=r"numpy\.ascontiguousarray"):
                store.put_tensor("t", pieces)
            with pytest.raises(kvstrata.UsageError, match=r"numpy\.ascontiguousarray"):
                store.get_into("t", pieces)
        with pytest.raises(kvstrata.UsageError):
            store.put_tensor("t", np.array([object()]))
        assert not store.exists("t")

    def test_an_array_is_filled_in_place(self, store: Store) -> None:
        array = np.arange(CHUNK, dtype="int32")
        store.put("t", array)
        sink = np.zeros(CHUNK, "int32")
        assert store.get_into("t", sink) == array.nbytes
        assert np.array_equal(sink, array)

    def test_what_was_not_put_as_a_tensor_is_not_read_as_one(self, store: Store) -> None:
        assert store.get_tensor("t") is None
        store.put("t", b"12345678")
        with pytest.raises(kvstrata.UsageError, match="not put as a tensor"):
            store.get_tensor("t")
        store.put_tensor("t", np.ones(4, "int16"))
        store.append("t", b"xx", 8)
        with pytest.raises(kvstrata.UsageError, match="was it appended to"):
            store.get_tensor("t")

    @pytest.mark.parametrize("size", [0, 1, CHUNK + 1, (8 << 20) + 3])
    def test_files_go_in_and_come_out(self, store: Store, tmp_path: Path, size: int) -> None:
        source, target = tmp_path / "source", tmp_path / "target"
        source.write_bytes(content(size))
        assert store.put_file("f", source).size == size
        progress: list[tuple[int, int]] = []
        arrived = store.get_file("f", target, progress=lambda *now: progress.append(now))
        assert arrived == size
        assert target.read_bytes() == content(size)
        assert progress[-1] == (size, size)
        assert sorted(tmp_path.iterdir()) == [source, target]

    @pytest.mark.parametrize("size", [CHUNK // 2, 9 * CHUNK + 5])
    @pytest.mark.parametrize("meanwhile", [os.truncate, overwrite])
    def test_a_file_changed_while_it_is_put_is_not_stored(
        self,
        store: Store,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        meanwhile: Callable[[Path, int], None],
        size: int,
    ) -> None:
        source = tmp_path / "source"
        source.write_bytes(content(size))
        store.put("f", b"before")
        hashed = _kernel.FileSource

        def change(*arguments: Any) -> _kernel.FileSource:  # noqa: ANN401
            meanwhile(source, size - 100)
            return hashed(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(_kernel, "FileSource", change)
            with pytest.raises(kvstrata.ChangedError, match="source was changed while it was put"):
                store.put_file("f", source)
        assert store.get("f") == b"before"
        source.write_bytes(content(size))
        assert store.put_file("f", source).size == size

    def test_a_file_is_not_made_of_what_is_absent(self, store: Store, tmp_path: Path) -> None:
        assert store.get_file("f", tmp_path / "target") is None
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(FileNotFoundError):
            store.put_file("f", tmp_path / "absent")

    def test_an_object_is_a_file(self, store: Store, door: str) -> None:
        if door != "sync":
            pytest.skip("open() is the blocking store's")
        value = content(3 * CHUNK + 17)
        with store.open("f", "wb") as file:
            file.write(value[:CHUNK])
            file.write(value[CHUNK:])
            assert not store.exists("f")
        with store.open("f") as file:
            assert file.read(10) == value[:10]
            assert file.seek(-7, io.SEEK_END) == len(value) - 7
            assert file.read() == value[-7:]
            assert file.seek(CHUNK - 3) == CHUNK - 3
            assert file.read(6) == value[CHUNK - 3 : CHUNK + 3]
        with store.open("f", "ab") as file:
            file.write(b"the end")
        assert store.get("f") == value + b"the end"
        with pytest.raises(ZeroDivisionError), store.open("g", "wb") as file:
            file.write(b"half" if 1 / 0 else b"")
        assert not store.exists("g")
        with pytest.raises(FileNotFoundError):
            store.open("g")

    def test_a_file_object_never_mixes_two_values(self, store: Store, door: str) -> None:
        if door != "sync":
            pytest.skip("open() is the blocking store's")
        store.put("f", content(4 << 20, 1))
        with store.open("f") as file:
            file.read(10)
            store.put("f", content(4 << 20, 2))
            with pytest.raises(kvstrata.ChangedError):
                file.read()
