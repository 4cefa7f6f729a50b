"""A batch that finds columns is killed at every call of the store; then a restart.

Its units run twice: once with the columns that are known, and again with a column for what they
met. What they wrote the first time is named by nobody, whoever dies when.
"""

import shutil
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from blizzard.handoff.publish import CommitInline, FollowEntry, Publisher
from blizzard.maintain.gc import Kind, collect, look
from lakebed.clock import Clock
from lakebed.storage.store import Store
from lakebed.types import RESCUED, Handoff
from penguin import inline
from penguin.config import load as penguin_config
from tests.support.builders import entries
from tests.support.dying import Fate, dying
from tests.support.lives import MOST_CALLS, WorkerStores, in_the_log, survives
from tests.support.open_table import ID, OpenTable
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.tables import commit_table

pytestmark = pytest.mark.timeout(900)

ADD = {"fields": [ID], "unknown_fields": "add"}
FIRST, SECOND = "date=2024-01-01", "date=2024-01-02"


class Mortal(OpenTable):
    """A table whose writers die; each partition is a unit of its own."""

    def __init__(
        self, folder: Path, schema: dict[str, Any] | None, *, handoff: Handoff, inlined: bool
    ) -> None:
        by = {"prefix_template": "date=%Y-%m-%d"}
        super().__init__(folder, schema, partition_by=by, handoff=handoff.value)
        self.inlined = inlined

    def live(self, fate: Fate) -> None:
        settings = self.settings
        pipeline = pipeline_of(
            settings,
            InProcessRunner(lambda work: WorkerStores(work, fate)),
            open_sink=lambda place: dying(Store(place.uri, place.options, make_folder=True), fate),
            publisher=self._publisher(fate),
        )
        while pipeline.step():
            pass
        self._commit(fate)

    def _publisher(self, fate: Fate) -> Publisher:
        handed_off = FollowEntry(partial(in_the_log, self.settings))
        if not self.inlined:
            return handed_off
        return CommitInline(lambda: self._commit(fate), before=handed_off)

    def _commit(self, fate: Fate) -> int:
        (table,) = penguin_config.load([self.file], [], {}).tables
        store = dying(Store(table.table_uri, table.storage_options), fate)
        return commit_table(table, store, lambda _event: None, Clock())

    def named_by_the_log(self) -> frozenset[str]:
        return inline.named_files(str(self.table), self.sink.storage_options)

    def garbage(self) -> list[str]:
        """Name the data files that nobody names."""
        now = Clock().now()
        found = look(
            self.store, "default", self.named_by_the_log, now=now, older_than=timedelta(0)
        )  # fmt: skip
        return [one.path for one in found.garbage if one.kind in (Kind.DATA, Kind.OUTBOX)]

    def collect(self) -> None:
        collect(
            self.store,
            "default",
            self.named_by_the_log,
            clock=Clock(),
            older_than=timedelta(0),
        )


@pytest.mark.parametrize(
    ("handoff", "inlined"),
    [
        (Handoff.JOURNAL, False),
        (Handoff.STAGING, False),
        (Handoff.DIRECT, False),
        (Handoff.JOURNAL, True),
    ],
    ids=["journal", "staging", "direct", "inline"],
)
@pytest.mark.parametrize("schema", [ADD, None], ids=["add", "infer"])
def test_death_at_any_call_of_a_batch_that_finds_columns_loses_and_doubles_nothing(
    tmp_path: Path, schema: dict[str, Any] | None, handoff: Handoff, inlined: bool
) -> None:
    folder, before = tmp_path / "desk", tmp_path / "before"
    desk = Mortal(folder, schema, handoff=handoff, inlined=inlined)
    if schema is not None:
        desk.land(f"{FIRST}/0.ndjson", {"id": 0})
        desk.live(Fate.none())
    desk.land(f"{FIRST}/a.ndjson", {"id": 1, "n": 7, "tags": []}, {"id": 2})
    desk.land(f"{SECOND}/b.ndjson", {"id": 3})
    shutil.copytree(folder, before)
    deaths = 0
    for number in range(1, MOST_CALLS):
        # Every third time the answer is lost, and not the call.
        fate = Fate(number, after=number % 3 == 0)
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
        died = not survives(desk.live, fate)
        desk.live(Fate.none())

        where = f"died at call {number}"
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
        if not died:
            break
        deaths += 1
    else:
        pytest.fail(f"a life makes more than {MOST_CALLS} calls")
    assert deaths > 20, "the store really died, at many places"
