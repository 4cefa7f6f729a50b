"""A store that dies before or after its n-th call, where files are handed off; then a restart."""

from functools import partial
from pathlib import Path

import pytest

from lakebed.documents.entry import Entry
from lakebed.layout import outbox
from lakebed.types import Handoff
from tests.support.builders import entries
from tests.support.dying import Fate, in_recovery, lives
from tests.support.landing import Landing, config
from tests.support.lives import Programs, survives
from tests.support.readers import ids

# As many lives as a life makes calls: minutes, on a machine that has other things to do.
pytestmark = pytest.mark.timeout(900)

LATE = "date=2024-01-01/late.ndjson"


def one_after_the_other(programs: Programs, landing: Landing, fate: Fate) -> None:
    """One life: two batches of blizzard, handed off, then penguin."""
    programs.blizzard(fate)
    if not (landing.folder / LATE).exists():
        landing.land(LATE, 1)
    programs.blizzard(fate)
    programs.penguin(fate)


@pytest.mark.parametrize("handoff", [Handoff.STAGING, Handoff.DIRECT])
def test_death_at_any_call_of_a_hand_off_leaves_every_row_in_the_table_once(
    tmp_path: Path, handoff: Handoff
) -> None:
    """Over metas, moves and deletions, with two files to an entry (D02, D11, L07, L23)."""
    folder = tmp_path / "lake"
    table = folder / "table"
    landing = Landing(folder / "landing")
    for name in ("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson"):
        landing.land(name, 1)
    programs = Programs(config(folder, sink=f"handoff: {handoff}", partitioned=True))
    life = partial(one_after_the_other, programs, landing)
    begun, deaths = len(landing.rows), 0
    for fate in lives(folder):
        del landing.rows[begun:]
        for each in (fate, *in_recovery(fate)):
            deaths += not survives(life, each)
            if table.exists():
                # Another penguin looks at what the dead have left, and the table can be read.
                programs.penguin(Fate.none())
            assert set(ids(table)) <= set(landing.ids), fate
        life(Fate.none())

        assert ids(table) == landing.ids, fate
        assert not list(table.glob("_staging/pending/*")), fate
        named = {name for entry in entries(table) for name in waiting_for(entry)}
        assert not [name for name in named if (table / name).exists()], fate
    assert deaths >= 40, "the store really died, at many places"


def waiting_for(entry: Entry) -> list[str]:
    """Return the places of an entry's files in the outbox."""
    return [outbox(entry.pipeline, file.filename) for file in entry.files]
