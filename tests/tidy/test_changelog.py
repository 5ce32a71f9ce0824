"""CHANGELOG.md keeps one shape, so that it can be read by release and by kind of change."""

import re
from pathlib import Path

import pytest

GROUPS = ["Safety and performance", "Features", "Internals"]
RELEASE = re.compile(r"\d+\.\d+\.\d+ \(\d{4}-\d{2}-\d{2}\)")


@pytest.fixture(scope="module")
def lines(root: Path) -> list[str]:
    return (root / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()


def test_unreleased_comes_first(lines: list[str]) -> None:
    releases = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert lines[0] == "# Changelog"
    assert releases[0] == "Unreleased"
    assert all(RELEASE.fullmatch(release) for release in releases[1:])


def test_changes_are_grouped(lines: list[str]) -> None:
    groups: list[str] = []
    for line in lines:
        if line.startswith("## "):
            groups = []
        elif line.startswith("### "):
            groups.append(line.removeprefix("### "))
            assert groups == sorted(groups, key=GROUPS.index)
        elif line.startswith("- "):
            assert groups, f"{line!r} stands in no group"
