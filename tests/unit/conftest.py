"""A source folder and a pipeline that reads it, for the tests that ask for them."""

from pathlib import Path

import pytest

from tests.support.builders import Bench, pipeline_settings


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return an empty source folder."""
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def bench(tmp_path: Path, source: Path) -> Bench:
    """Return a pipeline from the source folder into a table."""
    return Bench(pipeline_settings(source, tmp_path / "table"))
