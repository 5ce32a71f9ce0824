"""Fixtures for the tests of programs that use kvstrata."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvstrata.store.local import LocalStore


@pytest.fixture
def kvstrata_store() -> "Iterator[LocalStore]":
    """An empty store of 256 MiB in this process, for one test."""
    # Imported when first used: the plugin is loaded in every run of pytest, also in those that
    # have nothing to do with kvstrata.
    from kvstrata.store.local import local

    with local() as store:
        yield store
