"""A store over a local folder, for the tests that ask for one."""

from pathlib import Path

import pytest

from lakebed.storage.store import Store
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
