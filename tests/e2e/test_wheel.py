"""The wheel works where there is no compiler, and holds nothing but the package."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILERS = ("c++", "cc", "clang", "cmake", "g++", "gcc", "ld", "ninja")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def run(*command: str | Path, **environment: str) -> str:
    """Run to the end and return what it printed; fail with its output if it fails."""
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    settings = {
        "build-dir": str(ROOT / "build" / "release"),  # Shared with `make`: compiled once.
        "cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR": "ON",
    }
    options = [f"--config-settings={key}={value}" for key, value in settings.items()]
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run(*pip, *options, "--wheel-dir", folder, ROOT)
    (built,) = folder.glob("kvstrata-*.whl")
    return built


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    files = [name for name in names if not name.split("/")[0].endswith(".dist-info")]
    assert all(name.startswith("kvstrata/") for name in files)
    assert {Path(name).suffix for name in files} == {".py", ".pyi", ".so", ".typed"}
    assert "kvstrata/__init__.py" in files
    assert "kvstrata/store/_door.py" not in files


def test_wheel_installs_and_runs_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    scripts = tmp_path / "venv" / "bin"
    path = {"PATH": str(scripts), "PYTHONPATH": ""}
    for name in COMPILERS:
        assert not (scripts / name).exists()
    run(scripts / "python", "-m", "pip", "install", "--quiet", str(wheel), **path)

    imported = "import kvstrata, kvstrata._kernel; print(kvstrata.__version__)"
    version = run(scripts / "python", "-I", "-c", imported, **path)
    assert version in wheel.name
    assert version in run(scripts / "kvstrata", "--version", **path)
    assert version in run(scripts / "python", "-I", "-m", "kvstrata", "--version", **path)
