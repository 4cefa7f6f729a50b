"""What a Delta log needs beside its commits: checkpoints, and no versions beyond their time."""

import json
import os
import time
from pathlib import Path

import pytest

from lake.clock import Clock
from lake.layout import log_version
from lake.telemetry.events import Event
from penguin import upkeep
from penguin.errors import CommitFailed
from penguin.events import (
    CheckpointFailed,
    CheckpointWritten,
    LogCleanedUp,
    LogCleanUpFailed,
)
from penguin.table import Table
from tests.support.tables import Penguin, TableDirectory, rows_of

DAY = 86_400


@pytest.fixture
def table(tmp_path: Path) -> TableDirectory:
    return TableDirectory(tmp_path / "table")


def test_a_checkpoint_is_written_when_enough_versions_passed(table: TableDirectory) -> None:
    journal = table.journal()
    penguin = Penguin(table, options={"checkpoint_interval": 3})
    for number in range(1, 7):
        journal.batch(rows_of(number))
        penguin.drain()
    written = [event.version for event in penguin.events if isinstance(event, CheckpointWritten)]
    assert written == [2, 5]
    assert table.ids() == [1, 2, 3, 4, 5, 6]


def test_a_failed_checkpoint_is_a_warning_and_is_tried_again(
    table: TableDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_table: Table) -> None:
        raise CommitFailed("disk full")

    table.journal().batch(rows_of(1))
    with monkeypatch.context() as patch:
        patch.setattr(Table, "checkpoint", refuse)
        penguin = Penguin(table, options={"checkpoint_interval": 1}).drain()
    assert penguin.run.totals.commits == 1
    assert of_kind(penguin.events, CheckpointFailed)
    again = Penguin(table, options={"checkpoint_interval": 1}).drain()
    assert of_kind(again.events, CheckpointWritten)


def of_kind(events: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def aged(table: TableDirectory, days: int = 31) -> None:
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


def test_versions_beyond_their_time_are_removed_and_nothing_is_lost_or_doubled(
    table: TableDirectory,
) -> None:
    """D16: what is committed is still known when all of the versions that said so are gone."""
    commit(table, Penguin(table, options=every(3)), 4)
    aged(table)
    penguin = Penguin(table, options=every(3))
    commit(table, penguin)
    assert numbers(table) == [5]
    (told,) = of_kind(penguin.events, LogCleanedUp)
    assert isinstance(told, LogCleanedUp)
    assert (told.first, told.removed) == (5, 5)

    commit(table, Penguin(table, options=every(3)))
    assert Penguin(table).drain().run.totals.commits == 0
    assert table.ids() == [1, 2, 3, 4, 5, 6]


def test_younger_versions_stay(table: TableDirectory) -> None:
    commit(table, Penguin(table, options=every(3)), 4)
    aged(table, days=29)
    penguin = Penguin(table, options=every(3))
    commit(table, penguin)
    assert numbers(table) == list(range(6))
    assert of_kind(penguin.events, LogCleanedUp) == []


def test_the_table_says_how_long_they_are_kept(table: TableDirectory) -> None:
    properties = {"delta.logRetentionDuration": "interval 7 days"}
    commit(table, Penguin(table, options=every(3, properties=properties)), 4)
    aged(table, days=8)
    commit(table, Penguin(table, options=every(3)))
    assert numbers(table) == [5]


def test_a_table_that_keeps_everything_keeps_everything(table: TableDirectory) -> None:
    properties = {"delta.enableExpiredLogCleanup": "False"}
    commit(table, Penguin(table, options=every(3, properties=properties)), 4)
    aged(table)
    commit(table, Penguin(table, options=every(3)))
    assert numbers(table) == list(range(6))


def test_a_table_with_checkpoints_of_another_kind_is_left_to_its_engine(
    table: TableDirectory,
) -> None:
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


def test_the_log_is_cleaned_up_once_a_day_however_often_there_is_a_checkpoint(
    table: TableDirectory,
) -> None:
    """It lists the whole log."""
    began, passed = time.time(), [0.0]
    clock = Clock(seconds=lambda: began + passed[-1])
    penguin = Penguin(table, options=every(1), clock=clock)
    seen: list[list[int]] = []
    for seconds in (0.0, upkeep.CLEAN_UP_SECS - 1, upkeep.CLEAN_UP_SECS):
        passed.append(seconds)
        aged(table)
        commit(table, penguin)
        seen.append(numbers(table))
    assert seen == [[0, 1], [0, 1, 2], [3]]


def test_trouble_with_it_is_a_warning_and_the_next_checkpoint_tries_again(
    table: TableDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_table: Table) -> None:
        raise CommitFailed("permission denied")

    penguin = Penguin(table, options=every(1))
    with monkeypatch.context() as patch:
        patch.setattr(Table, "remove_expired", refuse)
        commit(table, penguin, 2)
    assert len(of_kind(penguin.events, LogCleanUpFailed)) == 2
    assert penguin.run.totals.commits == 2
    aged(table)
    commit(table, penguin)
    assert numbers(table) == [3]
