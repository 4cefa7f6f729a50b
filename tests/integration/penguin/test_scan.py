"""Directories of other programs' files: found by their names, each committed once."""

import json
import os
import shutil
import time
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from lakebed.documents.entry import Protocol, encode
from lakebed.errors import StoreUnavailable
from lakebed.layout import protocol
from lakebed.listing.lookback import Window
from lakebed.storage.store import Store
from lakebed.types import DiscoverBy, Handoff
from penguin.delta.log_files import read_log
from penguin.delta.snapshot import LogReader
from penguin.delta.table import Log, Table
from penguin.events.backlog import FilesUnnamed
from penguin.events.commits import CommittedByOther, PlanSuperseded
from penguin.events.foreign_files import FilesLeftOut, LateFilesCommitted, OthersSeen
from penguin.model.errors import CommitFailed
from tests.support.builders import NOON
from tests.support.foreign import DAY, Directory, Visitor, name_at
from tests.support.tables import Penguin, TableDirectory, rows_of

HOUR = 3600.0


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "table")


def days(back: int, template: str = "date=%Y-%m-%d") -> Window:
    return Window.parse(template, back)


def date_folder(ago: int) -> str:
    return f"{NOON - timedelta(days=ago):date=%Y-%m-%d}"


# ------------------------------------------------------------------------------ what is found


def test_files_of_another_program_are_committed_once(table):
    for number in range(3):
        table.file(number, folder=date_folder(number))
    penguin = table.penguin().drain()
    assert table.ids() == [0, 1, 2]
    assert penguin.run.totals.commits == 1
    table.penguin().drain()
    assert table.versions() == 2
    assert {row["date"] for row in table.rows()} == {"2024-01-01", "2023-12-31", "2023-12-30"}


def test_only_names_of_the_expected_kind_are_taken(table):
    """HOLES D10: other engines leave unfinished files in the same folders."""
    table.file(1)
    for odd in ("part-00000.parquet", "x.parquet", "1f0e4c5a-0000-4000-8000-000000000000.parquet"):
        table.file(9, path=f"{DAY}/{odd}")
    table.file(9, path=f"_temporary/{name_at(1)}")
    table.file(9, path=f"{DAY}/.hidden/{name_at(2)}")
    table.penguin().drain()
    assert table.ids() == [1]


def test_a_file_pattern_widens_what_is_taken_and_each_file_counts_once(table):
    table.file(1)
    table.file(2, path=f"{DAY}/part-0.parquet")
    table.file(3, path="date=2024-01-02/part-0.parquet")
    table.file(9, path=f"{DAY}/_part.parquet")
    table.penguin(file_pattern="part-*.parquet").drain()
    assert table.ids() == [1, 2, 3]
    table.delta().optimize.compact()
    table.penguin(file_pattern="part-*.parquet").drain()
    assert table.ids() == [1, 2, 3]


def test_a_pattern_finds_names_that_sort_anywhere_at_every_poll(table):
    penguin = table.penguin(file_pattern="*.parquet")
    for number, name in enumerate(["m.parquet", "a.parquet", "z.parquet", "b.parquet"]):
        table.file(number, path=f"{DAY}/{name}")
        penguin.drain()
    assert table.ids() == [0, 1, 2, 3]


def test_files_at_the_root_of_an_unpartitioned_table(table):
    penguin = table.penguin()
    for number in range(3):
        table.file(number, folder="")
        table.hands.at += 1
        penguin.drain()
    assert table.ids() == [0, 1, 2]
    assert table.delta().metadata().partition_columns == []


def test_the_table_is_created_by_the_configured_partitions(table):
    table.file(1, folder="date=2024-01-01/region=eu west")
    settings = {
        "partition_columns": ("date", "region"),
        "partition_template": "date=%Y-%m-%d/region=%s",
    }
    table.penguin(**settings).drain()
    fields = {one.name: one.type.type for one in table.delta().schema().fields}
    assert fields == {"id": "long", "date": "date", "region": "string"}
    assert table.rows()[0]["region"] == "eu west"
    bad = table.file(2, folder="date=yesterday/region=eu")
    table.file(3, folder="date=2024-01-02/region=us")
    penguin = table.penguin(**settings).drain()
    assert table.ids() == [1, 3]
    (said,) = penguin.told(FilesLeftOut)
    assert said.paths == (bad,)
    assert "partition column date" in said.reason


@pytest.mark.parametrize(
    ("folder", "value"),
    [
        ("p=a%2Fb", "a/b"),
        ("p=__HIVE_DEFAULT_PARTITION__", None),
        ("p=100%25", "100%"),
        ("p=ü ñ", "ü ñ"),
    ],
)
def test_partition_values_are_read_from_escaped_folders(table, folder, value):
    """HOLES W09"""
    table.file(1, folder=folder)
    table.penguin().drain()
    assert table.rows() == [{"id": 1, "p": value}]
    table.penguin().drain()
    assert table.versions() == 2


def test_a_file_in_a_folder_that_is_no_partition_of_the_table_is_left_out(table):
    table.file(1)
    table.penguin().drain()
    table.file(2, folder="region=eu")
    table.file(3, folder="date=2024-01-01/region=eu")
    penguin = table.penguin().drain()
    assert table.ids() == [1]
    assert {said.code for said in penguin.told(FilesLeftOut)} == {"file_unfit"}


# ------------------------------------------------------------------------------ late files


def test_uploads_that_finish_out_of_order_between_polls_are_all_committed(table):
    """HOLES L07: the lower name appears after the higher one was committed."""
    penguin = table.penguin()
    lower = table.path(age=60)
    table.file(2)
    penguin.drain()
    table.file(1, path=lower)
    penguin.drain()
    assert table.ids() == [1, 2]
    (said,) = penguin.told(LateFilesCommitted)
    assert (said.files, said.some) == (1, (lower,))
    assert [event.sweep for event in penguin.told(OthersSeen) if event.sweep is not None] == [
        True,
        False,
    ]


def test_a_file_below_the_late_window_is_found_by_the_next_sweep(table):
    """HOLES L07"""
    penguin = table.penguin(late_window=60.0, sweep_interval=HOUR)
    lower = table.path(age=600)
    table.file(2)
    penguin.drain()
    table.file(1, path=lower)
    penguin.drain()
    assert table.ids() == [2]
    table.hands.at += HOUR
    penguin.drain()
    assert table.ids() == [1, 2]
    assert len(penguin.told(LateFilesCommitted)) == 1


def test_the_late_window_is_a_setting(table):
    penguin = table.penguin(late_window=900.0, sweep_interval=HOUR)
    lower = table.path(age=600)
    table.file(2)
    penguin.drain()
    table.file(1, path=lower)
    penguin.drain()
    assert table.ids() == [1, 2]


def test_late_data_for_an_older_partition_is_committed(table):
    """HOLES L08: a quiet folder is looked at by the next sweep, a new one at once."""
    penguin = table.penguin(late_window=60.0, sweep_interval=600.0)
    table.file(1, folder=date_folder(9))
    table.hands.at += 2 * HOUR
    table.file(2)
    penguin.drain()
    table.file(3, folder=date_folder(9))
    table.file(4, folder=date_folder(5))
    penguin.drain()
    assert table.ids() == [1, 2, 4]
    table.hands.at += 600
    penguin.drain()
    assert table.ids() == [1, 2, 3, 4]


def test_a_restart_sweeps(table):
    """HOLES L08, D01"""
    table.file(2)
    table.penguin().drain()
    table.file(1, age=10 * HOUR)
    table.penguin().drain()
    assert table.ids() == [1, 2]


def test_a_poll_lists_only_what_may_be_new(table):
    """A quiet folder and old names are not listed between two sweeps."""
    listed: list[tuple[str, str]] = []
    shown: list[str] = []

    class Noting(Store):
        def in_order(self, prefix="", *, after="", guide=None):
            listed.append((prefix, after))
            for facts in super().in_order(prefix, after=after, guide=guide):
                shown.append(facts.path)
                yield facts

    table.store = Noting(table.store.uri, table.store.options)
    table.file(1, folder=date_folder(3), age=3 * 24 * HOUR)
    last = table.file(2)
    penguin = table.penguin(late_window=60.0)
    penguin.drain()
    assert listed == [("", "")]
    assert len(shown) == 2
    listed.clear()
    shown.clear()
    penguin.drain()
    ((level, _), (prefix, after)) = listed  # The names of the folders come first.
    assert (level, prefix) == ("", DAY)
    assert shown == [last]
    assert f"{DAY}/{name_at(int((table.hands.at - 61) * 1000))}" < after < last


@pytest.mark.parametrize("step", [-HOUR, -48 * HOUR, 7 * 24 * HOUR])
def test_a_clock_that_steps_loses_nothing(table, step):
    """HOLES L22"""
    penguin = table.penguin(late_window=60.0)
    table.file(1)
    penguin.drain()
    table.hands.at += step
    for number in (2, 3):
        table.file(number)
        penguin.drain()
    table.hands.at -= step
    for number in (4, 5):
        table.hands.at += 1
        table.file(number)
        penguin.drain()
        table.hands.at += HOUR  # the next sweep
        penguin.drain()
    assert table.ids() == [1, 2, 3, 4, 5]


def test_a_name_from_the_future_hides_nothing(table):
    """HOLES L22: it is committed, and moves no mark."""
    penguin = table.penguin(late_window=60.0)
    table.file(1, age=-30 * 24 * HOUR)
    table.file(2)
    penguin.drain()
    for number in (3, 4):
        table.hands.at += 100
        table.file(number)
        penguin.drain()
    assert table.ids() == [1, 2, 3, 4]


# ------------------------------------------------------------------------------ the filter


def test_a_filter_bounds_a_cold_start_and_never_hides_what_is_newer(table):
    """HOLES L12, L20: lookback counts days, over hourly folders, and later starts go on."""
    options = {"partition_filter": days(2)}
    for ago in (30, 3, 2, 1, 0):
        table.file(ago, folder=f"{date_folder(ago)}/hour=23")
    table.penguin(**options).drain()
    assert table.ids() == [0, 1, 2]
    # Penguin was away for longer than the lookback: everything newer is seen all the same.
    table.hands.at += 30 * 24 * HOUR
    table.file(100, folder=f"{date_folder(-5)}/hour=00")
    table.file(101, folder=f"{date_folder(1)}/hour=07")
    table.penguin(**options).drain()
    assert table.ids() == [0, 1, 2, 100, 101]
    # What the first look did not reach stays out of sight, until the filter is taken away.
    table.penguin().drain()
    assert table.ids() == [0, 1, 2, 3, 30, 100, 101]


def test_files_that_land_just_before_midnight_are_seen(table):
    """HOLES L12"""
    options = {"partition_filter": days(1)}
    midnight = NOON.timestamp() + 12 * HOUR
    penguin = table.penguin(**options)
    table.hands.at = midnight - 1
    table.file(1, folder=date_folder(0))
    penguin.drain()
    lower = table.path(folder=date_folder(0))
    table.hands.at = midnight + 1
    table.file(2, folder=date_folder(-1))
    penguin.drain()
    table.file(3, path=lower)
    penguin.drain()
    assert table.ids() == [1, 2, 3]


def test_a_cold_start_does_not_look_into_old_folders(table):
    looked: list[str] = []

    class Noting(Store):
        def in_order(self, prefix="", *, after="", guide=None):
            looked.append(prefix)
            yield from super().in_order(prefix, after=after, guide=guide)

    table.store = Noting(table.store.uri, table.store.options)
    for ago in (30, 1, 0):
        table.file(ago, folder=f"{date_folder(ago)}/hour=23")
    table.penguin(partition_filter=days(2)).drain()
    assert table.ids() == [0, 1]
    assert date_folder(30) not in looked
    assert date_folder(1) in looked


def test_a_folder_that_comes_round_is_read_once(table):
    """HOLES D12: `month=%m` names the same folder again, and none twice in one window."""
    table.file(1, folder="month=01")
    table.file(2, folder="month=12")
    penguin = table.penguin(partition_filter=days(7, "month=%m")).drain()
    assert table.ids() == [1, 2]
    table.file(3, folder="month=02")
    penguin.drain()
    assert table.ids() == [1, 2, 3]
    assert len(penguin.run.stopped) == 0


def test_the_sweep_horizon_bounds_sweeps_and_never_hides_what_is_newer(table):
    options = {"sweep_horizon": days(3)}
    table.file(1, folder=date_folder(0))
    table.penguin(**options).drain()
    table.file(2, folder=date_folder(4))
    table.file(3, folder=date_folder(2))
    table.penguin(**options).drain()
    assert table.ids() == [1, 3]
    table.hands.at += 20 * 24 * HOUR
    table.file(4, folder=date_folder(-1))
    table.penguin(**options).drain()
    assert table.ids() == [1, 3, 4]
    table.penguin().drain()
    assert table.ids() == [1, 2, 3, 4]


# ------------------------------------------------------------------------------ what was removed


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


def test_files_stay_out_when_even_their_tombstones_are_forgotten(table):
    """HOLES D09, D11: the transactions never expire, and a late meta is only deleted."""
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
    table.meta(paths[0])
    table.penguin().drain()
    assert table.ids() == [0, 1, 2, 9]
    assert table.metas() == []


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
    foreign = add_by_another_engine(table, 2)
    remove_by_another_engine(table, foreign)
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
    foreign = add_by_another_engine(table, 2)
    remove_by_another_engine(table, foreign, at=1)
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
    foreign = add_by_another_engine(table, 2)
    remove_by_another_engine(table, foreign)
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
    (said,) = penguin.told(FilesLeftOut)
    assert said.code == "file_too_old"


def test_beside_such_checkpoints_removals_are_known_by_their_versions(table):
    """HOLES D09: the version that added the file is gone, the one that removed it is there."""
    table.file(1)
    table.penguin().drain()
    foreign = add_by_another_engine(table, 2)
    remove_by_another_engine(table, foreign)
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


# ------------------------------------------------------------------------------ trouble


def test_a_corrupt_file_next_to_good_ones(table):
    """HOLES L09: it is named, the good ones go in, and it does once it is whole."""
    path = table.path(age=5)
    (table.root / DAY).mkdir()
    (table.root / path).write_bytes(b"PAR1 half of an upload")
    table.file(1)
    penguin = table.penguin().drain()
    table.hands.at += 10
    table.file(2)
    penguin.drain()
    assert table.ids() == [1, 2]
    (said,) = penguin.told(FilesLeftOut)
    assert said.paths == (path,)
    table.file(3, path=path)
    penguin.drain()
    assert table.ids() == [1, 2, 3]


def test_a_file_that_is_replaced_between_the_listing_and_the_look_waits_for_the_next(table):
    """HOLES D17: the footer is read of the very object that was listed."""
    path = table.file(1)

    class Replacing(Store):
        turns = 1

        def part(self, path, start, end, *, etag):
            if self.turns:
                self.turns = 0
                table.file(2, path=path)
            return super().part(path, start, end, etag=etag)

    penguin = Visitor(table, store=Replacing(str(table.root), table.store.options))
    assert not penguin.run.step()
    assert (table.ids(), penguin.told(FilesLeftOut)) == ([], [])
    penguin.drain()
    assert (table.ids(), bounds(table)) == ([2], {path: (2, 2)})


def test_a_file_that_is_replaced_between_the_look_and_the_commit_is_looked_at_again(
    table, monkeypatch
):
    """HOLES D17: a commit failed, and what its footer said is not true any more."""
    path = table.file(1)
    penguin = table.penguin()

    def away(*_given, **_named):
        raise CommitFailed("the store is away")

    with monkeypatch.context() as patched:
        patched.setattr(Log, "create", away)
        with pytest.raises(CommitFailed):
            penguin.run.step()
    table.file(2, path=path)
    penguin.drain()
    assert table.ids() == []
    for _ in range(2):
        penguin.drain()
    assert (table.ids(), bounds(table)) == ([2], {path: (2, 2)})


def test_a_listing_that_breaks_off_moves_nothing(table):
    """HOLES L10"""
    broken = [False]

    class Breaking(Store):
        def in_order(self, prefix="", *, after="", guide=None):
            listed = super().in_order(prefix, after=after, guide=guide)
            for number, facts in enumerate(listed):
                if broken[0] and number:
                    raise StoreUnavailable("gone")
                yield facts

    table.store = Breaking(table.store.uri, table.store.options)
    penguin = table.penguin()
    table.file(1)
    penguin.drain()
    broken[0] = True
    for number in (2, 3, 4):
        table.file(number)
    with pytest.raises(StoreUnavailable):
        penguin.drain()
    broken[0] = False
    penguin.drain()
    assert table.ids() == [1, 2, 3, 4]


def test_more_files_than_a_commit_holds_take_several(table):
    for number in range(7):
        table.file(number, folder=date_folder(number % 3))
    penguin = table.penguin(max_files_per_commit=3).drain()
    assert table.ids() == list(range(7))
    assert penguin.run.totals.commits == 3


@pytest.mark.parametrize("other", [True, False])
def test_two_scanners_at_once(table, other, monkeypatch):
    """HOLES D08: of two that saw different files, one looks again."""
    table.file(0)
    table.penguin().drain()
    table.file(1)
    commit = Table.commit
    turns = [True]

    def overtaken(self, *given, **named):
        if turns:
            turns.clear()
            if other:
                table.file(2)
            table.penguin().drain()
        commit(self, *given, **named)

    monkeypatch.setattr(Table, "commit", overtaken)
    table.penguin().drain()
    assert table.ids() == ([0, 1, 2] if other else [0, 1])
    assert len(added(table)) == len(set(added(table)))


def test_a_commit_of_other_files_is_not_taken_for_ours(table, monkeypatch):
    """HOLES D08: both count on by one, and hold different files."""
    table.file(0)
    table.penguin().drain()
    table.file(1)
    commit = Table.commit
    turns = [True]

    def overtaken(self, *given, **named):
        if turns:
            turns.clear()
            table.meta(table.file(2))
            table.penguin(discovery=DiscoverBy.STAGING).drain()
        commit(self, *given, **named)

    monkeypatch.setattr(Table, "commit", overtaken)
    penguin = table.penguin().drain()
    assert table.ids() == [0, 1, 2]
    assert penguin.told(CommittedByOther) == []
    assert len(penguin.told(PlanSuperseded)) == 1


def test_two_scanners_that_create_the_table(table, monkeypatch):
    """HOLES W12, D08"""
    table.file(0)
    create = Log.create
    turns = [True]

    def overtaken(self, *given, **named):
        if turns:
            turns.clear()
            table.penguin().drain()
        create(self, *given, **named)

    monkeypatch.setattr(Log, "create", overtaken)
    table.penguin().drain()
    assert table.ids() == [0]
    assert len(added(table)) == 1


# ------------------------------------------------------------------------------ blizzard's files


def marked(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)}).replace_schema_metadata({"blizzard.journal": "j"})


def test_a_lost_folder_of_blizzard_does_not_turn_orphans_into_data(table):
    """No scan commits a file with blizzard's mark."""
    orphan = table.file(data=marked(7))
    table.file(1)
    penguin = table.penguin(discovery=DiscoverBy.WATERMARK).drain()
    assert table.ids() == [1]
    (said,) = penguin.told(FilesUnnamed)
    assert said.some == (orphan,)


def test_the_directory_is_listed_before_the_protocol_is_read(table):
    """Files of a blizzard that starts right now are not taken for another program's."""

    class Starting(Store):
        def in_order(self, prefix="", *, after="", guide=None):
            found = list(super().in_order(prefix, after=after, guide=guide))
            if prefix == "":
                self.create(protocol(1), encode(Protocol(handoff=Handoff.JOURNAL)))
            yield from found

    table.store = Starting(table.store.uri, table.store.options)
    table.file(1)
    table.penguin().drain()
    assert table.ids() == []


def test_in_the_direct_hand_off_files_of_others_are_committed_beside_the_entries(tmp_path):
    both = TableDirectory(tmp_path / "both", handoff=Handoff.DIRECT)
    others = Directory(tmp_path / "both")
    both.journal().batch(rows_of(1))
    others.file(folder="date=2026-01-01", data=pa.table({"id": [2], "name": ["x"]}))
    penguin = Penguin(both).drain()
    assert both.ids() == [1, 2]
    assert penguin.run.totals.commits == 1
    Penguin(both).drain()
    assert both.versions() == 2


@pytest.mark.parametrize("wish", [DiscoverBy.JOURNAL, DiscoverBy.STAGING])
def test_a_setting_that_does_not_scan_does_not_scan(table, wish):
    table.file(1)
    table.penguin(discovery=wish).drain()
    assert table.ids() == []


# ------------------------------------------------------------------------------ helpers


def added(table: Directory) -> list[str]:
    return [
        json.loads(line)["add"]["path"]
        for path in (table.root / "_delta_log").glob("*.json")
        for line in path.read_text().splitlines()
        if "add" in json.loads(line)
    ]


def add_by_another_engine(table: Directory, number: int) -> str:
    path = table.file(number)
    delta = table.delta()
    size = (table.root / path).stat().st_size
    add = AddAction(path, size, {"date": "2024-01-01"}, 0, True, "{}")
    delta.create_write_transaction([add], "append", delta.schema(), partition_by=["date"])
    return path


def remove_by_another_engine(table: Directory, path: str, *, at: int | None = None) -> None:
    delta = table.delta()
    now = time.time_ns() // 1_000_000
    remove = RemoveAction(path, data_change=True, deletion_timestamp=now if at is None else at)
    delta.create_write_transaction([remove], "append", delta.schema(), partition_by=["date"])


def bounds(table: Directory) -> dict[str, tuple[int, int]]:
    """Give the least and the greatest id of each file, as the log says."""
    found = {}
    for version in (table.root / "_delta_log").glob("*.json"):
        for line in version.read_text().splitlines():
            if add := json.loads(line).get("add"):
                told = json.loads(add["stats"])
                found[add["path"]] = (told["minValues"]["id"], told["maxValues"]["id"])
    return found


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
