"""What tests of configurations share."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for files of a configuration; relative names are meant below it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
