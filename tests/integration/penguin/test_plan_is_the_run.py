"""A plan cannot differ from the run: both are the proposal for one and the same view."""

from typing import Any

import pytest

from lakebed.columns.schema import Field, Schema
from lakebed.types import Evolution, FieldType, Handoff
from penguin.delta.table import Log, WritableTable
from penguin.status import explain
from tests.support.tables import EVENTS, Penguin, TableDirectory, log_of, rows_of

OF_THE_ATTEMPT = ("step", "token", "attempt")
STRICT, MERGE = Evolution.STRICT, Evolution.MERGE
WIDER = Schema((*EVENTS.fields, Field(name="extra", type=FieldType.STRING)))


def noting(commits: list[tuple[Any, ...]]) -> type[Log]:
    """Return a log that notes what is committed to it."""

    class Noting(WritableTable):
        def commit(self, adds, transactions, metadata, at, **named):
            told = {key: value for key, value in metadata.items() if key not in OF_THE_ATTEMPT}
            commits.append((self.facts.shape(), adds, transactions, told))
            super().commit(adds, transactions, metadata, at, **named)

    return log_of(Noting)


@pytest.mark.parametrize("mode", [STRICT, MERGE])
@pytest.mark.parametrize("max_files", [2, 100])
@pytest.mark.parametrize("handoff", [Handoff.JOURNAL, Handoff.DIRECT])
def test_a_step_commits_what_the_plan_shows(tmp_path, mode, max_files, handoff):
    table = TableDirectory(tmp_path / "table", handoff)
    journal = table.journal()
    journal.batch(rows_of(1))
    Penguin(table, options={"evolution": STRICT}).drain()
    journal.schema = WIDER
    journal.batch(rows_of(2), rows_of(3))
    Penguin(table, options={"evolution": STRICT}).drain()
    journal.schema = EVENTS
    journal.batch(rows_of(4), rows_of(5))
    journal.batch(rows_of(6))
    options = {"evolution": mode, "max_files_per_commit": max_files}
    commits: list[tuple[Any, ...]] = []
    running = Penguin(table, options=options, log=noting(commits))
    plan = explain(table.settings(**options), table.store).proposal.commit
    assert plan is not None
    held = running.held.keys()
    assert running.step()
    assert commits == [
        (plan.after.shape(), tuple(plan.adds.values()), plan.transactions(), plan.metadata())
    ]
    assert bool(plan.released) is (mode is MERGE and max_files == 100)
    assert len(running.held) == len(held) - len(plan.released) + len(plan.holds)


def test_where_nothing_is_to_be_done_both_say_so(tmp_path):
    table = TableDirectory(tmp_path / "table")
    assert explain(table.settings(), table.store).proposal.commit is None
    commits: list[tuple[Any, ...]] = []
    assert not Penguin(table, log=noting(commits)).step()
    assert (commits, table.versions()) == ([], 0)
