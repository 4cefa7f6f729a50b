"""The folders of a work unit, for the tests that ask for them."""

from pathlib import Path

import pytest

from tests.support.units import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return an empty source folder and a table to write to."""
    (tmp_path / "in").mkdir()
    return Place(tmp_path / "in", tmp_path / "table")
