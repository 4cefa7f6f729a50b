"""A store that dies before or after its n-th call, for every n; then a restart."""

from functools import partial
from pathlib import Path

import pytest

from tests.support.dying import Fate, in_recovery, lives
from tests.support.landing import Landing, config
from tests.support.lives import Programs, survives
from tests.support.readers import ids

# As many lives as a life makes calls: minutes, on a machine that has other things to do.
pytestmark = pytest.mark.timeout(900)


def both(programs: Programs, landing: Landing, fate: Fate) -> None:
    """One life: two batches, each committed."""
    programs.blizzard(fate)
    programs.penguin(fate)
    if not (landing.folder / "late.ndjson").exists():
        landing.land("late.ndjson", 5)
    programs.blizzard(fate)
    programs.penguin(fate)


def test_death_at_any_call_leaves_every_row_in_the_table_once(tmp_path: Path) -> None:
    """Over journal, uploads, hand-off and receipt, three times in a row (D01, D02, D11, L01)."""
    folder = tmp_path / "lake"
    landing = Landing(folder / "landing")
    for name in ("a.ndjson", "b.ndjson.gz"):
        landing.land(name, 5)
    programs = Programs(config(folder))
    begun, deaths = len(landing.rows), 0
    for fate in lives(folder):
        del landing.rows[begun:]
        for each in (fate, *in_recovery(fate)):
            deaths += not survives(partial(both, programs, landing), each)
        both(programs, landing, Fate.none())

        assert ids(folder / "table") == landing.ids, fate
    assert deaths >= 33, "the store really died, at many places"
