"""What holds for all crash tests."""

from collections.abc import Iterator

import pytest

from tests.support.audits import tables_left_by


@pytest.fixture(autouse=True)
def tables_are_balanced(request: pytest.FixtureRequest) -> Iterator[None]:
    """Audit every table that a test leaves behind."""
    yield from tables_left_by(request)
