"""The door: every name is there, for programs and for checkers, and nothing is loaded early."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kvstrata

DOOR = Path(__file__).parents[3] / "store/_door.py"


def names_for_checkers() -> set[str]:
    block = next(node for node in ast.parse(DOOR.read_text()).body if isinstance(node, ast.If))
    imports = (node for node in block.body if isinstance(node, ast.ImportFrom))
    return {alias.asname or alias.name for node in imports for alias in node.names}


def test_checkers_and_programs_see_the_same_names() -> None:
    assert {*names_for_checkers(), "__version__"} == set(dir(kvstrata))
    for name in names_for_checkers():
        assert getattr(kvstrata, name).__name__ == name


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="'konnect'"):
        _ = kvstrata.konnect  # type: ignore[attr-defined]


def test_importing_loads_no_part() -> None:
    program = (
        "import sys, kvstrata\nsys.exit(any(name.startswith('kvstrata.') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=30)
    assert done.returncode == 0
