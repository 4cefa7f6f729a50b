"""The folders of a work unit, for the tests that ask for them."""

from pathlib import Path

import pytest

from blizzard.worker import unit
from tests.support.units import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return an empty source folder and a table to write to."""
    (tmp_path / "in").mkdir()
    return Place(tmp_path / "in", tmp_path / "table")


@pytest.fixture
def tiny_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every file with rows a large one."""
    monkeypatch.setattr(unit, "DECODED_BUDGET", 10)
