"""A pipeline whose metrics are watched, for the tests that ask for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.watched import Watched, watching


@pytest.fixture
def watched(tmp_path: Path, source: Path) -> Iterator[Watched]:
    """Yield a pipeline from the source folder, with its metrics."""
    with watching(tmp_path, source) as found:
        yield found
