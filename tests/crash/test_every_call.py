"""Both programs die before or after any call of the store, and are started again."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lakebed.documents.entry import Entry
from lakebed.layout import outbox
from lakebed.types import RESCUED, Handoff
from tests.support.builders import entries
from tests.support.dying import Fate, in_recovery, lives
from tests.support.landing import Landing, config
from tests.support.lives import Programs, survives
from tests.support.mortal import HANDOFFS, Mortal
from tests.support.open_table import ID
from tests.support.quarantined import quarantined_rows
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


# As many lives as a life makes calls: minutes, on a machine that has other things to do.

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


ADD = {"fields": [ID], "unknown_fields": "add"}
FIRST, SECOND = "date=2024-01-01", "date=2024-01-02"


@pytest.mark.parametrize(("handoff", "inlined"), HANDOFFS.values(), ids=list(HANDOFFS))
@pytest.mark.parametrize("schema", [ADD, None], ids=["add", "infer"])
def test_death_at_any_call_of_a_batch_that_finds_columns_loses_and_doubles_nothing(
    tmp_path: Path, schema: dict[str, Any] | None, handoff: Handoff, inlined: bool
) -> None:
    folder = tmp_path / "desk"
    desk = Mortal(folder, schema, handoff=handoff, inlined=inlined)
    if schema is not None:
        desk.land(f"{FIRST}/0.ndjson", {"id": 0})
        desk.live(Fate.none())
    desk.land(f"{FIRST}/a.ndjson", {"id": 1, "n": 7, "tags": []}, {"id": 2})
    desk.land(f"{SECOND}/b.ndjson", {"id": 3})
    deaths = 0
    for fate in lives(folder):
        deaths += not survives(desk.live, fate)
        desk.live(Fate.none())

        where = f"died at {fate}"
        table = desk.rows()
        rows = {row["id"]: row for row in table}
        assert sorted(rows) == [*([0] if schema else []), 1, 2, 3], where
        assert len(table) == len(rows), where
        assert (rows[1]["n"], rows[1][RESCUED]) == (7, '{"tags":[]}'), where
        assert (rows[2]["n"], rows[3]["n"]) == (None, None), where
        assert desk.types["n"] == "long", where
        last = [entry for entry in entries(desk.table) if entry.files][-1]
        assert last.columns is not None, where
        assert last.rescues, where
        # What the growing unit wrote first, and what a dead life left, is nobody's.
        assert schema is None or desk.garbage(), where
        desk.collect()
        assert desk.garbage() == [], where
        assert len(desk.rows()) == len(rows), where
    assert deaths >= 11, "the store really died, at many places"


SCHEMAS = {
    "declared": {"fields": [ID]},
    "add": {"fields": [ID], "unknown_fields": "add", "on_mismatch": "fail"},
}


@pytest.mark.parametrize(("handoff", "inlined"), HANDOFFS.values(), ids=list(HANDOFFS))
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_death_at_any_call_leaves_every_good_row_and_every_bad_line_once(
    tmp_path: Path, schema: dict[str, Any], handoff: Handoff, inlined: bool
) -> None:
    folder = tmp_path / "desk"
    desk = Mortal(
        folder,
        schema,
        handoff=handoff,
        inlined=inlined,
        error_handling={"on_bad_record": "quarantine"},
    )
    desk.land(f"{FIRST}/0.ndjson", {"id": 0}, {"id": "zero"})
    desk.live(Fate.none())
    desk.land(f"{FIRST}/a.ndjson", {"id": 1, "n": 7}, '{"id":', {"id": 2}, {"id": "two"})
    desk.land(f"{SECOND}/b.ndjson", {"id": 3})
    desk.land(f"{SECOND}/c.ndjson", {"id": [3]})
    deaths = 0
    for fate in lives(folder):
        deaths += not survives(desk.live, fate)
        desk.live(Fate.none())

        where = f"died at {fate}"
        assert sorted(row["id"] for row in desk.rows()) == [0, 1, 2, 3], where
        named = [file for entry in entries(desk.table) for file in entry.quarantine]
        found = [
            (row["path"], row["line"], row["raw"]) for row in quarantined_rows(desk.table, named)
        ]
        assert sorted(found) == [
            (f"{FIRST}/0.ndjson", 2, b'{"id": "zero"}'),
            (f"{FIRST}/a.ndjson", 2, b'{"id":'),
            (f"{FIRST}/a.ndjson", 4, b'{"id": "two"}'),
            (f"{SECOND}/c.ndjson", 1, b'{"id": [3]}'),
        ], where
        for entry in entries(desk.table):
            for record in entry.sources:
                assert record.lines == record.rows + record.blank + record.quarantined, where
        desk.collect()
        assert desk.garbage() == [], where
        assert len(quarantined_rows(desk.table, named)) == 4, where
    assert deaths > 11, "the store really died, at many places"
