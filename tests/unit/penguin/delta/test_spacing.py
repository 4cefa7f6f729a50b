"""How many versions are between two checkpoints."""

import pytest

from penguin.delta.maintenance import spacing


@pytest.mark.parametrize(
    ("interval", "actions", "versions"),
    [(10, 0, 10), (10, 100_000, 10), (10, 500_000, 50), (10, 10_000_000, 100), (300, 10**7, 300)],
)
def test_a_large_table_has_fewer_checkpoints(interval, actions, versions):
    assert spacing(interval, actions) == versions
