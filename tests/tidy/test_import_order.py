"""Who may import whom: leaves < transport < tiering < store < cluster < connector."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ORDER = ("transport", "tiering", "store", "cluster", "connector")
LEAVES = {
    "kvstrata._kernel",
    "kvstrata.store.config",
    "kvstrata.store.errors",
    "kvstrata.store.host_memory",  # Config's own parts: what defaults are made of.
    "kvstrata.store.limits",
    "kvstrata.store.units",
}
# Faces of the whole package for its users; nobody inside imports them.
FACES = {"kvstrata.store._door", "kvstrata.store.pytest_plugin"}
GENERATED_HEADERS = {
    "store/limits.h",
    "store/resp_command_id.h",
    "store/resp_command_table.h",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"][^>"]+)[>"]', re.MULTILINE)


def rank(module: str) -> int:
    """Return the module's place in the order: 0 for a leaf, and a face comes last."""
    if module in LEAVES:
        return 0
    if module in FACES:
        return len(ORDER) + 1
    return 1 + ORDER.index(module.split(".")[1])


def imported(tree: ast.Module, modules: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """Yield (line, module) for each import from kvstrata; `kvstrata` itself is the door."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, a.name) for a in node.names if is_ours(a.name))
        elif isinstance(node, ast.ImportFrom) and node.module and is_ours(node.module):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = inner in modules or inner in LEAVES
                yield node.lineno, inner if is_module else node.module


def is_ours(module: str) -> bool:
    return module.split(".")[0] == "kvstrata"


def test_python_imports_follow_the_order(modules: dict[str, Path]) -> None:
    wrong = []
    for name, path in modules.items():
        for line, target in imported(ast.parse(path.read_text(encoding="utf-8")), modules):
            if target == "kvstrata":
                wrong.append(f"{path}:{line}: imports from the door; import from its home")
            elif target in FACES:
                wrong.append(f"{path}:{line}: imports {target}, which is for users only")
            elif rank(target) > rank(name):
                wrong.append(f"{path}:{line}: {name} imports {target}, which comes later")
    assert not wrong, "\n".join(wrong)


def test_package_files_hold_only_a_docstring(modules: dict[str, Path]) -> None:
    for path in modules.values():
        if path.name == "__init__.py":
            body = ast.parse(path.read_text(encoding="utf-8")).body
            assert len(body) == 1, f"{path}: only a docstring may stand here"
            assert isinstance(body[0], ast.Expr)


def test_relative_imports_are_not_used(modules: dict[str, Path]) -> None:
    for path in modules.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}:{node.lineno}: name the module in full"


def includes(path: Path) -> list[str]:
    return [hit[1:] for hit in INCLUDE.findall(path.read_text(encoding="utf-8")) if hit[0] == '"']


def is_native_leaf(root: Path, header: str) -> bool:
    """Tell whether a header needs no other of ours, so that a lower folder may share it."""
    return header in GENERATED_HEADERS or not set(includes(root / header)) - GENERATED_HEADERS


def test_native_includes_follow_the_order(native: list[Path], root: Path) -> None:
    wrong = []
    for path in native:
        folder = path.relative_to(root).parts[0]
        for header in includes(path):
            owner = header.split("/")[0]
            if header not in GENERATED_HEADERS and not (root / header).is_file():
                wrong.append(f"{path}: {header} is not a path from the root of the tree")
            elif folder == "tiering" and owner == "transport" and not is_native_leaf(root, header):
                wrong.append(f"{path}: tiering may share only leaves of transport, not {header}")
            elif header not in GENERATED_HEADERS and ORDER.index(owner) > ORDER.index(folder):
                wrong.append(f"{path}: includes {header}, which comes later in the order")
    assert not wrong, "\n".join(wrong)


def test_only_the_binding_knows_python(native: list[Path], root: Path) -> None:
    for path in native:
        is_binding = path.parent == root / "store/native" and path.name.startswith("bind")
        for header in INCLUDE.findall(path.read_text(encoding="utf-8")):
            knows = header[1:].startswith(("nanobind/", "Python.h"))
            assert is_binding or not knows, f"{path}: {header[1:]} belongs into store/native/bind*"


@pytest.mark.parametrize(
    ("module", "place"),
    [("kvstrata.store.errors", 0), ("kvstrata.transport.tcp", 1), ("kvstrata.store.client", 3)],
)
def test_rank(module: str, place: int) -> None:
    assert rank(module) == place
