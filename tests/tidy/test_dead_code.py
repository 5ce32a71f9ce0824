"""Nothing lies about: each limit is used, each source is built, each module is reached."""

import ast
import re
from pathlib import Path


def test_every_limit_is_used(root: Path, modules: dict[str, Path], native: list[Path]) -> None:
    path = root / "store/limits.py"
    limits = [
        node.target.id
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    assert limits
    others = [p for p in (*modules.values(), *native) if p != path]
    text = "\n".join(p.read_text(encoding="utf-8") for p in others)
    unused = [n for n in limits if n not in text and native_name(n) not in text]
    assert not unused, f"limits that nothing reads: {unused}"


def native_name(limit: str) -> str:
    """Return the limit's name in limits.h: KEY_BYTES_MAX is kKeyBytesMax there."""
    return "k" + limit.title().replace("_", "")


def test_every_native_source_is_built(native: list[Path]) -> None:
    for path in native:
        if path.suffix == ".cc":
            listed = (path.parent / "CMakeLists.txt").read_text(encoding="utf-8")
            assert path.name in re.split(r"[\s()]+", listed), f"{path} is in no CMakeLists.txt"


def test_every_native_header_is_included(native: list[Path], root: Path) -> None:
    text = "\n".join(p.read_text(encoding="utf-8") for p in native)
    for path in native:
        if path.suffix == ".h":
            name = path.relative_to(root).as_posix()
            assert f'#include "{name}"' in text, f"nothing includes {name}"


def test_every_module_is_reached(root: Path, modules: dict[str, Path]) -> None:
    entry_points = (root / "pyproject.toml").read_text(encoding="utf-8")
    # What the build reads is reached from the scripts that write headers.
    generators = "\n".join(p.read_text(encoding="utf-8") for p in root.glob("*/native/*.py"))
    entry_points += generators
    for name, path in modules.items():
        if path.name in {"__init__.py", "__main__.py", "_door.py"}:
            continue
        parent, _, stem = name.rpartition(".")
        others = "\n".join(p.read_text(encoding="utf-8") for p in modules.values() if p != path)
        beside = re.search(rf"from {parent} import (?:\([^)]*|[^\n]*)\b{stem}\b", others)
        reached = name in entry_points + others or beside
        assert reached, f"nothing imports {name}"
