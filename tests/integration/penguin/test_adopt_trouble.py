"""What keeps a folder from being adopted is said by name, and nothing is done."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penguin.model.settings import FolderUnfit
from tests.support.adoptions import ParquetFolder, in_the_way
from tests.support.foreign import Directory
from tests.support.readers import ids, polars_ids
from tests.support.tables import MARKS, Penguin, TableDirectory, rows_of


@pytest.fixture
def folder(tmp_path: Path) -> ParquetFolder:
    """Return a folder with two good files."""
    folder = ParquetFolder(tmp_path / "table")
    folder.file("a.parquet", [1])
    folder.file("b.parquet", [2])
    return folder


def refused(folder: ParquetFolder, **wanted: Any) -> dict[str, str]:
    """Return what is in the way of an adoption, which therefore does nothing."""
    found = folder.adopt(**wanted)
    assert found.version is None
    assert not (folder.root / "_delta_log").exists()
    return in_the_way(found)


def test_files_that_cannot_be_read_are_named_and_left_out_only_if_asked_for(folder):
    whole = (folder.root / "a.parquet").read_bytes()
    folder.junk("cut.parquet", whole[:-5])
    folder.junk("empty.parquet", b"")
    folder.junk("junk.parquet")
    folder.junk("notes.txt")
    names = {"cut.parquet", "empty.parquet", "junk.parquet"}
    expected = dict.fromkeys(names, "file_unfit") | {"notes.txt": "not_parquet"}
    assert refused(folder) == expected
    found = folder.adopt(skip_unreadable=True)
    assert {one.path: one.code for one in found.skipped} == expected
    assert ids(folder.root) == polars_ids(folder.root) == [1, 2]


def test_hidden_names_are_said_and_hold_no_data(folder):
    for name in ("_SUCCESS", ".a.parquet.crc", "_temporary/0/part.parquet", "_metadata"):
        folder.junk(name)
    found = folder.adopt()
    assert set(found.hidden) == {"_SUCCESS", ".a.parquet.crc", "_temporary/", "_metadata"}
    assert ids(folder.root) == [1, 2]


def test_a_file_without_rows_is_said_and_adopted(folder):
    folder.file("none.parquet", [])
    found = folder.adopt()
    assert found.totals.empty_files == ("none.parquet",)
    assert ids(folder.root) == polars_ids(folder.root, None) == [1, 2]
    Directory(folder.root).penguin(file_pattern="*.parquet").drain()
    assert len(list((folder.root / "_delta_log").glob("*.json"))) == 1


def test_the_few_files_that_contradict_the_others_are_named_with_both_types(folder):
    folder.file("0.parquet", pa.table({"id": ["x"], "name": ["n"]}))
    found = folder.adopt()
    (trouble,) = found.troubles
    assert (trouble.path, trouble.code) == ("0.parquet", "schema_refused")
    assert "id: the table has type long, the files have type string" in trouble.reason
    assert "write the file again" in trouble.reason
    assert refused(folder, skip_unreadable=True) == {"0.parquet": "schema_refused"}


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (pa.table({"id": pa.array([1], pa.uint32())}), "id: type uint32"),
        (pa.table({"id": pa.array([1], pa.time64("us"))}), "id: type time64"),
        (pa.table({"id": pa.array([1], pa.timestamp("ns"))}), "id: type timestamp[ns]"),
        (pa.table({"id": pa.array([1], pa.date64())}), "id: type date64"),
        (pa.table({"id": [1], "ID": [2]}), "columns id and ID differ only in case"),
        (pa.table({"id": [1], "a b": [2]}), "a b: a column's name must not contain"),
    ],
)
def test_columns_that_no_table_can_hold_are_named(tmp_path, data, named):
    folder = ParquetFolder(tmp_path / "table")
    folder.file("a.parquet", data)
    (trouble,) = folder.adopt().troubles
    assert (trouble.path, trouble.code) == ("a.parquet", "schema_refused")
    assert named in trouble.reason


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("c.parquet", "it has partition values for nothing"),
        ("date=2024-01-01/region=x/c.parquet", "it has partition values for date, region"),
        ("date=yesterday/c.parquet", "its value of partition column date"),
        ("date=%ff/c.parquet", "is not UTF-8"),
        ("date=2024-01-01/c:1.parquet", "has a colon"),
    ],
)
def test_a_file_in_a_wrong_folder_is_named(tmp_path, path, why):
    folder = ParquetFolder(tmp_path / "table")
    for day in (1, 2):
        folder.file(f"date=2024-01-0{day}/a.parquet", [day])
    folder.file(path, [3])
    (trouble,) = folder.adopt(partition_types={"date": "date"}).troubles
    assert (trouble.path, trouble.code) == (path, "file_unfit")
    assert why in trouble.reason


def test_a_file_of_blizzard_is_named(folder):
    data = pa.table({"id": [3], "name": ["n"]}).replace_schema_metadata(MARKS)
    folder.file("c.parquet", data)
    assert refused(folder, skip_unreadable=True) == {"c.parquet": "file_of_blizzard"}


@pytest.mark.parametrize("name", ["sub", "c.parquet"])
def test_links_are_named_and_nothing_is_in_the_table_twice(folder, name):
    target = folder.root if name == "sub" else folder.root / "a.parquet"
    (folder.root / name).symlink_to(target)
    shown = "sub/" if name == "sub" else name
    assert refused(folder) == {shown: "name_unusable"}
    folder.adopt(skip_unreadable=True)
    assert ids(folder.root) == [1, 2]


def test_a_folder_that_must_not_be_read_is_named(folder):
    closed = folder.root / "closed"
    closed.mkdir()
    closed.chmod(0)
    try:
        if os.access(closed, os.R_OK):  # As root nothing is closed.
            assert folder.look().troubles == ()
        else:
            assert in_the_way(folder.look()) == {"closed/": "store_denied"}
    finally:
        closed.chmod(0o700)


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("sub/_delta_log/00000000000000000000.json", "a Delta table"),
        ("sub/metadata/v1.metadata.json", "an Iceberg table"),
        ("metadata/00000-x.metadata.json", "an Iceberg table"),
        (".hoodie/hoodie.properties", "a Hudi table"),
        ("_blizzard/protocol/1.json", "blizzard writes to this folder"),
    ],
)
def test_a_folder_of_another_table_is_refused(folder, inside, said):
    folder.junk(inside)
    with pytest.raises(FolderUnfit, match=said):
        folder.adopt(skip_unreadable=True)


def test_a_table_is_refused_with_what_to_do(tmp_path):
    table = TableDirectory(tmp_path / "table")
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    with pytest.raises(FolderUnfit, match="is a Delta table already; to commit more files"):
        ParquetFolder(table.root).adopt()


def test_a_folder_that_was_adopted_says_so_and_stays_as_it_is(folder):
    folder.adopt()
    folder.file("late.parquet", [3])
    found = folder.adopt()
    assert (found.before, found.version, found.totals.files) == (True, 0, 2)
    assert ids(folder.root) == [1, 2]


def test_a_folder_without_a_parquet_file_is_refused(tmp_path):
    folder = ParquetFolder(tmp_path / "table")
    with pytest.raises(FolderUnfit, match="no Parquet file"):
        folder.adopt()
    folder.junk("data.ndjson")
    for skips in (False, True):
        with pytest.raises(FolderUnfit, match="no Parquet file"):
            folder.adopt(skip_unreadable=skips)


def test_what_is_left_out_is_not_forgotten(folder):
    """A penguin that scans the folder names the damaged file from then on."""
    folder.junk("junk.parquet")
    folder.adopt(skip_unreadable=True)
    run = Directory(folder.root).penguin(file_pattern="*.parquet").drain().run
    assert ids(folder.root) == [1, 2]
    assert run.totals.commits == 0
