"""Every example runs by itself, as it stands."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import environment

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))

pytestmark = pytest.mark.slow


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        capture_output=True,
        timeout=50,
        text=True,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert "Traceback" not in done.stderr
