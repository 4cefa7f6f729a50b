"""What holds for all tests of blizzard, and a configured pipeline for those that ask for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.audits import tables_left_by
from tests.support.builders import Bench
from tests.support.commands import Desk


@pytest.fixture(autouse=True)
def tables_are_balanced(request: pytest.FixtureRequest) -> Iterator[None]:
    """Audit every table that a test leaves behind."""
    yield from tables_left_by(request)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a configuration with an empty source folder."""
    (tmp_path / "in").mkdir()
    return Desk(tmp_path)


@pytest.fixture
def bench(desk: Desk) -> Bench:
    """Return the pipeline of the configuration, in this process."""
    return desk.bench()
