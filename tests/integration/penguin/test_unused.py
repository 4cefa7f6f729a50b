"""A table without rows: a schema that nobody chose and nothing was written under pins nothing."""

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from lakebed.clock import Clock
from lakebed.columns.schema import Field as Column
from lakebed.columns.schema import Schema
from lakebed.deltalog.versions import is_unused
from lakebed.types import Evolution, FieldType
from penguin.committer import Committer
from penguin.delta.table import Log
from penguin.events.backlog import FilesLeftOut
from penguin.proposal import draft_commit
from penguin.status import explain
from tests.support.foreign import Directory
from tests.support.tables import EVENTS, Penguin, TableDirectory, after_opening, rows_of

WRONG = Schema(
    (
        Column(name="id", type=FieldType.STRING, nullable=False),
        Column(name="gone", type=FieldType.DATE),
        Column(name="date", type=FieldType.DATE),
    )
)
MODES = pytest.mark.parametrize("mode", list(Evolution))


def begin_wrong(table, partitions=("date",)):
    """Journal an entry whose files all failed, under a schema that is then corrected."""
    journal = table.journal(schema=WRONG, partitions=partitions)
    journal.batch()
    return journal


def another_engine_writes(table):
    row = pa.table({"id": ["x"], "gone": [None], "date": [None]}, schema=WRONG.arrow())
    write_deltalake(str(table.root), row, mode="append")


def correct(journal):
    journal.schema, journal.partitions = EVENTS, ("date",)
    return journal


@pytest.fixture
def others(tmp_path):
    """Return a directory that blizzard left with a table without rows, and now scans."""
    directory = TableDirectory(tmp_path / "table")
    begin_wrong(directory)
    Penguin(directory).drain()
    protocol = directory.root / "_blizzard/protocol/1.json"
    protocol.write_text(json.dumps({**json.loads(protocol.read_text()), "handoff": "direct"}))
    return Directory(directory.root)


@MODES
@pytest.mark.parametrize("partitions", [("date",), ("gone", "date")])
def test_a_table_without_files_takes_the_schema_of_the_first_files(table, mode, partitions):
    """HOLES W43: it was refused for ever, though no row was written under the first schema."""
    journal = begin_wrong(table, partitions)
    penguin = Penguin(table, {"evolution": mode}).drain()
    assert [one.name for one in table.delta().schema().fields] == ["id", "gone", "date"]
    correct(journal).batch(rows_of(1, 2))
    penguin.drain()
    assert table.ids() == [1, 2]
    kinds = {"id": "long", "name": "string", "date": "date"}
    assert {one.name: one.type.type for one in table.delta().schema().fields} == kinds
    assert penguin.held == {}
    assert table.ids("id = 2") == [2]
    assert table.delta().metadata().partition_columns == ["date"]
    assert table.ids("date = '2026-01-01'") == [1, 2]
    skipping = table.delta().metadata().configuration["delta.dataSkippingStatsColumns"]
    assert "id" in skipping
    assert "gone" not in skipping


def test_an_entry_without_files_pins_nothing_within_one_commit(table):
    """HOLES W43: the wrong entry and the right one wait together, and there is no table yet."""
    journal = begin_wrong(table)
    correct(journal).batch(rows_of(1))
    Penguin(table).drain()
    assert table.ids() == [1]
    assert table.versions() == 2


def test_held_files_of_a_table_without_rows_go_in_at_the_next_start(table):
    """HOLES W43: an older penguin has held them."""
    journal = begin_wrong(table)
    Penguin(table).drain()
    correct(journal).batch(rows_of(1))
    view = explain(table.settings(), table.store).view
    plan = draft_commit(table.settings(), view.facts, view.backlogs, table.store).commit
    assert plan is not None
    committer = Committer(
        log=Log(table.store), store=table.store, clock=Clock(), pause=lambda _seconds: None
    )
    committer.carry_out(plan)
    penguin = Penguin(table)
    assert len(penguin.held) == 1
    penguin.drain()
    assert table.ids() == [1]


@MODES
def test_the_first_row_pins_the_schema(table, mode):
    """HOLES W43: from then on the mode decides."""
    journal = table.journal()
    journal.batch(rows_of(1))
    penguin = Penguin(table, {"evolution": mode}).drain()
    journal.schema = WRONG
    journal.batch([{"id": "x", "gone": None, "date": "2026-01-01"}])
    penguin.drain()
    assert len(penguin.held) == 1
    assert table.ids() == [1]


@pytest.mark.parametrize("created", [True, False])
def test_the_first_files_of_a_commit_pin_the_schema_for_the_others_in_it(table, created):
    """HOLES W43: rows that are about to be written count, too."""
    journal = begin_wrong(table)
    penguin = Penguin(table)
    if created:
        penguin.drain()
    correct(journal).batch(rows_of(1))
    journal.schema = WRONG
    journal.batch([{"id": "x", "gone": None, "date": "2026-01-01"}])
    penguin.drain()
    assert table.ids() == [1]
    assert len(penguin.held) == 1


@pytest.mark.parametrize("how", ["emptied", "altered", "made by another", "cleaned up"])
def test_a_schema_that_had_rows_or_that_somebody_chose_stays(table, how):
    """HOLES W43: only what penguin itself made of an entry, and nobody used, is replaced."""
    journal = table.journal(schema=WRONG)
    if how == "made by another":
        DeltaTable.create(str(table.root), schema=pa.schema(WRONG.arrow()), partition_by=["date"])
    journal.batch()
    penguin = Penguin(table).drain()
    if how == "emptied":
        another_engine_writes(table)
        table.delta().delete()
    elif how == "altered":
        table.delta().alter.add_columns([Field("chosen", PrimitiveType("string"))])
    elif how == "cleaned up":
        (table.root / "_delta_log" / f"{0:020d}.json").rename(table.root / "aside")
        assert not is_unused(table.store, 1)
        return
    correct(journal).batch(rows_of(1))
    penguin.drain()
    assert len(penguin.held) == 1
    assert "string" in penguin.why()


def test_rows_that_somebody_writes_meanwhile_are_kept_readable(table):
    """HOLES W43: the replacement counts only as the very next version after the look."""
    journal = begin_wrong(table)
    Penguin(table).drain()
    correct(journal).batch(rows_of(1))
    overtaken = after_opening(lambda: another_engine_writes(table))
    penguin = Penguin(table, log=overtaken).drain()
    assert [row["id"] for row in table.rows()] == ["x"]
    assert len(penguin.held) == 1


def test_a_type_that_needs_more_than_a_schema_is_not_put_into_a_table_that_is_there(others):
    others.file(folder="", data=pa.table({"at": pa.array([0], pa.timestamp("us"))}))
    (left,) = others.penguin().drain().told(FilesLeftOut)
    assert left.code in ("schema_refused", "file_unfit")
    assert others.delta().version() == 1
