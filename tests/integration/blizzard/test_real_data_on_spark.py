"""Files as people have them, from `blizzard init` over Spark to the table, value by value."""

from pathlib import Path

import pytest

from tests.support.real_data.kind import Kind
from tests.support.real_data.kinds import KINDS
from tests.support.real_data.oracle import differences, records_in
from tests.support.real_data.whole_way import arrived, configured
from tests.support.spark import shared_runner

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("session")]

SEED = 15
SIZE = 300


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_value_of_the_files_is_in_the_table(kind: Kind, tmp_path: Path) -> None:
    """HOLES W34: nothing changed, lost, doubled, or in another row; and nothing else."""
    file, _told = configured(kind, tmp_path, SEED, SIZE)
    found = arrived(file, shared_runner())
    records = list(records_in(kind, kind.files(SEED, SIZE)))
    assert len(records) == SIZE
    assert not differences(records, found.rows, found.way)
