"""Files that were removed from a directory of other programs' files are not committed again."""

import json
import os
import shutil
import time
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake

from lakebed.deltalog.files import read_log
from lakebed.deltalog.snapshot import LogReader
from lakebed.layout import SCAN_TRANSACTION, SCANNED_TRANSACTION, foreign_transaction
from penguin.events.backlog import FilesIgnored, FilesLeftOut
from tests.support.builders import NOON
from tests.support.change_files import write_changes
from tests.support.foreign import DAY, Directory
from tests.support.removals import add, remove

HOUR = 3600.0


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "table")


def test_compacted_files_do_not_come_back(table):
    """HOLES D09: not at the next poll, not after a restart, not when the log was cleaned up."""
    penguin = table.penguin()
    for number in range(4):
        table.file(number)
    penguin.drain()
    table.delta().optimize.compact()
    for _ in range(2):
        table.hands.at += HOUR
        penguin.drain()
        table.penguin().drain()
        assert table.ids() == [0, 1, 2, 3]
        table.delta().create_checkpoint()
        clean_up(table)


def test_files_of_the_change_data_feed_are_not_committed(table):
    """Below a random prefix nothing but the log tells them from files of data."""
    pattern = {"file_pattern": "**/*.parquet"}
    table.file(1)
    table.penguin(**pattern).drain()
    write_changes(table.root, [{"id": 7}])
    for _ in range(2):
        table.hands.at += HOUR
        penguin = table.penguin(**pattern).drain()
        assert table.ids() == [1]
        assert penguin.told(FilesLeftOut) == []
        table.delta().create_checkpoint()


def test_files_stay_out_when_even_their_tombstones_are_forgotten(table):
    """HOLES D09, D11: the newest name that was scanned never expires; a late meta is refused."""
    forgetful = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    paths = [table.file(number) for number in range(3)]
    table.penguin(properties=forgetful).drain()
    table.delta().optimize.compact()
    table.file(9)
    table.penguin().drain()
    table.delta().create_checkpoint()
    clean_up(table)
    snapshot = LogReader(table.store).open()
    assert snapshot is not None
    assert not read_log(table.store, snapshot).paths & set(paths), "the log has forgotten them"
    penguin = table.penguin().drain()
    assert table.ids() == [0, 1, 2, 9]
    assert penguin.told(FilesLeftOut) == []
    (passed,) = penguin.told(FilesIgnored)
    assert (passed.files, passed.some) == (3, tuple(sorted(paths)))
    table.meta(paths[0])
    (said,) = table.penguin().drain().told(FilesLeftOut)
    assert (said.code, said.paths) == ("file_too_old", (paths[0],))
    assert "give it a new name" in said.reason
    assert table.ids() == [0, 1, 2, 9]


def test_transactions_are_bounded_whatever_the_number_of_files(table):
    """A name from the future, one without a time, and a file with a meta keep their own."""
    penguin = table.penguin(checkpoint_interval=1, file_pattern="*.parquet")
    ahead, plain = table.path(DAY, age=-2 * HOUR), f"{DAY}/part-0.parquet"
    table.file(100, path=ahead, modified=table.hands.at)
    table.file(101, path=plain)
    asked = table.file(102, folder="date=2024-01-02")
    table.meta(asked)
    for round_ in range(3):
        for number in range(10):
            table.file(10 * round_ + number)
        penguin.drain()
    lines = [
        line
        for version in (table.root / "_delta_log").glob("*.json")
        for line in version.read_text().splitlines()
    ]
    named = {found["txn"]["appId"] for line in lines if "txn" in (found := json.loads(line))}
    singly = {foreign_transaction(path) for path in (ahead, plain, asked)}
    assert named == {SCAN_TRANSACTION, SCANNED_TRANSACTION, *singly}
    assert table.ids() == [*range(30), 100, 101, 102]
    table.delta().optimize.compact()
    table.penguin(file_pattern="*.parquet").drain()
    assert table.ids() == [*range(30), 100, 101, 102]


def test_a_restored_table_does_not_get_its_files_back(table):
    """HOLES D14"""
    penguin = table.penguin()
    table.file(1)
    penguin.drain()
    table.file(2)
    penguin.drain()
    table.delta().restore(1)
    table.hands.at += HOUR
    penguin.drain()
    table.penguin().drain()
    assert table.ids() == [1]


@pytest.mark.parametrize("commits", [0, 1, 5])
def test_a_table_that_stands_in_the_place_of_another_is_not_taken_for_it(table, commits):
    """HOLES D16, L07: its log is as long, or longer, and knows nothing of the files."""
    table.file(1, age=2 * HOUR)
    penguin = table.penguin(late_window=60.0).drain()
    table.file(2)
    penguin.drain()
    schema = table.delta().schema()
    shutil.rmtree(table.root / "_delta_log")
    DeltaTable.create(str(table.root), schema=schema, partition_by=["date"])
    for number in range(commits):
        new = pa.table({"id": [100 + number], "date": ["2024-01-01"]})
        write_deltalake(str(table.root), new, mode="append")
    for _ in range(2):
        penguin.drain()
    assert table.ids() == [1, 2, *(100 + number for number in range(commits))]


def test_files_that_another_engine_removed_stay_out_while_the_log_remembers(table):
    table.file(1)
    table.penguin().drain()
    remove(table, add_by_another_engine(table, 2))
    table.penguin().drain()
    table.delta().create_checkpoint()
    clean_up(table)
    penguin = table.penguin().drain()
    assert table.ids() == [1]
    assert penguin.told(FilesLeftOut) == []


def test_a_file_older_than_what_the_log_remembers_is_told_and_not_committed(table):
    forgetful = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    table.file(1)
    table.penguin(properties=forgetful).drain()
    table.hands.at += 1
    foreign = add_by_another_engine(table, 2)
    remove(table, foreign, days_ago=10_000)
    add_by_another_engine(table, 5)
    table.delta().create_checkpoint()
    clean_up(table)
    penguin = table.penguin().drain()
    assert table.ids() == [1, 5]
    (said,) = penguin.told(FilesLeftOut)
    assert (said.code, said.paths) == ("file_too_old", (foreign,))
    # Who knows better says so with a meta.
    table.meta(foreign)
    table.penguin().drain()
    assert table.ids() == [1, 2, 5]


def test_an_old_file_is_committed_where_every_version_is_left_to_tell(table):
    """A directory that is adopted long after it was written, by a log that forgets quickly."""
    forgetful = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    table.file(1)
    table.penguin(properties=forgetful, checkpoint_interval=1).drain()
    old = NOON.timestamp() - 900 * 24 * HOUR
    remove(table, add_by_another_engine(table, 2))
    table.delta().create_checkpoint()
    table.file(3, age=900 * 24 * HOUR, modified=old)
    table.penguin().drain()
    assert table.ids() == [1, 3]


def test_checkpoints_of_another_kind_are_read_around(table):
    """The classic checkpoint is gone, as a table with others would look like to us."""
    for number in range(3):
        table.file(number)
        table.hands.at += 1
        table.penguin().drain()
    table.delta().optimize.compact()
    checkpoint_of_another_kind(table, first=3)
    age_the_log(table, NOON.timestamp() - 24 * HOUR)
    old = NOON.timestamp() - 9 * 24 * HOUR
    table.file(7, age=9 * 24 * HOUR, modified=old)
    table.file(8)
    penguin = table.penguin().drain()
    assert table.ids() == [0, 1, 2, 8]
    assert penguin.told(FilesLeftOut) == []
    (said,) = penguin.told(FilesIgnored)
    assert said.files == 1
    assert "older than what the log remembers" in said.reason


def test_beside_such_checkpoints_removals_are_known_by_their_versions(table):
    """HOLES D09: the version that added the file is gone, the one that removed it is there."""
    table.file(1)
    table.penguin().drain()
    remove(table, add_by_another_engine(table, 2))
    checkpoint_of_another_kind(table, first=3)
    penguin = table.penguin().drain()
    assert (table.ids(), penguin.told(FilesLeftOut)) == ([1], [])


def test_files_that_another_engine_writes_to_the_table_are_known(table):
    table.file(1)
    table.penguin().drain()
    write_deltalake(
        str(table.root),
        pa.table({"id": [2], "date": ["2024-01-01"]}),
        mode="append",
        writer_properties=WriterProperties(compression="SNAPPY"),
    )
    add_by_another_engine(table, 3)
    table.penguin(file_pattern="*.parquet").drain()
    assert table.ids() == [1, 2, 3]


def add_by_another_engine(table: Directory, number: int) -> str:
    path = table.file(number)
    add(table, path)
    return path


def checkpoint_of_another_kind(table: Directory, *, first: int) -> None:
    """Leave a checkpoint of another kind than the classic one, and the versions from one on."""
    table.delta().create_checkpoint()
    folder = table.root / "_delta_log"
    (classic,) = folder.glob("*.checkpoint.parquet")
    classic.rename(folder / classic.name.replace("checkpoint.", f"checkpoint.{uuid4()}."))
    (folder / "_last_checkpoint").unlink()
    for version in range(first):
        (folder / f"{version:020d}.json").unlink()
    for left in folder.glob("*.json"):
        os.utime(left, (time.time() - 2 * HOUR,) * 2)


def age_the_log(table: Directory, at: float) -> None:
    """Let what there is of the log be from a time."""
    for file in (table.root / "_delta_log").iterdir():
        os.utime(file, (at, at))


def clean_up(table: Directory) -> None:
    """Take the versions away that a checkpoint has made unneeded, as another engine would."""
    folder = table.root / "_delta_log"
    newest = max(int(path.name[:20]) for path in folder.glob("*.checkpoint.parquet"))
    for path in folder.glob("*.json"):
        if int(path.name[:20]) < newest:
            path.unlink()
