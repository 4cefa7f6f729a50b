"""An audit of tables that are as they must be, whatever was done to them: balanced."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from blizzard.cli.audit import SOURCE_FILES
from blizzard.inspect.audit.findings import FilePlace
from lakebed import layout
from lakebed.clock import Clock
from lakebed.columns.schema import Field, Schema
from lakebed.types import Evolution, FieldType, Handoff
from penguin.cli.app import app as penguin_app
from penguin.operate.release import HeldFileOperations
from tests.support.audits import Damage, assert_balanced, audited, told
from tests.support.desk import Desk
from tests.support.foreign import Directory
from tests.support.handoffs import put_back
from tests.support.landing import config
from tests.support.promotions import ID, PRICE, Rescued
from tests.support.tables import EVENTS, Penguin, TableDirectory, rows_of
from tests.support.waits import at_once

OLD = time.time() - 90 * 86_400


def amounts(table: Path) -> dict[str, tuple[int, int]]:
    """Return files and rows by where they are, what is nowhere left out."""
    found = assert_balanced(table).places.amounts
    return {place.value: (one.files, one.rows) for place, one in found.items() if one.files}


@pytest.fixture
def desk(tmp_path) -> Desk:
    desk = Desk(tmp_path)
    for name, count in (("a", 5), ("b", 7)):
        desk.arrives(f"{name}.ndjson", count)
    return desk


@pytest.mark.parametrize(("commit", "committer"), [("penguin", "penguin"), ("inline", "blizzard")])
def test_who_commits_what_is_waiting_is_told(desk: Desk, commit: str, committer: str) -> None:
    """Under `commit: inline` nobody runs penguin."""
    desk.landing.land("c.ndjson", 3)
    desk.blizzard()
    text = desk.file.read_text()
    desk.file.write_text(text.replace("sink:\n", f"sink:\n  commit: {commit}\n", 1))
    shown = desk.cli("audit").stdout
    assert f", 1 of them waiting for {committer}\n" in shown
    assert f"\nwaiting for {committer} " in shown


def test_a_verdict_says_that_it_does_not_cover_source_files(desk: Desk) -> None:
    """Nothing is wrong with the table; `blizzard files` counts what never reached it."""
    desk.landing.write("bad.ndjson", b"{no\n")
    desk.blizzard()
    desk.penguin()
    done = desk.cli("audit")
    assert done.exit_code == 0
    verdict, files = done.output.splitlines()[-2:]
    assert verdict == (
        "balanced: the table holds what the journals say, and every data file is there (--deep "
        "also reads footers)"
    )
    assert files == f"  not covered: {SOURCE_FILES}"
    document = json.loads(desk.cli("audit", "--output", "json").output)
    assert document["not_covered"] == [SOURCE_FILES]


def test_an_adopted_file_without_rows(tmp_path):
    """A file of 0 rows brings back no row that anybody has removed."""
    folder = tmp_path / "table"
    folder.mkdir()
    empty = pa.table({"id": pa.array([], pa.int64())})
    pq.write_table(empty, folder / "empty.parquet")
    pq.write_table(pa.table({"id": [1, 2]}), folder / "two.parquet")
    assert CliRunner().invoke(penguin_app, ["adopt", str(folder), "--yes"]).exit_code == 0
    found = assert_balanced(folder)
    assert (found.adopted.files, found.adopted.rows) == (2, 2)


def clean_up(table: Path) -> None:
    """Write a checkpoint and remove all versions before it, as any writer's clean-up does."""
    DeltaTable(str(table)).create_checkpoint()
    last = DeltaTable(str(table)).version()
    for version in range(last):
        (table / f"_delta_log/{version:020d}.json").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "sink", [*(f"handoff: {one}" for one in ("journal", "staging", "direct")), "commit: inline"]
)
def test_every_hand_off_before_and_after_the_commit(tmp_path, sink):
    desk = Desk(tmp_path)
    desk.file = config(tmp_path, sink=sink, partitioned=True)
    desk.landing.land("date=2024-01-01/a.ndjson", 5)
    desk.landing.land("date=2024-01-02/a.ndjson.gz", 4)
    desk.landing.write("date=2024-01-02/blank.ndjson", b"\n\n")
    assert desk.cli("--once").exit_code == 0
    if "inline" not in sink:
        assert amounts(desk.table) == {"waiting": (2, 9)}
        assert audited(desk.table).totals.waiting == 1
        desk.penguin()
    assert amounts(desk.table) == {"in_table": (2, 9)}
    found = audited(desk.table)
    assert (found.totals.lines, found.totals.blank, found.totals.rows) == (11, 2, 9)


def test_after_an_optimize_and_a_vacuum(desk):
    delta = DeltaTable(str(desk.table))
    delta.optimize.compact()
    delta.vacuum(0, dry_run=False, enforce_retention_duration=False)
    found = assert_balanced(desk.table)
    assert found.places.amounts[FilePlace.REMOVED_BY_OTHERS].rows == 12
    assert (found.by_others.files, found.by_others.rows, found.active.rows) == (1, 12, 12)
    assert [one.operation for one in found.others] == [*("OPTIMIZE", "VACUUM START", "VACUUM END")]
    desk.arrives("c.ndjson", 3)
    assert amounts(desk.table) == {"in_table": (1, 3), "removed_by_others": (2, 12)}


def test_a_log_that_was_cleaned_up_is_told_and_not_taken_for_an_empty_one(desk):
    """An OPTIMIZE that the log has forgotten is balanced by its rows."""
    clean_up(desk.table)
    found = assert_balanced(desk.table)
    assert (found.history_since, found.version) == (2, 2)
    assert found.places.amounts[FilePlace.IN_TABLE].rows == 12
    shown = desk.cli("audit")
    assert shown.exit_code == 0
    assert "the log's history begins with version 2: of that version and" in shown.output
    DeltaTable(str(desk.table)).optimize.compact()
    desk.arrives("c.ndjson", 3)
    clean_up(desk.table)
    found = assert_balanced(desk.table)
    assert found.places.amounts[FilePlace.UNKNOWN].rows == found.unknown.rows == 12
    DeltaTable(str(desk.table)).optimize.compact()
    found = assert_balanced(desk.table)
    assert (found.unknown.rows, found.by_others.rows, found.active.rows) == (0, 15, 15)


def test_penguins_own_clean_up_of_the_log(tmp_path):
    table = TableDirectory(tmp_path / "table")
    journal = table.journal()
    options = {"properties": {"delta.logRetentionDuration": "interval 1 days"}}
    for number in range(3):
        journal.batch(rows_of(number))
        Penguin(table, {**options, "checkpoint_interval": 1}).drain()
    for file in (table.root / "_delta_log").glob("*"):
        os.utime(file, (OLD, OLD))
    journal.batch(rows_of(9))
    Penguin(table, {**options, "checkpoint_interval": 1}).drain()
    found = assert_balanced(table.root)
    assert (found.active.rows, bool(found.history_since)) == (4, True)


def test_what_other_writers_insert_delete_or_give_other_statistics(desk):
    delta = DeltaTable(str(desk.table))
    one = delta.to_pyarrow_table().slice(0, 1)
    write_deltalake(str(desk.table), one, mode="append")
    found = assert_balanced(desk.table)
    assert (found.by_others.rows, found.active.rows) == (1, 13)
    damage = Damage(desk.table)
    (added,) = damage.added(damage.last)
    damage.commit({"remove": {"path": added["path"], "dataChange": True}}, operation="DELETE")
    assert assert_balanced(desk.table).active.rows == 12
    (file,) = damage.added(2)
    damage.commit({"add": {**file, "dataChange": False}}, operation="COMPUTE STATS")
    assert amounts(desk.table) == {"in_table": (2, 12)}


def test_a_restore_that_is_replayed_and_a_delete_that_is_restored(desk):
    DeltaTable(str(desk.table)).restore(1)
    (found,) = told(audited(desk.table))
    assert found.startswith("rows_removed: version 3 (RESTORE of ")
    assert desk.order("replay", "--yes").exit_code == 0
    assert_balanced(desk.table)
    whole = DeltaTable(str(desk.table)).version()
    DeltaTable(str(desk.table)).delete()
    assert [one.kind for one in audited(desk.table).differences] == ["rows_removed"]
    DeltaTable(str(desk.table)).restore(whole)
    assert_balanced(desk.table)


@pytest.mark.unbalanced("rows_removed")
def test_a_restore_that_takes_rows_and_brings_others_back_has_taken_all_of_them(desk):
    """What came back is not missed any more, and makes up for nothing else."""
    damage = Damage(desk.table)
    (file,) = damage.added(1)
    damage.commit({"remove": {"path": file["path"], "dataChange": True}}, operation="DELETE")
    desk.arrives("c.ndjson", 9)
    DeltaTable(str(desk.table)).restore(2)
    (restored,) = told(audited(desk.table))
    assert restored.startswith("rows_removed: version 5 (RESTORE of ")
    assert "removed 9 rows; penguin replay puts them back, or says how to; accept it " in restored


def test_a_promotion_that_waits_then_is_made_then_rewritten(tmp_path):
    desk = Rescued(tmp_path)
    desk.land("a.ndjson", '{"id":1,"price":1.50}', '{"id":2,"price":"much"}')
    desk.ingest()
    desk.land("b.ndjson", {"id": 4, "price": 2})
    desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    assert amounts(desk.table) == {"in_table": (2, 3)}
    desk.penguin()
    assert amounts(desk.table) == {"in_table": (2, 3), "replaced": (2, 3)}
    DeltaTable(str(desk.table)).optimize.compact()
    assert amounts(desk.table) == {"removed_by_others": (2, 3), "replaced": (2, 3)}
    clean_up(desk.table)
    assert_balanced(desk.table)


def test_a_file_that_is_held_then_read_again(desk):
    desk.landing.land("c.ndjson", 3)
    desk.blizzard()
    known = {Path(one).name for one in DeltaTable(str(desk.table)).file_uris()}
    (lost,) = (one for one in desk.table.glob("*.parquet") if one.name not in known)
    lost.unlink()
    (found,) = told(audited(desk.table))
    assert found == f"file_gone: {lost.name} of entry 3: it waits for penguin, but is gone"
    desk.penguin()
    assert amounts(desk.table) == {"in_table": (2, 12), "held": (1, 3)}
    desk.redo()
    desk.penguin()
    desk.blizzard()
    desk.penguin()
    assert amounts(desk.table) == {"in_table": (3, 15), "given_up": (1, 3)}


def test_files_that_are_held_then_released_and_discarded(tmp_path):
    table = TableDirectory(tmp_path / "table")
    journal = table.journal()
    journal.batch(rows_of(1))
    strict, merge = ({"evolution": one} for one in (Evolution.STRICT, Evolution.MERGE))
    Penguin(table, strict).drain()
    more = Field(name="more", type=FieldType.INT64)
    journal.schema = Schema((*EVENTS.fields, more))
    for number in (2, 3):
        journal.batch(rows_of(number))
    Penguin(table, strict).drain()
    assert amounts(table.root) == {"in_table": (1, 1), "held": (2, 2)}
    first, second = (layout.file_name(one) for one in sorted(Penguin(table, strict).held))
    operator = HeldFileOperations(
        settings=table.settings(**merge), store=table.store, clock=Clock(), pause=at_once
    )
    operator.release(frozenset({first}))
    assert amounts(table.root) == {"in_table": (2, 2), "held": (1, 1)}
    operator.discard(frozenset({second}))
    assert amounts(table.root) == {"in_table": (2, 2), "given_up": (1, 1)}


def test_a_log_from_a_backup_that_is_replayed_or_forgotten(tmp_path):
    for order, expected in (
        ("replay", {"in_table": (2, 12)}),
        ("forget", {"in_table": (1, 5), "forgotten": (1, 7)}),
    ):
        desk = Desk(tmp_path / order)
        for name, count in (("a", 5), ("b", 7)):
            desk.arrives(f"{name}.ndjson", count)
        Damage(desk.table).version_path(2).unlink()
        assert [one.kind for one in audited(desk.table).differences] == ["receipt_ahead"]
        assert desk.order(order, "--yes").exit_code == 0
        desk.penguin()
        assert amounts(desk.table) == expected


def test_a_journal_that_another_pipeline_took_over(tmp_path):
    first = Rescued(tmp_path)
    for name in ("a", "b"):
        first.land(f"{name}.ndjson", {"id": 1}, {"id": 2})
        first.ingest()
    first.ends_well()
    later = Rescued(tmp_path, pipeline="later")
    later.landing = first.landing
    later.configure({"fields": [ID]})
    done = later.cli("journal", "new", "--from", "default", "--yes")
    assert done.exit_code == 0, done.output
    later.land("c.ndjson", {"id": 3})
    later.ingest()
    found = assert_balanced(first.table)
    assert (found.totals.journals, found.totals.rows, found.active.rows) == (2, 5, 5)


def test_files_of_other_programs_that_penguin_adopted(tmp_path):
    directory = Directory(tmp_path / "table")
    directory.file(1)
    directory.penguin().drain()
    found = assert_balanced(directory.root)
    assert (found.adopted.files, found.by_others.files, found.active.files) == (1, 0, 1)


def test_files_that_wait_in_the_outbox(tmp_path):
    table = TableDirectory(tmp_path / "table", handoff=Handoff.DIRECT)
    put_back(table, table.journal().batch(rows_of(1, 2)))
    assert amounts(table.root) == {"waiting": (1, 2)}


@pytest.mark.parametrize("mode", [Evolution.MERGE, Evolution.OVERWRITE])
def test_files_with_a_narrower_type_or_columns_that_were_dropped(tmp_path, mode):
    table = TableDirectory(tmp_path / "table")
    journal = table.journal()
    journal.batch(rows_of(1))
    Penguin(table, {"evolution": mode}).drain()
    narrow = replace(EVENTS.fields[0], type=FieldType.INT32)
    schemas = (Schema((narrow, *EVENTS.fields[1:])), Schema((narrow, EVENTS.fields[2])))
    for number, schema in enumerate(schemas, start=2):
        journal.schema = schema
        journal.batch(rows_of(number))
    Penguin(table, {"evolution": mode}).drain()
    assert amounts(table.root) == {"in_table": (3, 3)}
