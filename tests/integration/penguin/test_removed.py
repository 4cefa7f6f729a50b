"""Files that were removed from a table stay out of it, whatever the log has forgotten of them.

Only versions that are there tell for sure. What a checkpoint still names depends on how its writer
read the table's retention, and when.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from lakebed.deltalog.files import AT_A_TIME
from lakebed.layout import DELTA_LOG, log_version
from lakebed.storage.store import Store
from tests.support.foreign import DAY, Directory, Visitor
from tests.support.removals import (
    A_DAY,
    HOUR,
    IGNORED,
    RETENTION,
    add,
    aged,
    begin,
    checkpoint,
    left_out,
    reason,
    remove,
    write_version,
)


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    """Make a directory whose files are named by the store's own time."""
    found = Directory(tmp_path / "table")
    found.hands.at = time.time()
    return found


# ---------------------------------------------------------------------- what a checkpoint forgets


@pytest.mark.parametrize(
    ("retention", "raised"), [("365 days", None), ("interval 0 hours", "interval 60 days")]
)
def test_what_a_checkpoint_dropped_is_not_brought_back_by_a_retention(table, retention, raised):
    """HOLES D21: the library cannot read the first one, and the second one was raised too late."""
    begin(table, retention)
    gone = aged(table, 2, 20)
    add(table, gone)
    remove(table, gone, days_ago=8)
    table.delta().create_checkpoint()
    if raised is not None:
        table.delta().alter.set_table_properties({RETENTION: raised})
    checkpoint(table, clean=True, days_old=2)
    penguin = table.penguin().drain()
    assert table.ids() == [1]
    assert left_out(penguin) == {gone: IGNORED}


def test_a_removal_that_does_not_say_when_is_known_by_its_version(table):
    """HOLES D21: every checkpoint drops it at once; the version is still there."""
    begin(table)
    gone = aged(table, 2, 1)
    add(table, gone)
    write_version(table, {"remove": {"path": gone, "dataChange": True}})
    checkpoint(table, clean=False)
    penguin = table.penguin().drain()
    assert (table.ids(), left_out(penguin)) == ([1], {})


def test_a_new_file_goes_in_beside_a_log_that_has_forgotten_much(table):
    begin(table, "365 days")
    checkpoint(table, clean=True, days_old=2)
    table.file(5)
    penguin = table.penguin().drain()
    assert (table.ids(), left_out(penguin)) == ([1, 5], {})


def test_versions_are_read_back_no_further_than_the_oldest_new_file_needs(table):
    """A request for each of a month's versions at every start would be dear."""
    begin(table)
    for version in range(table.delta().version() + 1, 2 * AT_A_TIME + 10):
        (table.root / log_version(version)).write_text('{"commitInfo":{"operation":"WRITE"}}\n')
    checkpoint(table, clean=False)
    last = table.delta().version()
    for version in range(last + 1):
        at = time.time() - (last - version) * A_DAY
        os.utime(table.root / log_version(version), (at, at))
    fresh = aged(table, 5, 4.5)
    read: list[str] = []

    class Watched(Store):
        def fetch(self, path):
            read.append(path)
            return super().fetch(path)

    visitor = Visitor(table, store=Watched(str(table.root), table.store.options))
    visitor.drain()
    assert fresh in table.delta().get_add_actions().column("path").to_pylist()
    assert log_version(last - AT_A_TIME + 1) in read
    assert log_version(last - AT_A_TIME - 1) not in read


# ---------------------------------------------------------------------- what times are worth


def copied(table: Directory, where: Path) -> Directory:
    """Copy a directory as `cp -r` does: everything is new."""
    shutil.copytree(table.root, where, copy_function=shutil.copyfile)
    found = Directory(where)
    found.hands.at = table.hands.at
    return found


def copied_last(table: Directory, path: str) -> None:
    """Let a file be copied hours after the log was."""
    late = time.time() + 3 * HOUR
    os.utime(table.root / path, (late, late))


def old_table(table: Directory, make: Callable[[], str]) -> str:
    """Commit and remove a file so long ago that the log has forgotten both."""
    begin(table, "interval 14 days")
    gone = make()
    add(table, gone)
    remove(table, gone, days_ago=20)
    checkpoint(table, clean=True, days_old=2)
    return gone


def test_a_copied_directory_does_not_make_old_files_new(table, tmp_path):
    """HOLES D21: the store's times are those of the copy; the name keeps its own."""
    gone = old_table(table, lambda: aged(table, 2, 40))
    other = copied(table, tmp_path / "copy")
    copied_last(other, gone)
    penguin = other.penguin().drain()
    assert other.ids() == [1]
    assert left_out(penguin) == {gone: "file_too_old"}


def test_in_a_copied_directory_a_name_without_a_time_tells_nothing(table, tmp_path):
    """HOLES D21: neither does its time in the store, however late it was copied."""
    gone = old_table(table, lambda: table.file(2, path=f"{DAY}/part-0.parquet"))
    other = copied(table, tmp_path / "copy")
    copied_last(other, gone)
    penguin = other.penguin(file_pattern="part-*.parquet").drain()
    assert other.ids() == [1]
    assert left_out(penguin) == {gone: "file_too_old"}
    assert "give or take an hour" in reason(penguin)


def trimmed(table: Directory, *, minutes_ago: float) -> None:
    """Let nothing be left of the log but a checkpoint and its version, of some minutes ago."""
    begin(table)
    checkpoint(table, clean=True, days_old=minutes_ago / (24 * 60))


def times(text: str) -> list[float]:
    found = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", text)
    return [datetime.fromisoformat(f"{one}+00:00").timestamp() for one in found]


def minutes_old(table: Directory, number: int, minutes: float, **options: Any) -> str:
    return aged(table, number, minutes / (24 * 60), **options)


@pytest.mark.parametrize("pattern", [None, "part-*.parquet"])
def test_a_file_that_is_newer_than_every_version_goes_in_and_an_older_one_does_not(table, pattern):
    """HOLES D21: for an hour after a log was trimmed every file stayed out, and for good.

    And the time that is told is that of the oldest version, not a later one.
    """
    trimmed(table, minutes_ago=2)
    minutes_old(table, 2, 1, path=f"{DAY}/part-0.parquet" if pattern else None)
    left = {minutes_old(table, 3, 3): IGNORED}
    if pattern:
        left[minutes_old(table, 4, 3, path=f"{DAY}/part-1.parquet")] = "file_too_old"
    penguin = table.penguin(file_pattern=pattern).drain()
    assert (table.ids(), left_out(penguin)) == ([1, 2], left)
    if pattern:
        (versions,) = times(reason(penguin))
        assert time.time() - versions == pytest.approx(120, abs=60)


def test_a_file_with_a_new_time_and_an_old_name_stays_out(table):
    """HOLES D21: it was copied by itself."""
    trimmed(table, minutes_ago=2)
    gone = table.file(2, age=600)
    penguin = table.penguin().drain()
    assert (table.ids(), left_out(penguin)) == ([1], {gone: "file_too_old"})


def test_where_a_version_does_not_say_when_it_was_written_an_hour_is_left(table):
    """HOLES D21: whether it was copied cannot be told."""
    trimmed(table, minutes_ago=2)
    (version,) = (table.root / DELTA_LOG).glob("*.json")
    at = version.stat().st_mtime
    version.write_text(json.dumps({"commitInfo": {"operation": "WRITE"}}) + "\n")
    os.utime(version, (at, at))
    gone = minutes_old(table, 2, 1)
    penguin = table.penguin().drain()
    assert (table.ids(), left_out(penguin)) == ([1], {gone: "file_too_old"})
    assert "give or take an hour" in reason(penguin)
    assert max(times(reason(penguin))) <= time.time()


def test_in_a_copied_directory_no_time_to_come_is_told(table, tmp_path):
    """HOLES D21: the hour after the copy is not certain, and that is said as it is meant."""
    begin(table)
    checkpoint(table, clean=True, days_old=2)
    other = copied(table, tmp_path / "copy")
    other.written = table.written
    young = other.file(3)
    penguin = other.penguin().drain()
    assert (other.ids(), left_out(penguin)) == ([1], {young: "file_too_old"})
    assert "give or take an hour" in reason(penguin)
    assert max(times(reason(penguin))) <= time.time()
    at = time.time() - 2 * HOUR
    for version in (other.root / DELTA_LOG).iterdir():
        os.utime(version, (at, at))
    other.penguin().drain()
    assert other.ids() == [1, 3]
