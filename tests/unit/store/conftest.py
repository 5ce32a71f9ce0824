from collections.abc import Iterator

import pytest

from tests.unit.store.fake_kernel import FakeNode


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNode]:
    """A fake node that every connection made in the test talks to."""
    node = FakeNode().install(monkeypatch)
    yield node
    for connection in node.connections:
        connection.close()
