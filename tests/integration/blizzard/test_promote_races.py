"""A promotion beside running blizzards and penguins, other promotions, clean-ups and writers."""

from datetime import timedelta
from decimal import Decimal

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from blizzard.handoff.publish import HandoffResult, Publisher
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from blizzard.repair.gc import collect, find_garbage
from blizzard.rewrite.transaction import NotRewritten, PromotionPending
from lakebed.deltalog.files import named_files
from lakebed.errors import ColumnsPromoted, JournalConflict
from penguin.delta.table import Log
from penguin.events.commits import EntryRejected
from tests.support.builders import entries
from tests.support.dying import Died
from tests.support.pipelines import pipeline_of
from tests.support.promotions import ID, PRICE, Rescued
from tests.support.runner import InProcessRunner, RewriteRace

OPEN = {"fields": [ID], "unknown_fields": "add"}


@pytest.fixture
def desk(tmp_path):
    desk = Rescued(tmp_path)
    for name, first in (("a", 1), ("b", 2)):
        desk.land(f"{name}.ndjson", f'{{"id":{first},"price":{first}.25}}')
        desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    return desk


def committed(desk, open_log=Log):
    """Let penguin commit what waits, and return what it tells."""
    return desk.events_of_penguin(EntryRejected, open_log)


def prices(desk):
    return [row.get("price") for row in desk.rows()]


def test_a_rewritten_file_that_is_gone_leaves_the_table_as_it_is(desk):
    done = desk.promote("price")
    (desk.table / done.rewritten[0].new[0].filename).unlink()
    (told,) = committed(desk)
    assert "the file is gone" in told.sentence()
    assert "price" not in desk.rows()[0]


def test_a_table_that_takes_no_new_column_stays_as_it_is(desk):
    desk.promote("price")
    desk.configure({"fields": [ID, PRICE]}, schema_evolution="strict")
    (told,) = committed(desk)
    assert "strict" in told.sentence()
    assert "price" not in desk.rows()[0]


def test_no_column_is_lost_where_schemas_are_overwritten(desk):
    desk.promote("price")
    DeltaTable(str(desk.table)).alter.add_columns(Field("theirs", PrimitiveType("string")))
    desk.configure({"fields": [ID, PRICE]}, schema_evolution="overwrite")
    assert committed(desk) == []
    assert set(desk.rows()[0]) == {"id", "_rescued", "theirs", "price"}


def test_of_two_promotions_at_once_one_wins(desk):
    with pytest.raises(PromotionPending):
        desk.promote("price", runner=RewriteRace(after=lambda: desk.promote("price")))
    assert [one.kind for one in entries(desk.table)].count("promote") == 1
    assert committed(desk) == []
    assert prices(desk) == [Decimal("1.25"), Decimal("2.25")]


def names(desk):
    return lambda: named_files(str(desk.table), desk.sink.storage_options)


def clean_up(desk):
    return collect(
        desk.store, "default", names(desk), clock=desk.clock, older_than=timedelta(seconds=0)
    )


def test_a_clean_up_that_takes_the_new_files_first_is_noticed(desk):
    with pytest.raises(JournalConflict, match="older-than"):
        desk.promote("price", runner=RewriteRace(after=lambda: clean_up(desk)))
    assert committed(desk) == []
    assert len(desk.rows()) == 2


def test_files_of_a_promotion_are_named_by_it(desk):
    done = desk.promote("price")
    paths = [one.new[0].filename for one in done.rewritten]
    assert {file.filename for file in entries(desk.table)[-1].data_files} == {*paths}


def test_what_a_promotion_that_failed_has_written_is_garbage(desk):
    def goes():
        (desk.table / sorted(desk.active)[1]).rename(desk.table / "away")

    with pytest.raises(NotRewritten, match="nothing was changed"):
        desk.promote("price", runner=RewriteRace(before=goes))
    (desk.table / "away").rename(desk.table / sorted(desk.active)[1])
    found = find_garbage(
        desk.store, "default", names(desk), now=desk.clock.now(), older_than=timedelta(seconds=0)
    )
    assert [piece.kind.value for piece in found.garbage] == ["data"]
    assert committed(desk) == []


def test_a_batch_that_ran_without_a_promoted_column_is_read_again(tmp_path):
    desk = Rescued(tmp_path)
    desk.land("a.ndjson", '{"id":1,"price":1.25}')
    desk.ingest()
    desk.configure(OPEN)
    desk.land("b.ndjson", '{"id":2,"price":2.25}')

    class Beside(InProcessRunner):
        promoted = False

        def run(self, units, work):
            done = super().run(units, work)
            if not self.promoted:
                self.promoted = True
                desk.promote("price", "decimal(10,2)")
            return done

    pipeline = pipeline_of(desk.settings, Beside())
    with pytest.raises(ColumnsPromoted) as error:
        pipeline.step()
    assert error.value.retryable
    while pipeline.step():
        pass
    assert committed(desk) == []
    assert prices(desk) == [Decimal("1.25"), Decimal("2.25")]


@pytest.mark.parametrize("handoff", ["staging", "direct"])
def test_a_batch_that_was_not_handed_off_before_a_promotion_still_is(tmp_path, handoff):
    class Dies(Publisher):
        def publish(self, store, last, *, redo):
            if redo:
                return HandoffResult()
            raise Died

    desk = Rescued(tmp_path, handoff=handoff)
    desk.land("a.ndjson", '{"id":1,"price":1.25}')
    desk.ingest()
    desk.land("b.ndjson", '{"id":2,"price":2.25}')
    with pytest.raises(Died):
        pipeline_of(desk.settings, InProcessRunner(), publisher=Dies()).step()
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    assert committed(desk) == []
    assert [row["id"] for row in desk.rows()] == [1]
    desk.ingest()
    assert prices(desk) == [Decimal("1.25"), None]


def test_a_promoted_column_is_known_from_a_snapshot(tmp_path):
    desk = Rescued(tmp_path)
    desk.land("a.ndjson", '{"id":1,"price":1.25}')
    desk.ingest()
    desk.configure(OPEN)
    desk.promote("price", "decimal(10,2)")
    history = read_ledger(desk.store, "default")
    SnapshotWriter(store=desk.store, pipeline="default", clock=desk.clock).write(history)
    again = read_ledger(desk.store, "default")
    assert again.kept == again.sequence
    assert again.columns is not None
    assert again.last is not None
    assert [one.shown for one in again.columns.fields] == ["int64", "decimal(10,2)"]
    assert again.last.kind == "batch"


@pytest.fixture
def pair(tmp_path):
    """Two pipelines of one table, whose values are in the files of the first."""
    one, other = Rescued(tmp_path), Rescued(tmp_path, pipeline="other")
    one.land("a.ndjson", '{"id":1,"price":1.25}')
    one.ingest()
    other.land("b.ndjson", '{"id":2}')
    other.ingest()
    for desk in (one, other):
        desk.configure({"fields": [ID, PRICE]})
    return one, other


@pytest.mark.parametrize("before", [True, False])
def test_a_promotion_of_another_pipeline_is_noticed_before_and_after_the_rewriting(pair, before):
    one, other = pair
    never = RewriteRace(before=lambda: pytest.fail("files were rewritten"))
    if before:
        one.promote("price")
    runner = never if before else RewriteRace(after=lambda: one.promote("price"))
    with pytest.raises(PromotionPending, match="entry 2 of pipeline default"):
        other.promote("price", runner=runner)
    assert committed(one) == []
    assert other.promote("price", runner=never).entry is None
    assert prices(one) == [Decimal("1.25"), None]
