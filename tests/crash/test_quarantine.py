"""A batch with bad lines is killed at every call of the store; then a restart.

Good rows are in the table once, and each bad line is once in a quarantine file that an entry names.
Where the batch finds columns, its units run twice, and set the same lines aside twice: only what
the second run wrote is named.
"""

from pathlib import Path
from typing import Any

import pytest

from lakebed.types import Handoff
from tests.support.builders import entries
from tests.support.dying import Fate, lives
from tests.support.lives import survives
from tests.support.mortal import HANDOFFS, Mortal
from tests.support.open_table import ID
from tests.support.quarantined import aside

pytestmark = pytest.mark.timeout(900)

FIRST, SECOND = "date=2024-01-01", "date=2024-01-02"
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
        found = [(row["path"], row["line"], row["raw"]) for row in aside(desk.table, named)]
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
        assert len(aside(desk.table, named)) == 4, where
    assert deaths > 11, "the store really died, at many places"
