"""A batch that finds columns is killed at every call of the store; then a restart.

Its units run twice: once with the columns that are known, and again with a column for what they
met. What they wrote the first time is named by nobody, whoever dies when.
"""

from pathlib import Path
from typing import Any

import pytest

from lakebed.types import RESCUED, Handoff
from tests.support.builders import entries
from tests.support.dying import Fate, lives
from tests.support.lives import survives
from tests.support.mortal import HANDOFFS, Mortal
from tests.support.open_table import ID

pytestmark = pytest.mark.timeout(900)

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
