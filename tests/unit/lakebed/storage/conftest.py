"""A store over a local folder, for the tests that ask for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.storage.store import Store
from tests.support.answering import Answering, answering
from tests.support.stores import local


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return an empty store."""
    return local(tmp_path / "table")


@pytest.fixture
def root(store: Store) -> Path:
    """Return the folder of the store."""
    assert store.local_root is not None
    return store.local_root


@pytest.fixture
def place() -> Iterator[Answering]:
    """Return a remote store that answers as a test tells it to."""
    with answering() as found:
        yield found
