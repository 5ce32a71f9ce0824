"""Writes limits.h from store/limits.py. Knows only the file's form: `NAME: Final = <int>`."""

import ast
import sys
from pathlib import Path

HEADER = """\
// Written by store/native/generate_limits.py from store/limits.py, where the reasons stand.
#pragma once

#include <cstdint>

namespace kvstrata::limits {{

{constants}

}}  // namespace kvstrata::limits
"""


def read_limits(path: Path) -> dict[str, int]:
    """Return each limit of the list by its name, in the list's order.

    Raises:
        ValueError: a constant is not an int, or does not fit in 63 bits.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    values: dict[str, object] = {}
    exec(compile(tree, str(path), "exec"), values)
    limits: dict[str, int] = {}
    for node in tree.body:
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        name = node.target.id
        value = values[name]
        if not isinstance(value, int) or not 0 <= value < 2**63:
            raise ValueError(
                f"{path}:{node.lineno}: {name} = {value!r} is not an int in 0..2**63-1"
            )
        limits[name] = value
    return limits


def native_name(name: str) -> str:
    """Return the name in the header: KEY_BYTES_MAX is kKeyBytesMax there."""
    return "k" + name.title().replace("_", "")


def main(source: Path, sink: Path) -> None:
    """Write the header only where it changed, so that nothing is compiled again for nothing."""
    constants = "\n".join(
        f"inline constexpr std::uint64_t {native_name(name)} = {value};"
        for name, value in read_limits(source).items()
    )
    text = HEADER.format(constants=constants)
    if sink.exists() and sink.read_text(encoding="utf-8") == text:
        return
    sink.parent.mkdir(parents=True, exist_ok=True)
    sink.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
