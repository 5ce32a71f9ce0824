"""Files and objects: bounded pieces of one version, and files that appear whole or not at all."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import Buffer

import kvstrata
from kvstrata.store import streams
from kvstrata.store.errors import ChangedError, MismatchError, TooLargeError, UsageError
from tests.contract.contents import overwrite
from tests.unit.store.fake_kernel import FakeNode, Get, Put

DATA = bytes(range(256)) * 64


@pytest.fixture
def store(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> kvstrata.Store:
    monkeypatch.setattr(streams, "PIECE_BYTES", 1000)
    return kvstrata.connect("kvstrata://host")


@pytest.mark.parametrize("data", [DATA, b"x"])
def test_files_round_trip(store: kvstrata.Store, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "source").write_bytes(data)
    store.put_file("key", tmp_path / "source")
    seen: list[tuple[int, int]] = []
    copy = tmp_path / "copy"
    assert store.get_file("key", copy, progress=lambda *step: seen.append(step)) == len(data)
    assert copy.read_bytes() == data
    assert seen[-1] == (len(data), len(data))
    assert len(seen) == -(-len(data) // 1000)


@pytest.mark.parametrize("meanwhile", [os.truncate, overwrite])
def test_a_file_changed_while_it_is_put_is_not_stored(
    store: kvstrata.Store,
    node: FakeNode,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[Path, int], None],
) -> None:
    source = tmp_path / "source"
    source.write_bytes(DATA)
    begin = Put.__init__

    def change_and_begin(self: Put, key: bytes, value: Buffer, **options: Any) -> None:  # noqa: ANN401
        meanwhile(source, 1_500)
        begin(self, key, value, **options)  # Reads the file.

    monkeypatch.setattr(Put, "__init__", change_and_begin)
    with pytest.raises(ChangedError, match="source was changed while it was put"):
        store.put_file("key", source)
    assert not node.objects


@pytest.mark.parametrize("left", [0, 500])
def test_a_file_truncated_while_it_is_read_is_an_error(
    store: kvstrata.Store,
    node: FakeNode,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    left: int,
) -> None:
    source = tmp_path / "source"
    source.write_bytes(DATA)
    look = os.fstat

    def look_and_truncate(descriptor: int) -> os.stat_result:
        status = look(descriptor)
        os.truncate(source, left)
        return status

    monkeypatch.setattr(os, "fstat", look_and_truncate)
    with pytest.raises(ChangedError, match=f"source was truncated from 16384 to {left} bytes"):
        store.put_file("key", source)
    assert not node.objects


def test_a_file_larger_than_any_value_is_not_read(
    store: kvstrata.Store, node: FakeNode, tmp_path: Path
) -> None:
    node.value_bytes_max = 100
    (tmp_path / "source").write_bytes(bytes(101))
    with pytest.raises(TooLargeError, match="source has more than 100 B"):
        kvstrata.connect("kvstrata://host").put_file("key", tmp_path / "source")
    with pytest.raises(TooLargeError, match="/dev/zero has more than 100 B"):
        kvstrata.connect("kvstrata://host").put_file("key", "/dev/zero")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_file_that_is_replaced_keeps_its_mode(
    store: kvstrata.Store, tmp_path: Path, mode: int
) -> None:
    (tmp_path / "copy").touch()
    (tmp_path / "copy").chmod(mode)
    store.put("key", DATA)
    store.get_file("key", tmp_path / "copy")
    assert (tmp_path / "copy").stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_leads_to_the_copy(
    store: kvstrata.Store, tmp_path: Path, there: bool
) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder/target"
    if there:
        target.write_bytes(b"old")
    (tmp_path / "link").symlink_to("folder/target")
    store.put("key", DATA)
    store.get_file("key", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert target.read_bytes() == DATA


def test_a_pipe_is_written_to(store: kvstrata.Store, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    store.put("key", DATA)
    store.get_file("key", pipe)
    reader.join(10)
    assert read == [DATA]
    assert pipe.is_fifo()


def test_a_pipe_that_nobody_reads_is_not_waited_for_without_end(
    store: kvstrata.Store, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    store.put("key", DATA)
    with pytest.raises(kvstrata.TimeoutError, match=r"nobody has read the pipe .* within 0\.1 s"):
        store.get_file("key", pipe, timeout=0.1)


def test_a_file_that_is_open_elsewhere_is_written_to(store: kvstrata.Store, tmp_path: Path) -> None:
    store.put("key", DATA)
    with open(tmp_path / "open", "w+b") as file:
        store.get_file("key", f"/dev/fd/{file.fileno()}")
        assert file.read() == DATA


def test_what_went_into_a_device_is_not_written_again(
    store: kvstrata.Store, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("key", DATA)
    assert store.get_file("key", "/dev/null") == len(DATA)
    replace_after(node, monkeypatch, piece=2, times=1)
    with pytest.raises(ChangedError):
        store.get_file("key", "/dev/null")


@pytest.mark.parametrize("path", [".", "no/such/folder"])
def test_a_path_that_cannot_be_written_is_told_as_it_was_given(
    store: kvstrata.Store, tmp_path: Path, path: str
) -> None:
    store.put("key", DATA)
    with pytest.raises(OSError, match="directory") as caught:
        store.get_file("key", tmp_path / path)
    assert caught.value.filename in (str(tmp_path / path), tmp_path / path)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file(store: kvstrata.Store, tmp_path: Path) -> None:
    (tmp_path / "source").touch()
    store.put_file("key", tmp_path / "source")
    assert store.get("key") == b""
    assert store.get_file("key", tmp_path / "copy") == 0
    assert (tmp_path / "copy").read_bytes() == b""


def test_an_absent_key_makes_no_file(store: kvstrata.Store, tmp_path: Path) -> None:
    assert store.get_file("absent", tmp_path / "copy") is None
    assert list(tmp_path.iterdir()) == []


def replace_after(node: FakeNode, monkeypatch: pytest.MonkeyPatch, piece: int, times: int) -> None:
    """Put another version of each object that is read, just before this piece of it."""
    whole = Get.perform_one
    left = [times]

    def perform_one(self: Get, node: FakeNode, index: int, key: bytes, /) -> int:
        if self.offset == piece * 1000 and left[0]:
            left[0] -= 1
            node.versions[key] += 1
        return whole(self, node, index, key)

    monkeypatch.setattr(Get, "perform_one", perform_one)


def test_pieces_of_two_versions_never_mix(
    store: kvstrata.Store, node: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("key", DATA)
    replace_after(node, monkeypatch, piece=2, times=100)
    with pytest.raises(ChangedError, match="was replaced"):
        store.get_file("key", tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


def test_a_reading_that_was_disturbed_begins_again(
    store: kvstrata.Store, node: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("key", DATA)
    replace_after(node, monkeypatch, piece=2, times=1)
    assert store.get_file("key", tmp_path / "copy") == len(DATA)
    assert (tmp_path / "copy").read_bytes() == DATA


def test_a_failed_copy_leaves_the_old_file(
    store: kvstrata.Store, node: FakeNode, tmp_path: Path
) -> None:
    (tmp_path / "copy").write_bytes(b"old")
    store.put("key", DATA)
    node.faults.extend([0, 0, 11])
    with pytest.raises(kvstrata.CorruptError):
        store.get_file("key", tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]
    assert (tmp_path / "copy").read_bytes() == b"old"


def test_an_object_reads_as_a_file(store: kvstrata.Store) -> None:
    store.put("key", DATA)
    with store.open("key") as file:
        assert file.read(10) == DATA[:10]
        assert file.seek(-6, 2) == len(DATA) - 6
        assert file.read() == DATA[-6:]
        assert file.read() == b""
        file.seek(len(DATA) + 5)
        assert file.read() == b""
        file.seek(100)
        assert file.read() == DATA[100:]
    with pytest.raises(FileNotFoundError, match="no key 'absent'"):
        store.open("absent")
    with pytest.raises(UsageError, match="mode is"):
        store.open("key", "r")  # type: ignore[arg-type]


def test_a_reader_notices_another_version(store: kvstrata.Store) -> None:
    store.put("key", DATA)
    with store.open("key") as file:
        store.put("key", DATA)
        with pytest.raises(ChangedError):
            file.read()


def test_a_writer_puts_when_it_is_closed(store: kvstrata.Store, node: FakeNode) -> None:
    with store.open("key", "wb") as file:
        file.write(b"hello ")
        file.write(b"world")
        assert not store.exists("key")
    assert store.get("key") == b"hello world"


def write_and_fail(store: kvstrata.Store) -> None:
    with store.open("key", "wb") as file:
        file.write(b"half")
        raise RuntimeError


def test_a_writer_left_by_an_exception_or_dropped_puts_nothing(store: kvstrata.Store) -> None:
    with pytest.raises(RuntimeError):
        write_and_fail(store)
    store.open("key", "wb").write(b"half")
    assert not store.exists("key")


def test_an_appender_appends(store: kvstrata.Store) -> None:
    for part in (b"abc", b"def"):
        with store.open("key", "ab") as file:
            file.write(part)
    assert store.get("key") == b"abcdef"
    file = store.open("key", "ab")
    file.write(b"ghi")
    store.append("key", b"other", at=6)
    with pytest.raises(MismatchError):
        file.close()
