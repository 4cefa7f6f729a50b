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

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from lakebed.layout import DELTA_LOG, log_version
from lakebed.storage.store import Store
from penguin.committer import Committer
from penguin.delta import log_files
from penguin.delta.table import Table
from penguin.events.commits import PlanSuperseded
from penguin.events.foreign_files import FilesLeftOut
from penguin.inspect.explain import explain
from penguin.model.errors import CommitFailed
from tests.support.foreign import DAY, Directory, Visitor

HOUR = 3600.0
A_DAY = 24 * HOUR
RETENTION = "delta.deletedFileRetentionDuration"


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    """Make a directory whose files are named by the store's own time."""
    found = Directory(tmp_path / "table")
    found.hands.at = time.time()
    return found


def aged(table: Directory, number: int, days: float, **options: Any) -> str:
    """Write a file that was named and written some days ago."""
    ago = days * A_DAY
    return table.file(number, age=ago, modified=time.time() - ago, **options)


def add(table: Directory, path: str, *, name: str | None = None) -> None:
    """Commit a file as another engine does."""
    size = (table.root / path).stat().st_size
    action = AddAction(name or path, size, {"date": "2024-01-01"}, 0, True, "{}")
    commit(table, [action])


def remove(table: Directory, path: str, *, days_ago: float = 0.0) -> None:
    at = int((time.time() - days_ago * A_DAY) * 1000)
    commit(table, [RemoveAction(path, data_change=True, deletion_timestamp=at)])


def commit(table: Directory, found: list[Any]) -> None:
    delta = table.delta()
    delta.create_write_transaction(found, "append", delta.schema(), partition_by=["date"])


def write_version(table: Directory, *lines: dict[str, Any]) -> None:
    """Write the next version as it is."""
    version = table.delta().version() + 1
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (table.root / log_version(version)).write_text(text)


def checkpoint(table: Directory, *, clean: bool, days_old: float = 0.0) -> None:
    """Write a checkpoint, and remove the versions before it as somebody's clean-up does."""
    ms = int((time.time() - days_old * A_DAY) * 1000)
    write_version(table, {"commitInfo": {"timestamp": ms, "operation": "WRITE"}})
    table.delta().create_checkpoint()
    log = table.root / DELTA_LOG
    last = table.delta().version()
    for version in range(last) if clean else ():
        (table.root / log_version(version)).unlink(missing_ok=True)
    at = time.time() - days_old * A_DAY
    for file in log.iterdir():
        os.utime(file, (at, at))


def begin(table: Directory, retention: str = "interval 14 days") -> None:
    table.file(1)
    table.penguin(properties={RETENTION: retention}).drain()


def left_out(penguin: Visitor) -> dict[str, str]:
    return {path: told.code for told in penguin.told(FilesLeftOut) for path in told.paths}


def reason(penguin: Visitor) -> str:
    (told,) = penguin.told(FilesLeftOut)
    return str(told.reason)


# ---------------------------------------------------------------------- what a checkpoint forgets


def test_a_retention_that_the_library_cannot_read_brings_nothing_back(table):
    """HOLES D21: it drops what was removed 8 days ago, and the table says 365 days."""
    begin(table, "365 days")
    gone = aged(table, 2, 20)
    add(table, gone)
    remove(table, gone, days_ago=8)
    checkpoint(table, clean=True, days_old=2)
    penguin = table.penguin().drain()
    assert table.ids() == [1]
    assert left_out(penguin) == {gone: "file_too_old"}
    assert "the versions of the log reach back only to" in reason(penguin)


def test_a_retention_that_was_raised_brings_nothing_back(table):
    """HOLES D21: what was dropped before stays dropped, and our own alarm advises to raise it."""
    begin(table, "interval 0 hours")
    gone = aged(table, 2, 5)
    add(table, gone)
    remove(table, gone, days_ago=1)
    table.delta().create_checkpoint()
    table.delta().alter.set_table_properties({RETENTION: "interval 60 days"})
    checkpoint(table, clean=True, days_old=2)
    penguin = table.penguin().drain()
    assert table.ids() == [1]
    assert left_out(penguin) == {gone: "file_too_old"}


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


def test_versions_are_read_back_no_further_than_the_oldest_new_file_needs(table, monkeypatch):
    """A request for each of a month's versions at every start would be dear."""
    begin(table)
    for number in range(10, 30):
        write_deltalake(
            str(table.root), pa.table({"id": [number], "date": ["2024-01-01"]}), mode="append"
        )
    checkpoint(table, clean=False)
    last = table.delta().version()
    for version in range(last + 1):
        at = time.time() - (last - version) * A_DAY
        os.utime(table.root / log_version(version), (at, at))
    fresh = aged(table, 5, 4.5)
    monkeypatch.setattr(log_files, "AT_A_TIME", 1)
    read: list[str] = []

    class Watched(Store):
        def fetch(self, path):
            read.append(path)
            return super().fetch(path)

    visitor = Visitor(table, store=Watched(str(table.root), table.store.options))
    visitor.drain()
    assert fresh in table.delta().get_add_actions().column("path").to_pylist()
    assert log_version(last - 5) in read
    assert log_version(last - 7) not in read


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
    assert "was copied" in reason(penguin)


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
def test_a_file_that_is_newer_than_every_version_goes_in(table, pattern):
    """HOLES D21: for an hour after a log was trimmed every file stayed out, and for good."""
    trimmed(table, minutes_ago=2)
    path = f"{DAY}/part-0.parquet" if pattern else None
    minutes_old(table, 2, 1, path=path)
    penguin = table.penguin(file_pattern=pattern).drain()
    assert (table.ids(), left_out(penguin)) == ([1, 2], {})


def test_a_file_that_is_a_little_older_than_every_version_stays_out(table):
    """HOLES D21: and the time that is told is that of the oldest version, not a later one."""
    trimmed(table, minutes_ago=2)
    gone = minutes_old(table, 2, 3)
    penguin = table.penguin().drain()
    assert (table.ids(), left_out(penguin)) == ([1], {gone: "file_too_old"})
    file, versions = times(reason(penguin))
    assert versions - file == pytest.approx(60, abs=10)


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
    assert "the hour after that is not certain" in reason(penguin)
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
    assert "because the directory was copied, the hour after that is not certain" in reason(penguin)
    assert max(times(reason(penguin))) <= time.time()
    at = time.time() - 2 * HOUR
    for version in (other.root / DELTA_LOG).iterdir():
        os.utime(version, (at, at))
    other.penguin().drain()
    assert other.ids() == [1, 3]


# ---------------------------------------------------------------------- under which name


def absolute_names(table: Directory, path: str) -> list[str]:
    root = str(table.root.absolute())
    return [f"file://{root}/{path}", f"file:{root}/{path}", f"{root}/{path}"]


@pytest.mark.parametrize("form", range(3))
def test_a_file_that_the_log_names_by_its_whole_path_is_known(table, form):
    """HOLES D21"""
    begin(table)
    gone = table.file(2)
    name = absolute_names(table, gone)[form]
    size = (table.root / gone).stat().st_size
    told = {"path": name, "size": size, "partitionValues": {"date": "2024-01-01"}}
    write_version(table, {"add": {**told, "modificationTime": 0, "dataChange": True}})
    write_version(table, {"remove": {"path": name, "dataChange": True, "deletionTimestamp": 1}})
    penguin = table.penguin().drain()
    assert (table.ids(), left_out(penguin)) == ([1], {})


def test_a_file_that_the_log_names_through_a_link_is_known(table, tmp_path):
    """HOLES D21: penguin is given a link to the directory, another engine the directory itself."""
    begin(table)
    gone = table.file(2)
    name = f"file://{table.root.absolute()}/{gone}"
    write_version(table, {"remove": {"path": name, "dataChange": True, "deletionTimestamp": 1}})
    link = tmp_path / "link"
    link.symlink_to(table.root)
    other = Directory(link)
    other.hands.at = table.hands.at
    other.penguin().drain()
    assert table.ids() == [1]
    third = tmp_path / "third"
    third.symlink_to(table.root)
    again = table.file(3)
    name = f"{third.absolute()}/{again}"
    write_version(table, {"remove": {"path": name, "dataChange": True, "deletionTimestamp": 1}})
    table.penguin().drain()
    assert table.ids() == [1]


def test_a_linked_folder_does_not_double_what_another_engine_committed(table):
    """HOLES D21: a UUID is committed once, whoever did it and wherever the file lies."""
    begin(table)
    known = table.file(2)
    add(table, known)
    (table.root / "date=2024-01-02").symlink_to(table.root / DAY)
    penguin = table.penguin().drain()
    assert table.ids() == [1, 2]
    assert left_out(penguin) == {"date=2024-01-02/": "name_unusable"}


@pytest.mark.parametrize("known_by_link", [True, False])
def test_a_plain_name_in_a_linked_folder_is_one_file(table, known_by_link):
    """HOLES D21: the log may know it by either of its names."""
    begin(table)
    (table.root / "date=2024-01-02").symlink_to(table.root / DAY)
    real = table.file(2, path=f"{DAY}/part-0.parquet")
    link = real.replace("01-01", "01-02")
    known = link if known_by_link else real
    add(table, known)
    remove(table, known)
    new = table.file(3, path=f"{DAY}/part-1.parquet")
    penguin = table.penguin(file_pattern="part-*.parquet").drain()
    assert table.ids() == [1, 3]
    assert new in table.delta().get_add_actions().column("path").to_pylist()
    reasons = " ".join(told.reason for told in penguin.told(FilesLeftOut))
    assert ("a link makes it" in reasons) == known_by_link
    assert "it is a link to a folder" in reasons


def test_a_checkpoint_with_sidecars_under_the_classic_name_is_read_whole(table):
    """HOLES D21: its files and tombstones are in the sidecars."""
    begin(table)
    gone, stays = table.file(2), table.file(3)
    for path in (gone, stays):
        add(table, path)
    remove(table, gone)
    table.delta().create_checkpoint()
    with_sidecar(table)
    for path in (gone, stays):
        table.meta(path)
    table.penguin().drain()
    assert table.ids() == [1, 3]
    assert len(table.delta().get_add_actions().column("path")) == 2


def with_sidecar(table: Directory) -> None:
    """Move the files of a checkpoint into a sidecar, as the second kind of checkpoint has them."""
    log = table.root / DELTA_LOG
    (classic,) = log.glob("*.checkpoint.parquet")
    whole = pq.read_table(classic)
    is_file = pa.compute.or_(
        pa.compute.is_valid(whole["add"]), pa.compute.is_valid(whole["remove"])
    )
    side = whole.filter(is_file).select(["add", "remove"])
    (log / "_sidecars").mkdir()
    target = log / "_sidecars" / "016ae953-37a9-438e-8683-9a9a4a79a395.parquet"
    pq.write_table(side, target)
    rest = whole.filter(pa.compute.invert(is_file))
    kind = whole.schema.field("sidecar").type
    told = {
        "path": target.name,
        "sizeInBytes": target.stat().st_size,
        "modificationTime": 0,
        "tags": None,
    }
    line = dict.fromkeys(whole.schema.names) | {
        "sidecar": {field.name: told.get(field.name) for field in kind}
    }
    more = pa.Table.from_pylist([line], schema=whole.schema)
    pq.write_table(pa.concat_tables([rest, more]), classic)
    for version in log.glob("*.json"):
        if int(version.stem) < int(classic.name[:20]):
            version.unlink()


# ---------------------------------------------------------------------- between a look and a commit


def put_in_and_compact(table: Directory, path: str) -> None:
    """Let another engine commit a file and rewrite it: its rows are there, and it is not."""
    add(table, path)
    before = DeltaTable(str(table.root))
    before.optimize.compact()
    assert path not in table.delta().get_add_actions().column("path").to_pylist()


@pytest.mark.parametrize("moment", [(Committer, "carry_out"), (Table, "commit")])
def test_a_file_that_another_commits_and_rewrites_meanwhile_is_not_doubled(
    table, monkeypatch, moment
):
    """HOLES D22: between the look and the commit, and between its opening and its writing."""
    begin(table)
    path = table.file(2)
    where, name = moment
    goes_on, turns = getattr(where, name), [True]

    def overtaken(self, *given, **named):
        if turns:
            turns.clear()
            put_in_and_compact(table, path)
        return goes_on(self, *given, **named)

    monkeypatch.setattr(where, name, overtaken)
    penguin = table.penguin().drain()
    assert not turns
    assert table.ids() == [1, 2]
    assert len(penguin.told(PlanSuperseded)) == 1


def test_what_others_commit_meanwhile_keeps_no_file_out(table, monkeypatch):
    """HOLES D22: only what touches the very files is in the way."""
    begin(table)
    table.file(2)
    goes_on, turns = Table.commit, [3]

    def overtaken(self, *given, **named):
        if turns[0]:
            turns[0] -= 1
            more = pa.table({"id": [10 + turns[0]], "date": ["2024-01-01"]})
            write_deltalake(str(table.root), more, mode="append")
        return goes_on(self, *given, **named)

    monkeypatch.setattr(Table, "commit", overtaken)
    penguin = table.penguin().drain()
    assert table.ids() == [1, 2, 10, 11, 12]
    assert penguin.told(PlanSuperseded) == []


# ---------------------------------------------------------------------- a log from a backup


def drained(penguin: Visitor, most: int = 20) -> None:
    for _ in range(most):
        if not penguin.run.step():
            return
    raise AssertionError("it goes on and on")


@pytest.mark.parametrize("others", [0, 1, 2, 5])
def test_a_log_from_a_backup_gets_again_what_it_has_lost(table, tmp_path, others):
    """HOLES W36: fewer versions, as many, or more than before, by others."""
    penguin = table.penguin(late_window=1.0)
    backup = tmp_path / "backup"
    for number in range(4):
        table.file(number)
        table.hands.at += HOUR
        drained(penguin)
        if number == 1:
            shutil.copytree(table.root / DELTA_LOG, backup)
    shutil.rmtree(table.root / DELTA_LOG)
    shutil.copytree(backup, table.root / DELTA_LOG)
    for number in range(others):
        more = pa.table({"id": [100 + number], "date": ["2024-01-01"]})
        write_deltalake(str(table.root), more, mode="append")
    for _ in range(2):
        drained(penguin)
    more_ids = [100 + number for number in range(others)]
    assert table.ids() == [0, 1, 2, 3, *more_ids]
    table.file(9)
    drained(penguin)
    assert table.ids() == [0, 1, 2, 3, 9, *more_ids]
    assert penguin.told(PlanSuperseded) == []


def test_a_memory_that_is_wrong_in_a_way_nobody_knows_is_given_up(table, monkeypatch):
    """HOLES W36: a plan that is overtaken at one and the same version is not made for ever."""
    begin(table)
    penguin = table.penguin().drain()
    assert penguin.run._search is not None
    known = penguin.run._search._known
    assert known is not None
    known.transactions["penguin/scan"] = 7
    table.file(2)
    drained(penguin)
    assert table.ids() == [1, 2]

    monkeypatch.setattr(Committer, "_is_overtaken", lambda *_given: True)
    table.file(3)
    with pytest.raises(CommitFailed, match="keeps changing while"):
        drained(penguin)


def test_a_look_without_a_commit_reads_the_same(table):
    """What `plan` shows is what a commit would do."""
    begin(table, "365 days")
    gone = aged(table, 2, 20)
    add(table, gone)
    remove(table, gone, days_ago=8)
    checkpoint(table, clean=True, days_old=2)
    shown = explain(table.settings(), table.store)
    assert [(one.path, one.code) for one in shown.proposal.left_out] == [(gone, "file_too_old")]
