"""penguin commits between the two questions of a look: what the table has, and what still waits.

Whoever asks them of two versions finds a file in neither of both, and tells of rows that are lost
or that never came.
"""

from datetime import timedelta
from functools import partial

import pytest

from blizzard.answers.answer import FileState
from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.why import Pipelines, why
from blizzard.handoff.held_rows import read_withheld
from blizzard.inspect.audit.table import audit_table
from blizzard.journal.checkpoint import read_ledger
from blizzard.model.predicate import parse
from blizzard.model.stores import open_reader
from blizzard.pipeline_log import PipelineLog
from blizzard.rewrite.compact import KnownOrigins, plan_compaction
from blizzard.rewrite.erase import plan_erasure
from blizzard.rewrite.promote import PromotedField, plan_promotion
from blizzard.rewrite.retract import SourceNotRetractable, plan_retraction
from lakebed.deltalog import tables
from lakebed.storage.options import Location
from tests.support.compactions import crowded
from tests.support.desk import Desk
from tests.support.erasures import landed
from tests.support.promotions import ID, PRICE, Rescued
from tests.support.retractions import Taken, overtaken


def test_a_batch_is_promoted_or_waits(tmp_path, monkeypatch):
    """Its files are not among those to be rewritten, so nobody is told that nothing waits."""
    desk = Rescued(tmp_path, {"fields": [ID]})
    desk.land("a.ndjson", {"id": 1, "price": "1.00"})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2, "price": "2.00"})
    desk.blizzard()
    desk.configure({"fields": [ID, PRICE]})
    overtaken(monkeypatch, desk.penguin)
    wanted = PromotedField(field="price")
    found = plan_promotion(desk.store, desk.settings, wanted, lambda _schema, _partitions: None)
    assert (len(found.files), found.waiting) == (1, 1)


def test_rows_that_are_just_committed_are_not_taken_for_none(tmp_path, monkeypatch):
    """A retraction does not answer that no row of the file is in the table."""
    desk = Taken(tmp_path)
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2})
    desk.blizzard()
    keys = desk.keys("b.ndjson")
    overtaken(monkeypatch, desk.penguin)
    with pytest.raises(SourceNotRetractable, match="entry 2, which is not committed yet"):
        plan_retraction(desk.store, desk.settings, keys)
    monkeypatch.undo()
    assert len(desk.look("b.ndjson").rows.whole) == 1


def test_rows_that_are_just_released_are_not_taken_for_none(tmp_path, monkeypatch):
    desk = Desk(tmp_path)
    desk.holds_a_file()
    overtaken(monkeypatch, lambda: desk.operator().release(None))
    desk.let("schema_evolution: overwrite")
    with pytest.raises(SourceNotRetractable, match="penguin holds"):
        plan_retraction(desk.store, desk.settings, ["default:b.ndjson"])


@pytest.mark.parametrize("is_added", [True, False])
def test_rows_that_come_during_an_erasure_are_not_missed(tmp_path, monkeypatch, is_added):
    """They are in the table, or are about to be: their files are counted as not searched."""
    desk = landed(tmp_path)

    def late():
        desk.land("late.ndjson", {"id": 99, "user": "x"})
        desk.blizzard()
        if is_added:
            desk.penguin()

    overtaken(monkeypatch, late)
    found = plan_erasure(desk.store, desk.settings, parse("id = 99"))
    monkeypatch.undo()
    assert found.rows == 0
    assert desk.held("id = 99", found).outside == 1


def test_a_compaction_knows_the_files_that_came_while_it_looked(tmp_path, monkeypatch):
    """Whether a file is of the journal is asked once, and kept: a wrong answer would stay."""
    desk = crowded(tmp_path, files=2, compact={"min_files": 3})
    known = KnownOrigins()

    def late():
        desk.land("late.ndjson", {"id": 99, "user": "x"})
        desk.ingest()

    given = (desk.store, desk.settings)
    later = desk.clock.now() + timedelta(hours=1)
    overtaken(monkeypatch, late, first=True)
    plan_compaction(*given, now=later, known=known)
    monkeypatch.undo()
    (group,) = plan_compaction(*given, now=later, known=known).groups
    assert len(group.files) == 3


def test_a_pipeline_that_begins_during_an_audit_is_in_the_books(tmp_path):
    """Its entries are not told to be committed without a journal, nor its files to be unnamed."""
    first, second = Rescued(tmp_path, pipeline="first"), Rescued(tmp_path, pipeline="second")
    first.land("a.ndjson", {"id": 1})
    first.ingest()
    second.land("b.ndjson", {"id": 2})
    options = first.sink.storage_options

    def log():
        second.ingest()
        return tables.whole_log(str(first.table), options)

    opening = partial(Location, options=options)
    found = audit_table(first.store, log, lambda uri: open_reader(opening(uri=uri)))
    assert found.differences == ()
    assert found.totals.rows == 2


def test_the_journal_of_a_pipeline_that_has_just_begun_is_not_lost(tmp_path):
    desk = Rescued(tmp_path)
    desk.land("a.ndjson", {"id": 1})
    desk.table.mkdir()
    history = read_ledger(desk.store, "default")

    class BusyLog(PipelineLog):
        def knows_pipeline(self):
            desk.ingest()
            return PipelineLog(desk.settings).knows_pipeline()

    asked = PipelineEvidence(
        settings=desk.settings,
        clock=desk.clock,
        log=BusyLog(desk.settings),
        store=desk.store,
        history=history,
    )
    assert asked.refusal() is None


def test_a_file_that_is_just_discarded_is_held_or_discarded(tmp_path):
    """HOLES W24: rows that are neither would be taken for rows of the table."""
    desk = Desk(tmp_path)
    name = desk.holds_a_file()

    def fates(names):
        desk.operator().discard(frozenset({name}))
        return desk.fates(names)

    withheld = read_withheld(desk.store, "default", fates)
    assert [len(withheld.held), len(withheld.discarded)] == [0, 1]


def test_a_file_that_is_just_released_has_not_been_removed(tmp_path):
    """All answers about a file are of one version of the log."""
    desk = Desk(tmp_path)
    desk.holds_a_file()
    asked = PipelineEvidence.read(desk.settings, desk.clock)
    assert asked.table is not None
    asked.table.log.follow(["x.parquet"])
    desk.let("schema_evolution: overwrite")
    desk.operator().release(None)
    (answer,) = why("b.ndjson", Pipelines((asked.settings,), lambda _settings: asked))
    assert answer.state is FileState.HELD
