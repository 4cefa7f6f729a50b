"""How far apart checkpoints are."""

import pytest

from penguin.delta.maintenance import spacing


@pytest.mark.parametrize(
    ("interval", "actions", "versions"),
    [
        (None, 0, 10), (None, 100_000, 10), (None, 500_000, 50), (None, 10_000_000, 100),
        (10, 10_000_000, 10), (300, 10**7, 300),
    ],
)  # fmt: skip
def test_a_large_table_has_fewer_checkpoints_unless_told_otherwise(interval, actions, versions):
    assert spacing(interval, actions) == versions
