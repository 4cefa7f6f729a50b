"""Metas that another program writes: five keys beside a complete Parquet file."""

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.layout import log_version
from lakebed.types import DiscoverBy, Evolution, Handoff
from penguin.delta.table import Log
from penguin.events.backlog import FilesLeftOut, MetasSkipped
from tests.support.foreign import DAY, Directory, Visitor
from tests.support.handoffs import ring
from tests.support.penguin_commands import penguin as run_penguin
from tests.support.readers import added
from tests.support.removals import add
from tests.support.tables import Penguin, TableDirectory, before_commit, log_of, losing, rows_of


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "table")


def stage(table: Directory, *ids: int, **options) -> str:
    path = table.file(*ids, **options)
    table.meta(path)
    return path


def staged(table: Directory, log=Log, **options):
    """Look at metas alone, not into the folders."""
    return Visitor(table, {"discovery": DiscoverBy.STAGING, **options}, log=log)


@pytest.mark.parametrize("wish", [DiscoverBy.STAGING, DiscoverBy.AUTO])
def test_a_file_with_a_meta_is_committed_once_and_the_meta_goes(table, wish):
    """Also without a setting, where blizzard does not write; bounds come from the footer."""
    path = stage(table, data=pa.table({"id": [3, 1, 2], "name": ["b", None, "a"]}))
    penguin = table.penguin(discovery=wish).drain()
    assert table.ids() == [1, 2, 3]
    assert table.metas() == []
    assert table.delta().transaction_version(f"penguin/{Path(path).stem}") == 1
    assert table.rows()[0]["date"] == "2024-01-01"
    assert (penguin.run.totals.commits, penguin.run.totals.rows) == (1, 3)
    told = table.commits()[-1]["penguin"]["others"]
    assert told == {"files": 1, "scan": 1}
    lines = (table.root / log_version(1)).read_text().splitlines()
    (action,) = (found["add"] for line in lines if "add" in (found := json.loads(line)))
    assert action["path"] == path
    assert json.loads(action["stats"]) == {
        "numRecords": 3,
        "minValues": {"id": 1, "name": "a"},
        "maxValues": {"id": 3, "name": "b"},
        "nullCount": {"id": 0, "name": 1},
    }


def test_many_files_share_a_commit_up_to_the_limit(table):
    for number in range(5):
        stage(table, number, folder=f"date=2024-01-0{number + 1}")
    penguin = staged(table, max_files_per_commit=3).drain()
    assert table.ids() == [0, 1, 2, 3, 4]
    assert penguin.run.totals.commits == 2
    assert table.metas() == []


def test_a_meta_of_a_file_that_was_committed_before_is_only_deleted(table):
    """HOLES D09, D11, D14: the transaction stays when the file is compacted, deleted, restored."""
    first, second = stage(table, 1), stage(table, 2)
    staged(table).drain()
    table.delta().optimize.compact()
    table.meta(first)
    staged(table).drain()
    table.delta().vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert not (table.root / first).exists()
    for path in (first, second):
        table.meta(path, size=500, record_count=1)
    version = table.delta().version()
    staged(table).drain()
    assert (table.metas(), table.delta().version()) == ([], version)
    assert table.ids() == [1, 2]
    table.delta().restore(0)
    table.meta(first)
    staged(table).drain()
    assert (table.metas(), table.ids()) == ([], [])


def test_a_meta_for_a_file_that_another_engine_committed_is_only_deleted(table):
    stage(table, 1)
    staged(table).drain()
    path = table.file(2)
    add(table, path)
    version = table.delta().version()
    table.meta(path)
    staged(table).drain()
    assert table.delta().version() == version
    assert table.metas() == []
    assert table.ids() == [1, 2]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"size": 5}, "bytes, but its meta says 5"),
        ({"record_count": 7}, "it has 2 rows, but its meta says 7"),
        ({"partition_values": {"date": "2024-01-02"}}, "its meta says date=2024-01-02"),
        ({"partition_values": {}}, None),
        ({"partition_values": {"date": "2024-01-01", "region": "eu"}}, "partition values for"),
    ],
)
def test_a_file_that_is_not_what_its_meta_says_is_left_out_and_named(table, change, why):
    """HOLES L09: the good ones go on."""
    stage(table, 1)
    staged(table).drain()
    bad = table.file(8, 9)
    table.meta(bad, **change)
    stage(table, 2)
    penguin = staged(table).drain()
    if why is None:  # The folder says it, too.
        assert table.ids() == [1, 2, 8, 9]
        return
    assert table.ids() == [1, 2]
    (said,) = penguin.told(FilesLeftOut)
    assert why in said.reason
    assert said.paths == (bad,)
    assert len(table.metas()) == 1
    # It is told once, and goes in when it is mended.
    penguin.drain()
    assert len(penguin.told(FilesLeftOut)) == 1
    table.meta(bad)
    staged(table).drain()
    assert table.ids() == [1, 2, 8, 9]


def test_a_meta_whose_file_is_not_there_waits_for_it(table):
    path = table.path()
    table.meta(path)
    stage(table, 1)
    penguin = staged(table).drain()
    assert table.ids() == [1]
    (said,) = penguin.told(FilesLeftOut)
    assert (said.code, said.paths) == ("file_missing", (path,))
    table.file(2, path=path)
    table.meta(path)
    staged(table).drain()
    assert table.ids() == [1, 2]
    assert table.metas() == []


def test_a_truncated_file_is_never_committed(table):
    """HOLES L09"""
    path = table.file(*range(3000), compression="none", use_dictionary=False)
    whole = (table.root / path).read_bytes()
    (table.root / path).write_bytes(whole[:-100])
    table.meta(path, record_count=3000)
    stage(table, -1)
    penguin = staged(table).drain()
    assert table.ids() == [-1]
    (said,) = penguin.told(FilesLeftOut)
    assert said.code == "file_unfit"


def test_a_meta_that_names_no_data_file_of_this_table_is_left_alone(table):
    names = "../0.parquet", "/1.parquet", "_delta_log/2.parquet", "a//3.parquet", "date=1/x.parquet"
    for number, name in enumerate(names):
        table.meta(f"{DAY}/{number}.parquet", filename=name)
    penguin = staged(table).drain()
    reasons = [said.reason for said in penguin.told(MetasSkipped)]
    assert all(any(name in reason for reason in reasons) for name in names)
    assert len(table.metas()) == len(names)
    assert table.ids() == []


def test_a_file_with_the_mark_of_blizzard_is_not_committed_by_a_bare_meta(table):
    marked = pa.table({"id": [1]}).replace_schema_metadata({"blizzard.journal": "j"})
    stage(table, data=marked)
    penguin = staged(table).drain()
    assert table.ids() == []
    (said,) = penguin.told(FilesLeftOut)
    assert said.code == "file_of_blizzard"


def test_new_columns_are_added_and_what_does_not_fit_is_left_out(table):
    """HOLES W07: every file's schema is checked."""
    stage(table, 1)
    stage(table, data=pa.table({"id": [2], "name": ["x"]}))
    stage(table, data=pa.table({"id": ["three"]}))
    stage(table, data=pa.table({"id": pa.array([4], pa.timestamp("ns"))}))
    stage(table, 5)
    penguin = staged(table).drain()
    assert table.ids() == [1, 2, 5]
    assert {row["id"]: row["name"] for row in table.rows()} == {1: None, 2: "x", 5: None}
    assert {said.code for said in penguin.told(FilesLeftOut)} == {"schema_refused"}
    assert len(table.metas()) == 2


def test_strict_refuses_a_new_column_and_a_change_of_the_table_lets_the_file_in(table):
    stage(table, 1)
    staged(table, evolution=Evolution.STRICT).drain()
    stage(table, data=pa.table({"id": [2], "name": ["x"]}))
    strict = staged(table, evolution=Evolution.STRICT).drain()
    assert table.ids() == [1]
    (said,) = strict.told(FilesLeftOut)
    assert "strict accepts no difference" in said.reason
    staged(table).drain()
    assert table.ids() == [1, 2]


def test_files_that_do_not_fit_never_block_those_that_do(table):
    stage(table, 0)
    staged(table).drain()
    for number in range(4):
        stage(table, data=pa.table({"id": [f"{number}"]}))
    stage(table, 1)
    staged(table, max_files_per_commit=2).drain()
    assert table.ids() == [0, 1]


def test_entries_of_blizzard_and_files_of_others_share_a_commit(tmp_path):
    both = TableDirectory(tmp_path / "both", handoff=Handoff.STAGING)
    others = Directory(tmp_path / "both")
    ring(both, both.journal().batch(rows_of(1)))
    path = others.file(folder="date=2026-01-01", data=pa.table({"id": [2], "name": ["x"]}))
    others.meta(path)
    penguin = Penguin(both).drain()
    assert both.ids() == [1, 2]
    assert penguin.run.totals.commits == 1
    assert others.metas() == []


def test_a_table_that_is_handed_off_by_its_journal_leaves_metas_of_others_alone(tmp_path):
    table = TableDirectory(tmp_path / "both")
    others = Directory(tmp_path / "both")
    table.journal().batch(rows_of(1))
    path = others.file(folder="date=2026-01-01", data=pa.table({"id": [2], "name": ["x"]}))
    others.meta(path)
    penguin = Penguin(table).drain()
    assert table.ids() == [1]
    (said,) = [event for event in penguin.events if isinstance(event, MetasSkipped)]
    assert "handed off by its journal" in said.reason


def test_a_lost_answer_of_the_commit_is_one_commit(table):
    """HOLES D06"""
    stage(table, 1)
    penguin = staged(table, log=log_of(losing())).drain()
    assert (table.ids(), table.metas(), penguin.run.totals.commits) == ([1], [], 1)


@pytest.mark.parametrize("same", [True, False])
def test_two_penguins_on_the_same_and_on_different_metas(table, same):
    """HOLES D08: whoever comes second looks again; each file is added once."""
    stage(table, 0)
    staged(table).drain()
    stage(table, 1)

    def overtake():
        if not same:
            # The other penguin sees one file more, and commits both.
            stage(table, 2)
        staged(table).drain()

    staged(table, log=before_commit(overtake)).drain()
    assert table.ids() == ([0, 1] if same else [0, 1, 2])
    adds = added(table.root)
    assert len(adds) == len(set(adds))


# ------------------------------------------------------------------------------ mended metas


@pytest.mark.parametrize("wrong", [{"record_count": 7}, {"size": 3}, None])
def test_a_meta_that_is_written_again_is_read_again_by_a_penguin_that_runs(table, wrong):
    """HOLES W36: `file_unfit` says to write it again; a meta may also be read half written."""
    path = table.file(1)
    meta = table.meta(path, **(wrong or {}))
    if wrong is None:
        meta.write_text(meta.read_text()[:20])
    penguin = table.penguin(discovery=DiscoverBy.STAGING).drain()
    assert table.ids() == []
    table.meta(path)
    penguin.drain()
    assert (table.ids(), table.metas()) == ([1], [])


# ------------------------------------------------------------------------------ metas left alone


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (None, "cannot be read"),
        ({"filename": "_hid/{name}"}, "not the name of a data file"),
        ({"filename": "_delta_log/{name}"}, "not the name of a data file"),
        ({"size": 0}, "are impossible"),
    ],
)
def test_status_and_plan_name_a_meta_that_is_not_followed(table, changes, why):
    """HOLES W24: only the log did, and status said that all was well."""
    path = table.path()
    filled = {
        key: value.format(name=Path(path).name) if isinstance(value, str) else value
        for key, value in (changes or {}).items()
    }
    meta = table.meta(path, **filled)
    if changes is None:
        meta.write_text("{")
    good = table.file(2)
    run = partial(run_penguin, table.root, columns=300)
    name = f"_staging/pending/{meta.name}"
    status = run("status", "--output", "json")
    (told,) = json.loads(status.stdout)["others"]["left_out"]
    assert (told["file"], told["meta"], told["code"]) == (name, name, "meta_left_alone")
    assert why in told["reason"]
    assert status.exit_code == 1
    text = run("status")
    assert f"not committed: {name}: " in text.stdout
    assert why in text.stdout
    (planned,) = json.loads(run("plan", "--output", "json").stdout)["left_out"]
    assert planned == {key: told[key] for key in ("file", "code", "reason")}
    assert f"leave   {name}: " in run("plan").stdout
    visitor = table.penguin().drain()
    assert table.delta().get_add_actions().column("path").to_pylist() == [good]
    assert [one.paths for one in visitor.told(MetasSkipped)] == [(name,)]
    assert visitor.told(FilesLeftOut) == []
