"""`penguin status`, `plan` and `history` on other programs' files, as a user runs them."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.support.foreign import DAY, Directory
from tests.support.penguin_commands import penguin


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "table")


@pytest.fixture
def run(tmp_path):
    return partial(penguin, tmp_path / "table", late_window_secs=60)


def test_status_plan_and_history_tell_of_other_programs_files(table, run):
    first = table.file(1)
    said = json.loads(run("plan", "--output", "json").stdout)
    assert (said["others"], said["files"], said["rows"]) == (1, 1, 1)
    assert said["creates_table"]
    assert "commit  1 file of other programs" in run("plan").stdout

    table.penguin().drain()
    broken = f"{DAY}/018cc4e5-2200-7000-8000-0000000000ff.parquet"
    (table.root / broken).write_bytes(b"PAR1")
    table.file(2, age=-5)
    answer = run("status", "--output", "json")
    others = json.loads(answer.stdout)["others"]
    assert answer.exit_code == 1
    assert others["pending_files"] == 1
    assert others["watermarks"] == {DAY: first.rpartition("/")[2]}
    (left,) = others["left_out"]
    assert (left["file"], left["code"]) == (broken, "file_unfit")
    text = run("status").stdout
    assert "1 file of other programs is waiting" in text
    assert f"watermarks of 1 folder, the newest is {first}" in text
    assert "too few for a Parquet file [file_unfit]" in text
    assert f"leave   {broken}" in run("plan").stdout

    newest = json.loads(run("history", "1", "--output", "json").stdout)
    assert (newest["files_of_others"], newest["files_added"]) == (1, 1)
    assert "1 of others" in run("history", "1").stdout


def test_once_commits_them_and_says_so(table, run):
    table.meta(table.file(1))
    table.file(2, folder="date=2024-01-02")
    answer = run("--once", "--output", "json")
    assert answer.exit_code == 0
    told = json.loads(answer.stdout)
    assert (told["commits"], told["files"], told["rows"]) == (1, 2, 2)
    assert table.ids() == [1, 2]
    assert table.metas() == []
