"""A table directory that blizzard writes to, for the tests that ask for one."""

from pathlib import Path

import pytest

from tests.support.tables import TableDirectory


@pytest.fixture
def table(tmp_path: Path) -> TableDirectory:
    """Return a table directory without a journal."""
    return TableDirectory(tmp_path / "table")
