"""What a Delta log needs beside its commits: checkpoints, and no versions beyond their time."""

import json
import os
import time
from pathlib import Path

import pytest
from deltalake import write_deltalake

from lakebed.clock import Clock
from lakebed.errors import CommitUnconfirmed
from lakebed.layout import log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.telemetry.events import Event
from penguin.delta import maintenance
from penguin.delta.table import Log, WritableTable
from penguin.events.commits import (
    CheckpointFailed,
    CheckpointWritten,
    LogCleanUpFailed,
)
from tests.support.foreign import Directory
from tests.support.tables import Penguin, TableDirectory, log_of, rows_of

DAY = 86_400


def test_a_checkpoint_is_written_when_enough_versions_passed(table: TableDirectory) -> None:
    journal = table.journal()
    penguin = Penguin(table, options={"checkpoint_interval": 3})
    for number in range(1, 7):
        journal.batch(rows_of(number))
        penguin.drain()
    written = [event.version for event in penguin.events if isinstance(event, CheckpointWritten)]
    assert written == [2, 5]
    assert table.ids() == [1, 2, 3, 4, 5, 6]


def test_a_failed_checkpoint_is_a_warning_and_is_tried_again(table: TableDirectory) -> None:
    class Full(WritableTable):
        def checkpoint(self) -> None:
            raise CommitUnconfirmed("disk full")

    table.journal().batch(rows_of(1))
    penguin = Penguin(table, options={"checkpoint_interval": 1}, log=log_of(Full)).drain()
    assert penguin.run.totals.commits == 1
    assert of_kind(penguin.events, CheckpointFailed)
    again = Penguin(table, options={"checkpoint_interval": 1}).drain()
    assert of_kind(again.events, CheckpointWritten)


def of_kind(events: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def aged(table: TableDirectory, days: float = 31) -> None:
    """Let all there is of the log be so old."""
    long_ago = time.time() - days * DAY
    for file in (table.root / "_delta_log").glob("*"):
        os.utime(file, (long_ago, long_ago))


def numbers(table: TableDirectory) -> list[int]:
    return sorted(int(file.stem) for file in (table.root / "_delta_log").glob("*.json"))


def commit(table: TableDirectory, penguin: Penguin, count: int = 1) -> None:
    for _ in range(count):
        table.journal().batch(rows_of(len(table.journal().bodies)))
        penguin.drain()


def every(versions: int, **options: object) -> dict[str, object]:
    return {"checkpoint_interval": versions, **options}


def test_versions_beyond_their_time_are_removed_and_nothing_is_lost_or_doubled(table):
    """D16: what is committed is still known when all of the versions that said so are gone."""
    commit(table, Penguin(table, options=every(3)), 4)
    aged(table)
    penguin = Penguin(table, options=every(3))
    commit(table, penguin)
    assert numbers(table) == [5]

    commit(table, Penguin(table, options=every(3)))
    assert Penguin(table).drain().run.totals.commits == 0
    assert table.ids() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("properties", "days", "left"),
    [
        ({}, 29, [*range(6)]),
        ({"delta.logRetentionDuration": "interval 7 days"}, 8, [5]),
        ({"delta.enableExpiredLogCleanup": "False"}, 31, [*range(6)]),
        # HOLES L31: a value that is no yes.
        ({"delta.enableExpiredLogCleanup": "no"}, 31, [*range(6)]),
    ],
)
def test_the_table_says_how_long_versions_are_kept(table, properties, days, left):
    commit(table, Penguin(table, options=every(3, properties=properties)), 4)
    aged(table, days)
    penguin = Penguin(table, options=every(3))
    commit(table, penguin)
    assert numbers(table) == left


def test_a_table_with_checkpoints_of_another_kind_is_left_to_its_engine(table):
    commit(table, Penguin(table, options=every(3)), 2)
    features = ["v2Checkpoint"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }
    (table.root / log_version(3)).write_text(json.dumps({"protocol": protocol}))
    commit(table, Penguin(table, options=every(9)), 1)
    aged(table)
    penguin = Penguin(table, options=every(3))
    commit(table, penguin, 1)
    assert of_kind(penguin.events, CheckpointWritten)
    assert numbers(table) == list(range(6))


def test_the_log_is_cleaned_up_once_a_day_however_often_there_is_a_checkpoint(table):
    """It lists the whole log."""
    began, passed = time.time(), [0.0]
    clock = Clock(seconds=lambda: began + passed[-1])
    penguin = Penguin(table, options=every(1), clock=clock)
    seen: list[list[int]] = []
    for seconds in (0.0, maintenance.CLEAN_UP_SECS - 1, maintenance.CLEAN_UP_SECS):
        passed.append(seconds)
        aged(table)
        commit(table, penguin)
        seen.append(numbers(table))
    assert seen == [[0, 1], [0, 1, 2], [3]]


def test_trouble_with_it_is_a_warning_and_the_next_checkpoint_tries_again(table, monkeypatch):
    def refuse(_table):
        raise CommitUnconfirmed("permission denied")

    commit(table, Penguin(table, options=every(1)), 2)
    aged(table)
    penguin = Penguin(table, options=every(1))
    with monkeypatch.context() as refusing:
        refusing.setattr(WritableTable, "remove_expired_versions", refuse)
        commit(table, penguin, 2)
    assert len(of_kind(penguin.events, LogCleanUpFailed)) == 2
    assert penguin.run.totals.commits == 2
    commit(table, penguin)
    assert numbers(table) == [3, 4, 5]


# ---------------------------------------------------------------------- what is kept


@pytest.mark.parametrize("text", ["interval 365 days", "interval 52 weeks", "interval 8760 hours"])
def test_an_interval_that_every_engine_reads_is_obeyed(table: TableDirectory, text: str) -> None:
    """HOLES L31"""
    properties = {"delta.logRetentionDuration": text}
    commit(table, Penguin(table, options=every(3, properties=properties)), 4)
    aged(table, days=363)
    commit(table, Penguin(table, options=every(3)))
    assert numbers(table) == list(range(6))
    aged(table, days=366)
    commit(table, Penguin(table, options=every(1)))
    assert numbers(table) == [6]


@pytest.mark.parametrize(
    "text",
    ["365 days", "INTERVAL 365 DAYS", "interval 52 weeks 1 day", "interval 1 month", "soon", ""],
)
def test_where_engines_differ_everything_is_kept_and_that_is_told(table, text):
    """HOLES L31: nothing is removed by somebody's default."""
    commit(table, Penguin(table, options=every(3)), 3)
    metadata = json.loads(
        next(line for line in table.commit_text(0).splitlines() if "metaData" in line)
    )
    metadata["metaData"]["configuration"]["delta.logRetentionDuration"] = text
    (table.root / log_version(4)).write_text(json.dumps(metadata))
    aged(table, days=4000)
    penguin = Penguin(table, options=every(1))
    commit(table, penguin, 2)
    assert numbers(table) == list(range(7))
    (told,) = of_kind(penguin.events, LogCleanUpFailed)
    assert repr(text) in told.sentence()


# ---------------------------------------------------------------------- what survives a power cut


@pytest.fixture
def calls(table: TableDirectory, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Note in which order files are put on disk and removed."""
    found: list[tuple[str, str]] = []
    fsync = os.fsync

    def noted_fsync(handle: int) -> None:
        # A file that is written is synced by its temporary name.
        name = Path(f"/proc/self/fd/{handle}").readlink().name
        found.append(("sync", name.removesuffix("#1")))
        fsync(handle)

    remove = WritableTable.remove_expired_versions

    def noted_removal(opened: WritableTable) -> None:
        found.append(("delete", "versions"))
        remove(opened)

    monkeypatch.setattr(WritableTable, "remove_expired_versions", noted_removal)
    monkeypatch.setattr(os, "fsync", noted_fsync)
    return found


def noting(root: Path, calls: list[tuple[str, str]]) -> Store:
    """Open a table so that removals are noted among the calls."""

    class Noting(Store):
        def delete(self, path: str) -> None:
            calls.append(("delete", path.rpartition("/")[2]))
            super().delete(path)

    return Noting(str(root), StorageOptions())


def before_the_first_removal(calls: list[tuple[str, str]]) -> list[str]:
    first = next(place for place, (call, _) in enumerate(calls) if call == "delete")
    return [name for call, name in calls[:first] if call == "sync"]


def test_versions_go_only_once_what_stands_for_them_is_on_disk(table, calls):
    """HOLES L30: the checkpoint, the note of it, the versions since, and their folder."""
    commit(table, Penguin(table, options=every(3)), 4)
    write_deltalake(str(table.root), table.delta().to_pyarrow_table(), mode="append")
    aged(table)
    calls.clear()
    commit(table, Penguin(table, options=every(3)))
    assert numbers(table) == [6]
    done = before_the_first_removal(calls)
    folder = max(place for place, name in enumerate(done) if name == "_delta_log")
    for name in (f"{6:020d}.checkpoint.parquet", f"{6:020d}.json", "_last_checkpoint"):
        assert done.index(name) < folder


def test_versions_of_other_writers_are_put_on_disk_before_older_ones_go(table, calls):
    """HOLES L30: without them the table cannot be read from the checkpoint on either."""
    commit(table, Penguin(table, options=every(100)), 3)
    aged(table)
    write_deltalake(str(table.root), table.delta().to_pyarrow_table(), mode="append")
    calls.clear()
    keeper = maintenance.Maintenance(
        table="events", checkpoint_interval=1, emit=lambda _event: None, clock=Clock()
    )
    keeper.start_if_due(Log(table.store), table.store, 4)
    assert numbers(table) == [4]
    assert f"{4:020d}.json" in before_the_first_removal(calls)


def test_a_checkpoint_is_on_disk_as_soon_as_it_is_written(table, calls):
    """HOLES L30: readers begin with it, and fail where only its note survived."""
    commit(table, Penguin(table, options=every(1)))
    assert ("sync", f"{1:020d}.checkpoint.parquet") in calls
    assert ("sync", "_last_checkpoint") in calls


def test_what_another_writer_committed_is_put_on_disk_with_what_follows_it(table, calls):
    """HOLES L30: a version that is gone between two that are there makes a log unreadable."""
    penguin = Penguin(table)
    commit(table, penguin)
    write_deltalake(str(table.root), table.delta().to_pyarrow_table(), mode="append")
    calls.clear()
    commit(table, penguin)
    synced = [name for call, name in calls if call == "sync" and name.endswith(".json")]
    assert synced.index(f"{2:020d}.json") < synced.index(f"{3:020d}.json")


def test_a_meta_is_deleted_only_once_the_commit_of_its_file_is_on_disk(tmp_path, calls):
    """HOLES L30: whoever committed it died before; after a power cut nothing else asks for it."""
    others = Directory(tmp_path / "others")
    others.store = noting(others.root, calls)
    path = others.file(1)
    meta = others.meta(path)
    body = meta.read_bytes()
    others.penguin().drain()
    meta.write_bytes(body)
    calls.clear()
    others.penguin().drain()
    assert others.metas() == []
    assert f"{1:020d}.json" in before_the_first_removal(calls)
