"""`penguin adopt` as it is typed: what it prints, what it asks for, how it exits."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner, Result

from penguin.cli.app import app
from tests.support.adoptions import ParquetFolder
from tests.support.readers import ids

KEYS = [
    *("table_uri", "done", "before", "version", "files", "rows", "bytes", "columns"),
    *("partition_columns", "empty_files", "hidden", "skipped", "refused"),
    "checkpoint_error",
]


@pytest.fixture
def folder(tmp_path: Path) -> ParquetFolder:
    """Return a folder with a file for each of two days."""
    folder = ParquetFolder(tmp_path / "table")
    folder.file("date=2024-01-01/a.parquet", [1])
    folder.file("date=2024-01-02/b.parquet", [2])
    return folder


def penguin(*words: object) -> Result:
    env = {"COLUMNS": "80", "NO_COLOR": "1"}
    return CliRunner().invoke(app, ["adopt", *map(str, words)], env=env)


def answer(result: Result) -> dict[str, Any]:
    (line,) = result.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_without_yes_it_shows_what_would_be_done(folder):
    done = penguin(folder.root)
    assert done.exit_code == 1
    assert "would become a Delta table: 2 files, 2 rows" in done.stdout
    assert "columns: id long, name string" in done.stdout
    assert "partitions: date string" in done.stdout
    assert done.stderr == "add --yes to do it\n"
    assert not (folder.root / "_delta_log").exists()


def test_with_yes_it_is_done_and_done_again_it_says_so(folder):
    done = penguin(folder.root, "--partition-by", "date:date", "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "is a Delta table now, in version 0: 2 files, 2 rows" in done.stdout
    assert ids(folder.root, "date = '2024-01-02'") == [2]
    again = penguin(folder.root, "--yes")
    assert again.exit_code == 0
    assert "adopted before, in version 0: 2 files, 2 rows" in again.stdout


def test_its_json_keeps_its_keys(folder):
    folder.junk("junk.parquet")
    folder.junk("_SUCCESS")
    refused = penguin(folder.root, "--output", "json", "--yes")
    found = answer(refused)
    assert refused.exit_code == 1
    assert list(found) == KEYS
    assert [*found["refused"][0]] == ["file", "code", "reason"]
    assert (found["done"], found["refused"][0]["file"]) == (False, "junk.parquet")
    done = penguin(
        folder.root, "--output", "json", "--yes", "--skip-unreadable", "--partition-by", "date:date"
    )
    found = answer(done)
    assert done.exit_code == 0
    assert (found["done"], found["version"], found["files"]) == (True, 0, 2)
    assert found["partition_columns"] == {"date": "date"}
    assert found["hidden"] == ["_SUCCESS"]
    assert found["skipped"][0]["file"] == "junk.parquet"
    assert done.stderr == ""


def test_what_is_in_the_way_is_printed_by_name(folder):
    folder.junk("date=2024-01-02/junk.parquet")
    done = penguin(folder.root, "--yes")
    assert done.exit_code == 1
    assert "not adopted: 1 file blocks it, 2 could be adopted" in done.stdout
    why = "1 file is in the way: the file does not end like a Parquet file [file_unfit]:"
    assert f"  {why}\n    date=2024-01-02/junk.parquet\n" in done.stdout


def test_files_with_the_same_reason_are_named_together(folder):
    for name in ("a", "b", "c"):
        folder.junk(f"date=2024-01-02/{name}.txt")
    done = penguin(folder.root)
    assert "not adopted: 3 files block it" in done.stdout
    assert done.stdout.count("its name does not end in .parquet") == 1
    assert "  3 files are in the way: its name" in done.stdout


def test_a_file_in_place_of_a_folder_is_refused_with_its_folder(folder):
    path = folder.root / folder.file("one.parquet", [3])
    done = penguin(path)
    assert done.exit_code == 2
    assert f"{path} is a file; adopt its folder, {folder.root}" in done.stderr


def reasons(folder: ParquetFolder, *words: object) -> dict[str, str]:
    found = answer(penguin(folder.root, "--output", "json", *words))
    return {one["file"]: one["reason"] for one in found["refused"]}


def test_a_folder_without_a_value_is_in_the_way(folder):
    """Some programs read it as null, others as an empty text."""
    path = folder.file("date=/c.parquet", [3])
    found = reasons(folder)
    assert "its folder date= has no value" in found.pop(path)
    assert "date=__HIVE_DEFAULT_PARTITION__" in reasons(folder)[path]
    assert found == {}


def test_a_link_to_a_file_is_not_called_a_folder(folder):
    (folder.root / "z.parquet").symlink_to(folder.root / "date=2024-01-01/a.parquet")
    (folder.root / "linked").symlink_to(folder.root / "date=2024-01-01")
    found = reasons(folder)
    assert found["z.parquet"].startswith("it is a link to another file")
    assert found["linked/"].startswith("it is a link to a folder")


def test_files_of_nothing_but_partition_columns_need_one_with_more(tmp_path):
    folder = ParquetFolder(tmp_path / "table")
    for name in ("a", "b"):
        folder.file(f"c=1/{name}.parquet", pa.table({"c": [1]}))
    alone = reasons(folder)
    assert len(alone) == 2
    assert "a table needs another one" in alone["c=1/a.parquet"]
    assert "the type that the others have" not in alone["c=1/a.parquet"]
    folder.file("c=1/d.parquet", pa.table({"c": [1], "x": [7]}))
    done = penguin(folder.root, "--yes", "--output", "json")
    assert (answer(done)["files"], answer(done)["rows"]) == (3, 3)
    rows = DeltaTable(str(folder.root)).to_pyarrow_table().to_pylist()
    assert sorted(map(str, (row["x"] for row in rows))) == ["7", "None", "None"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [("date", "not a date of the form YYYY-MM-DD"), ("long", "'2024-1-1' is not of type int64")],
)
def test_a_value_of_another_type_says_what_is_expected(tmp_path, kind, said):
    folder = ParquetFolder(tmp_path / "table")
    path = folder.file("p=2024-1-1/a.parquet", [1])
    assert said in reasons(folder, "--partition-by", f"p:{kind}")[path]


def test_the_configuration_gives_properties_and_partitions(folder, tmp_path):
    file = tmp_path / "penguin.yaml"
    file.write_text(
        f"""
tables:
  events:
    table_uri: {folder.root}
    partition_by: {{prefix_template: "date=%Y-%m-%d"}}
    table_properties: {{delta.logRetentionDuration: "interval 60 days"}}
"""
    )
    done = penguin(folder.root, "--yes", "-c", file, "--output", "json")
    assert answer(done)["partition_columns"] == {"date": "date"}
    version = (folder.root / "_delta_log/00000000000000000000.json").read_text()
    assert '"delta.logRetentionDuration":"interval 60 days"' in version
    other = penguin(tmp_path, "-c", file)
    assert other.exit_code == 2
    assert "no table of the configuration has the table_uri" in other.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--partition-by", "date:timestamp"], "date cannot be of type timestamp"),
        (["--partition-by", "date:,x"], "'date:' is not of the form column or column:type"),
        (["--partition-by", "date,date"], "column date appears twice"),
    ],
)
def test_a_wrong_option_is_explained(folder, words, said):
    done = penguin(folder.root, *words)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_folder_that_is_not_there_or_not_fit_is_explained(folder, tmp_path):
    gone = penguin(tmp_path / "gone", "--yes")
    assert gone.exit_code == 2
    assert "there is no folder" in gone.stderr
    assert penguin("s4://bucket/x").exit_code == 2
    folder.junk(".hoodie/hoodie.properties")
    unfit = penguin(folder.root, "--yes")
    assert unfit.exit_code == 1
    assert "a Hudi table" in unfit.stderr
