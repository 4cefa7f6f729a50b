"""The modes of schema evolution on a real table, and how a stopped pipeline goes on."""

import json
from dataclasses import replace

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import Field as DeltaField
from deltalake.schema import PrimitiveType

from lakebed.columns.schema import Field, Schema
from lakebed.deltalog.delta_types import DROPPED_PROPERTY
from lakebed.documents.records import SourceRecord
from lakebed.types import Evolution, FieldType
from penguin.delta.table import Log
from penguin.events.commits import EntriesCommitted
from penguin.plan.stats import SKIPPING_PROPERTY
from tests.support.delta_schemas import array, field, struct
from tests.support.tables import EVENTS, WIDER, Penguin, after_opening, opened, rows_of

STRICT, MERGE, OVERWRITE = Evolution.STRICT, Evolution.MERGE, Evolution.OVERWRITE
EXTRA = Field(name="extra", type=FieldType.STRING)


def penguin(table, mode):
    return Penguin(table, options={"evolution": mode})


def typed(kind, *, nullable=False):
    """Declare the events with another type of id."""
    return Schema((Field(name="id", type=kind, nullable=nullable), *EVENTS.fields[1:]))


def by_id(table, name):
    seen = {row["id"]: row[name] for row in table.rows()}
    assert seen == {row["id"]: row[name] for row in pl.read_delta(str(table.root)).to_dicts()}
    return seen


@pytest.mark.parametrize("mode", Evolution)
def test_a_partitioned_table_takes_one_entry_after_the_other(table, mode):
    """W05: partition columns are not missing, in no mode."""
    journal = table.journal()
    for number in (1, 2, 3):
        journal.batch(rows_of(number), rows_of(number + 10, date=None))
        assert penguin(table, mode).drain().codes == {}
    assert table.ids() == [1, 2, 3, 11, 12, 13]
    assert table.versions() == 4


def test_strict_accepts_no_difference(table):
    """W07."""
    journal = table.journal()
    journal.batch(rows_of(1))
    penguin(table, STRICT).drain()
    journal.schema = Schema((typed(FieldType.INT32).fields[0], EXTRA, EVENTS.fields[2]))
    journal.batch(rows_of(2))
    stopped = penguin(table, STRICT).drain()
    assert set(stopped.held.values()) == {"schema_refused"}
    for word in (
        "extra: the table does not have it",
        "name: the table has type string",
        "id: the table has type long, the files have type integer",
    ):
        assert word in stopped.why()
    assert table.ids() == [1]


@pytest.mark.parametrize(
    ("first", "second", "kinds", "value"),
    [
        (FieldType.INT64, FieldType.STRING, ("long", "string"), "x"),
        (FieldType.INT32, FieldType.INT64, ("integer", "long"), 2**40),
    ],
)
def test_the_second_entry_of_a_commit_is_checked_like_the_first(table, first, second, kinds, value):
    """W06, W07."""
    journal = table.journal(schema=typed(first))
    journal.batch(rows_of(1))
    journal.schema = typed(second)
    journal.batch([{"id": value, "name": "n", "date": "2026-01-01"}])
    stopped = penguin(table, MERGE).drain()
    assert set(stopped.held.values()) == {"schema_refused"}
    assert "id: the table has type {}, the files have type {}".format(*kinds) in stopped.why()
    assert table.ids() == [1]


def test_overwrite_replaces_the_columns_and_old_rows_stay(table):
    """Old files are read with the new schema; their rows have nothing in new columns."""
    journal = table.journal()
    journal.batch(rows_of(1), rows_of(2, date=None))
    penguin(table, OVERWRITE).drain()
    journal.schema = Schema((EVENTS.fields[0], EXTRA, EVENTS.fields[2]))
    journal.batch([{**rows_of(3)[0], "extra": "new"}])
    done = penguin(table, OVERWRITE).drain()
    assert [field.name for field in table.delta().schema().fields] == ["id", "date", "extra"]
    assert by_id(table, "extra") == {1: None, 2: None, 3: "new"}
    assert table.ids("id = 1") == [1]
    assert table.ids("extra IS NULL") == [1, 2]
    assert table.ids("date IS NULL") == [2]
    (told,) = (event.sentence() for event in done.events if isinstance(event, EntriesCommitted))
    assert "new columns: extra, dropped columns: name" in told
    configuration = table.delta().metadata().configuration
    assert configuration[SKIPPING_PROPERTY] == "id,extra"
    assert "name" in configuration[DROPPED_PROPERTY]


def test_an_evolution_is_a_commit_of_its_own_that_repeats_the_transactions(table):
    """A twin's commit that was planned before it conflicts, and looks again."""
    journal = table.journal()
    journal.batch(rows_of(1))
    penguin(table, OVERWRITE).drain()
    stale = opened(Log(table.store))
    journal.schema = Schema((EVENTS.fields[0], EVENTS.fields[2]))
    journal.batch(rows_of(2))
    penguin(table, OVERWRITE).drain()
    actions = [json.loads(line) for line in table.commit_text(2).splitlines()]
    assert [next(iter(one)) for one in actions] == ["commitInfo", "metaData", "txn", "txn", "txn"]
    now = {one["txn"]["appId"]: one["txn"]["version"] for one in actions if "txn" in one}
    assert now == {app_id: stale.transaction(app_id) for app_id in now}
    assert len(now) == 3


def test_overwrite_widens_a_type_and_every_old_row_is_read(table):
    """W06."""
    journal = table.journal(schema=typed(FieldType.INT32))
    journal.batch(rows_of(1, 2))
    penguin(table, OVERWRITE).drain()
    journal.schema = typed(FieldType.INT64)
    journal.batch(rows_of(2**40))
    penguin(table, OVERWRITE).drain()
    journal.schema = typed(FieldType.INT32)
    journal.batch(rows_of(3))
    assert penguin(table, OVERWRITE).drain().codes == {}
    assert table.ids() == [1, 2, 3, 2**40]
    assert table.ids(f"id >= {2**40}") == [2**40]
    assert table.ids("id = 2") == [2]


def test_a_column_that_was_dropped_comes_back_with_what_its_files_hold(table):
    journal = table.journal()
    journal.batch(rows_of(1))
    penguin(table, OVERWRITE).drain()
    journal.schema = Schema((EVENTS.fields[0], EVENTS.fields[2]))
    journal.batch(rows_of(2))
    penguin(table, OVERWRITE).drain()
    journal.schema = Schema((EVENTS.fields[0], Field(name="name", type=FieldType.DATE)))
    bad = table.journal("other", schema=Schema((*journal.schema.fields, EVENTS.fields[2])))
    bad.batch([{"id": 9, "date": "2026-01-01"}])
    stopped = penguin(table, MERGE).drain()
    assert "name: the table has type string, the files have type date" in stopped.why()
    journal.schema = EVENTS
    journal.batch(rows_of(3))
    penguin(table, OVERWRITE).drain()
    assert by_id(table, "name") == {1: "n1", 2: None, 3: "n3"}
    assert table.ids("name = 'n1'") == [1]


def test_overwrite_twice_in_one_commit_remembers_what_was_never_shown(table):
    """The files of the first entry hold a column that the table never had."""
    journal = table.journal()
    journal.batch(rows_of(1))
    penguin(table, OVERWRITE).drain()
    journal.schema = WIDER
    journal.batch([{**rows_of(2)[0], "extra": "x"}])
    journal.schema = EVENTS
    journal.batch(rows_of(3))
    penguin(table, OVERWRITE).drain()
    assert table.ids() == [1, 2, 3]
    assert "extra" in table.delta().metadata().configuration[DROPPED_PROPERTY]
    journal.schema = Schema((*EVENTS.fields, Field(name="extra", type=FieldType.INT64)))
    journal.batch(rows_of(4))
    assert set(penguin(table, OVERWRITE).drain().held.values()) == {"schema_refused"}
    assert table.ids() == [1, 2, 3]


def nested_batch(journal, number, *names):
    """Write an entry whose rows hold a list of structs."""
    plain = Schema((EVENTS.fields[0],))
    journal.schema, journal.partitions = plain, ()
    file = journal.file([{"id": number}])
    kind = pa.list_(pa.struct([(name, pa.int64()) for name in names]))
    data = pa.table(
        {
            "id": pa.array([number], pa.int64()),
            "who": pa.array([[dict.fromkeys(names, number)]], kind),
        },
        schema=pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("who", kind)]),
    )
    target = journal.table.root / file.filename
    pq.write_table(data, target)
    journal.batch(
        files=(replace(file, size=target.stat().st_size),),
        sources=(SourceRecord(source="in", path="a", size=1, etag=None, lines=1, rows=1),),
        table_schema=struct(
            field("id", "long", nullable=False),
            field("who", array(struct(*(field(name, "long") for name in names)))),
        ),
    )


def test_a_struct_in_a_list_grows_over_several_entries(table):
    """W04: list and struct columns, entry after entry."""
    journal = table.journal(schema=Schema((EVENTS.fields[0],)), partitions=())
    nested_batch(journal, 1, "a")
    nested_batch(journal, 2, "a")
    nested_batch(journal, 3, "a", "b")
    nested_batch(journal, 4, "a")
    assert penguin(table, MERGE).drain().codes == {}
    assert by_id(table, "who") == {
        1: [{"a": 1, "b": None}],
        2: [{"a": 2, "b": None}],
        3: [{"a": 3, "b": 3}],
        4: [{"a": 4, "b": None}],
    }


@pytest.mark.parametrize("changes", ["mode", "table"])
def test_held_files_go_in_by_themselves_once_they_fit_and_not_before(table, changes):
    """In `overwrite` a file that was held puts no old schema back."""
    journal = table.journal()
    journal.batch(rows_of(1))
    running = penguin(table, STRICT).drain()
    journal.schema = WIDER
    journal.batch([{**rows_of(2)[0], "extra": "x"}])
    journal.batch([{**rows_of(3)[0], "extra": "y"}])
    for mode in (running, running, penguin(table, OVERWRITE)):
        assert len(mode.drain().held) == 2
    assert [field.name for field in table.delta().schema().fields] == ["id", "name", "date"]
    if changes == "table":
        extra = DeltaField("extra", PrimitiveType("string"), nullable=True)
        table.delta().alter.add_columns([extra])
    done = running if changes == "table" else penguin(table, MERGE)
    assert done.drain().held == {}
    assert by_id(table, "extra") == {1: None, 2: "x", 3: "y"}
    assert list((table.root / "_staging/held").iterdir()) == []
    kinds = [type(event).__name__ for event in running.events]
    assert kinds.count("FilesHeld") == 2, "once for each entry"
    assert kinds.count("EntriesCommitted") == (3 if changes == "table" else 2)


def test_an_overwrite_that_lost_the_race_looks_again(table):
    """D08: somebody commits between the plan and the evolution."""
    journal = table.journal()
    journal.batch(rows_of(1))
    penguin(table, OVERWRITE).drain()
    journal.schema = Schema((EVENTS.fields[0], EXTRA, EVENTS.fields[2]))
    journal.batch([{**rows_of(2)[0], "extra": "x"}])
    interval = {"delta.checkpointInterval": "50"}
    overtaken = after_opening(lambda: table.delta().alter.set_table_properties(interval), turn=2)
    running = Penguin(table, options={"evolution": OVERWRITE}, log=overtaken).drain()
    assert running.codes == {}
    assert by_id(table, "extra") == {1: None, 2: "x"}
    assert interval.items() <= table.delta().metadata().configuration.items()
