from pathlib import Path

import pytest

from kvstrata.cluster.pool_settings import secrets
from kvstrata.store.errors import UsageError


def test_secrets_by_role(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("new\nold\n")
    found = secrets(["read:a", "read:b:c"], [f"admin:{path}"])
    assert found == {"read": ["a", "b:c"], "admin": ["new", "old"]}


@pytest.mark.parametrize("text", ["s3cret", "owner:s3cret", "read:", "read"])
def test_a_secret_without_a_role_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(UsageError, match="--secret begins with a role") as error:
        secrets([text], [])
    assert "s3cret" not in str(error.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the secrets in"):
        secrets([], [f"read:{tmp_path / 'none'}"])
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot read the secrets in"):
        secrets([], [f"read:{tmp_path / 'binary'}"])
