"""Nodes for the tests of commands and of HTTP."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.command import Node, StartNode


@pytest.fixture
def start_node(tmp_path: Path) -> Iterator[StartNode]:
    """Starts nodes that end with the test."""
    nodes: list[Node] = []

    def start(*arguments: str, before: Sequence[str] = ()) -> Node:
        folder = tmp_path / f"node-{len(nodes)}"
        folder.mkdir()
        nodes.append(Node(folder, *arguments, before=before))
        return nodes[-1]

    yield start
    for node in nodes:
        node.end()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One node for all tests of a module; each test uses keys of its own."""
    node = Node(tmp_path_factory.mktemp("node"))
    yield node
    node.end()
