"""A configured pipeline and its commands, for the tests that ask for them."""

from pathlib import Path

import pytest

from tests.support.builders import Bench
from tests.support.commands import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a configuration with an empty source folder."""
    (tmp_path / "in").mkdir()
    return Desk(tmp_path)


@pytest.fixture
def bench(desk: Desk) -> Bench:
    """Return the pipeline of the configuration, in this process."""
    return desk.bench()
