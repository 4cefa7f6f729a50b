"""Both programs on every store, by every hand-off: killed, late, two at once; each row once."""

from pathlib import Path

import pytest

from lakebed.types import Handoff
from tests.support.dying import Fate
from tests.support.lives import survives
from tests.support.servers_lake import Lake
from tests.support.servers_reached import Contestant

pytestmark = pytest.mark.stores

DEATHS = range(2, 200, 9)
"""The calls to die at, one life after the other; by turns they still reach the store."""


@pytest.mark.parametrize("handoff", Handoff)
def test_every_row_is_in_the_table_once_whatever_dies(
    contestant: Contestant, tmp_path: Path, handoff: Handoff
) -> None:
    """D01, D02, D06, L07, L23: killed in the middle of batches, with late files, two penguins."""
    lake = Lake(contestant, tmp_path, handoff)
    lake.land("date=2024-01-01/a.ndjson")
    lake.land("date=2024-01-02/b.ndjson")
    deaths = 0
    for number in DEATHS:
        if survives(lake.life, Fate(number, after=bool(number % 2))):
            break
        deaths += 1
        # It sorts before what is known already.
        lake.land(f"date=2024-01-01/a late {999 - number}%.ndjson")
    assert deaths > 3
    lake.land("date=2024-01-02/the last.ndjson")
    lake.programs.blizzard(Fate.none())
    lake.two_penguins()
    lake.life(Fate.none())
    lake.balances()
