"""The files that the tree's own rules are checked on."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("transport", "tiering", "store", "cluster", "connector")
FOLDERS = (*PACKAGES, "tests", "bench", "examples", ".ci")
GENERATED = {"__pycache__", "corpus", "build"}


def files_below(folder: str) -> list[Path]:
    """Return the folder's files that people write, in a stable order."""
    found = (ROOT / folder).rglob("*")
    return sorted(p for p in found if p.is_file() and not GENERATED & set(p.parts))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def sources() -> list[Path]:
    """Every Python and C++ file, tests and bench included."""
    suffixes = {".py", ".pyi", ".cc", ".h"}
    return [p for folder in FOLDERS for p in files_below(folder) if p.suffix in suffixes]


@pytest.fixture(scope="session")
def modules() -> dict[str, Path]:
    """Each shipped Python module by the name it is imported under."""
    found: dict[str, Path] = {}
    for folder in PACKAGES:
        for path in files_below(folder):
            relative = path.relative_to(ROOT)
            if path.suffix != ".py" or "native" in relative.parts:
                continue
            parts = relative.with_suffix("").parts
            found[".".join(("kvstrata", *parts)).removesuffix(".__init__")] = path
    return found


@pytest.fixture(scope="session")
def native() -> list[Path]:
    """The core's sources and headers, without the Python binding's tests."""
    return [p for folder in PACKAGES for p in files_below(folder) if p.suffix in {".cc", ".h"}]


@pytest.fixture(scope="session")
def texts() -> list[Path]:
    """Every file of the tree that a person may read, root files included."""
    root_files = [p for p in sorted(ROOT.iterdir()) if p.is_file()]
    below = [p for folder in FOLDERS for p in files_below(folder)]
    return root_files + below
