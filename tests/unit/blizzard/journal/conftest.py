"""Snapshots that are written often, for the tests that ask for them."""

import pytest

from blizzard.journal import compaction


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a snapshot every few entries, and names every few files."""
    monkeypatch.setattr(compaction, "EVERY_ENTRIES", 10)
    monkeypatch.setattr(compaction, "EVERY_NAMES", 20)
