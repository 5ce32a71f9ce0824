"""Files of secrets: what is read, and that nothing in their place blocks or breaks the reader."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kvstrata.store.errors import UsageError
from kvstrata.store.secret_files import read_secrets


def test_one_or_two_secrets_a_line_each(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text("one\nzw\u00f6lf\n")
    link = tmp_path / "link"  # As Kubernetes lays secrets out.
    link.symlink_to(file)
    assert read_secrets(link) == ["one", "zw\u00f6lf"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "not a regular file"),
        (os.mkdir, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: None, "cannot read the secrets"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "not UTF-8"),
        (lambda path: path.write_bytes(b"a " * 3000), "larger than 4096 bytes"),
        (lambda path: path.write_bytes(b""), "holds 0 secrets"),
        (lambda path: path.write_bytes(b"a b c"), "holds 3 secrets"),
        (lambda path: path.write_bytes(b"a" * 257), "at most 256 bytes, and one in .* has 257"),
    ],
    ids=["fifo", "folder", "device", "absent", "binary", "large", "empty", "three", "long"],
)
def test_anything_else_is_told(tmp_path: Path, make: Callable[[Path], None], words: str) -> None:
    path = tmp_path / "secrets"
    make(path)
    with pytest.raises(UsageError, match=words):
        read_secrets(path)


def test_a_name_that_no_file_can_have() -> None:
    with pytest.raises(UsageError, match="null byte"):
        read_secrets(Path("/etc/secret\0s"))
