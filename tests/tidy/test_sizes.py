"""Files and functions stay small enough to be read at one go."""

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

FILE_LINES_WARN = 500
FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70

NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/                 # comments
      | R"\((?:.|\n)*?\)"                  # raw strings
      | "(?:\\.|[^"\\\n])*"                # strings
      | (?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'  # characters, but not the marks in 1'000
      | ^[ ]*\#(?:[^\n]*\\\n)*[^\n]*       # preprocessor lines, with their continuations
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
NOT_A_FUNCTION = re.compile(r"^\s*(namespace|class|struct|union|enum|extern)\b")


def blank(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def native_functions(text: str) -> Iterator[tuple[int, int]]:
    """Yield (first line, line count) of each outermost block that has a parameter list."""
    code = NOT_CODE.sub(blank, text)
    head_start, opened, function_depth, function_line = 0, 0, 0, 0
    for at, character in enumerate(code):
        if character == "{":
            opened += 1
            head = code[head_start:at]
            if not function_depth and "(" in head and not NOT_A_FUNCTION.match(head):
                function_depth = opened
                function_line = 1 + code.count("\n", 0, head_start + len(head) - len(head.lstrip()))
        elif character == "}":
            if opened == function_depth:
                yield function_line, 2 + code.count("\n", 0, at) - function_line
                function_depth = 0
            opened -= 1
        if character in ";{}":
            head_start = at + 1


def python_functions(text: str) -> Iterator[tuple[int, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_is_too_long(sources: list[Path]) -> None:
    long = [f"{p}: {line_count(p)} lines" for p in sources if line_count(p) > FILE_LINES_MAX]
    assert not long, f"over {FILE_LINES_MAX} lines; split by concept:\n" + "\n".join(long)


@pytest.mark.filterwarnings("default")
def test_long_files_are_named(sources: list[Path]) -> None:
    for path in sources:
        if line_count(path) > FILE_LINES_WARN:
            warnings.warn(f"{path} has {line_count(path)} lines; one concept?", stacklevel=1)


def test_no_function_is_too_long(sources: list[Path]) -> None:
    long = []
    for path in sources:
        text = path.read_text(encoding="utf-8")
        find = python_functions if path.suffix in {".py", ".pyi"} else native_functions
        for line, count in find(text):
            if count > FUNCTION_LINES_MAX:
                long.append(f"{path}:{line}: {count} lines")
    assert not long, f"functions over {FUNCTION_LINES_MAX} lines:\n" + "\n".join(long)


def test_native_functions_are_found() -> None:
    text = """
namespace a {
// A comment with a { brace, and 1'000.
struct B : C {
  int get() const noexcept { return '{'; }
};

template <typename T>
int
first(T t) {
  if (t) {
    return 1;
  }
  return 2;
}
}  // namespace a
"""
    assert list(native_functions(text)) == [(5, 1), (8, 8)]
