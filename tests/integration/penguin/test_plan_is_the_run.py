"""A plan cannot differ from the run: both are the proposal for one and the same view."""

import pytest

from lakebed.schema import Field, Schema
from lakebed.types import Evolution, FieldType, Handoff
from penguin.committer import Committer
from penguin.inspect.explain import explain
from tests.support.tables import EVENTS, Penguin, TableDirectory, rows_of

STRICT, MERGE = Evolution.STRICT, Evolution.MERGE
WIDER = Schema((*EVENTS.fields, Field(name="extra", type=FieldType.STRING)))


@pytest.fixture
def committed(monkeypatch):
    """Collect the plans that are carried out."""
    plans = []
    carry_out = Committer.carry_out

    def collect(committer, plan):
        plans.append(plan)
        return carry_out(committer, plan)

    monkeypatch.setattr(Committer, "carry_out", collect)
    return plans


@pytest.mark.parametrize("mode", [STRICT, MERGE])
@pytest.mark.parametrize("max_files", [2, 100])
@pytest.mark.parametrize("handoff", [Handoff.JOURNAL, Handoff.DIRECT])
def test_a_step_commits_what_the_plan_shows(tmp_path, committed, mode, max_files, handoff):
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
    running = Penguin(table, options=options)
    committed.clear()
    shown = explain(table.settings(**options), table.store)
    assert running.step()
    assert committed == [shown.proposal.commit]
    assert bool(committed[0].released) is (mode is MERGE and max_files == 100)


def test_where_nothing_is_to_be_done_both_say_so(tmp_path, committed):
    table = TableDirectory(tmp_path / "table")
    assert explain(table.settings(), table.store).proposal.commit is None
    assert not Penguin(table).step()
    assert committed == []
