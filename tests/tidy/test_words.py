"""Words that may not stand in the tree, or only in one place of it."""

import ast
import re
from pathlib import Path

NAMES_BANNED = {"utils", "util", "common", "helper", "helpers", "manager", "v2", "misc"}
ENVIRONMENT_HOME = "kvstrata.store.config"
THIS_FOLDER = Path(__file__).parent
OPEN_ENDS = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\(#\d+\))")
# A path of one machine, or the address of a package registry: both are another machine's affair.
ELSEWHERE = re.compile(
    r"(?<![\w.\-])/(?:work|root|home/\w+)/"
    r"|\b(?:pypi\.org|pythonhosted\.org|npmjs\.org|deb\.debian\.org|archive\.ubuntu\.com)\b"
    r"|(?:extra-)?index-url"
)


def hits(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    found = []
    for path in paths:
        if THIS_FOLDER in path.parents:
            continue
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:  # A picture, or bytes kept as a test's input.
            continue
        found += [f"{path}:{n}: {line}" for n, line in enumerate(lines, 1) if pattern.search(line)]
    return found


def test_module_names_say_what_is_inside(sources: list[Path]) -> None:
    vague = [str(p) for p in sources if NAMES_BANNED & set(p.stem.split("_"))]
    assert not vague, f"name the concept instead: {vague}"


def test_open_ends_name_their_issue(texts: list[Path]) -> None:
    assert not hits(OPEN_ENDS, texts)


def test_no_path_or_registry_of_one_machine(texts: list[Path]) -> None:
    assert not hits(ELSEWHERE, texts)


def test_environment_is_read_in_one_place(modules: dict[str, Path]) -> None:
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}:
                assert name == ENVIRONMENT_HOME, (
                    f"{path}:{node.lineno}: only {ENVIRONMENT_HOME} reads the environment"
                )


def test_patterns_find_what_they_are_for() -> None:
    assert OPEN_ENDS.search("# TODO: later")
    assert not OPEN_ENDS.search("# TODO(#12): later")
    assert ELSEWHERE.search('open("/home/me/x")')
    assert not ELSEWHERE.search("tests/work/x")
