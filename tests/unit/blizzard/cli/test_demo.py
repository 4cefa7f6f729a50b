"""What `blizzard demo` prints: a table that fits 80 columns, and lines to paste."""

import shlex
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.cli.demo import next_lines, prepare, table_lines
from lakebed.terminal.console import print_text
from tests.support.commands import WIDTH


def test_the_table_is_shown_whole_in_80_columns(tmp_path: Path, capsys, monkeypatch):
    at = datetime(2024, 1, 1, 14, 1, 34, 794772, tzinfo=UTC)
    row = {
        "id": 120_000,
        "user": "user-4999",
        "action": "search",
        "amount": 199.99,
        "member": False,
        "at": at,
        "date": date(2024, 1, 1),
    }
    write_deltalake(
        str(tmp_path / "table"),
        pa.Table.from_pylist([row, row | {"amount": None, "member": True}]),
        partition_by=["date"],
    )
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    print_text(table_lines(str(tmp_path / "table")))
    names, line, shown, other = capsys.readouterr().out.splitlines()[-4:]
    assert names.split() == [*row]
    assert shown.split() == [
        "120000", "user-4999", "search", "199.99", "false", "2024-01-01", "14:01:34", "2024-01-01",
    ]  # fmt: skip
    assert other.split()[3:5] == ["null", "true"], "as query engines print them, not as Python does"
    assert max(map(len, (names, line, shown, other))) <= WIDTH


def test_what_to_try_next_can_be_pasted(tmp_path: Path):
    lines = [str(line) for line in next_lines(tmp_path, tmp_path / "pipeline.yaml")]
    typed = [shlex.split(line, comments=True)[1:] for line in lines[2:]]
    file = str(tmp_path / "pipeline.yaml")
    assert typed == [["demo", "--dir", str(tmp_path)], ["-c", file, "--dry-run"], ["-c", file]]


@pytest.fixture
def never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_given: object, **_named: object) -> None:
        raise AssertionError("a program was run")

    monkeypatch.setattr("blizzard.cli.demo.subprocess.run", run)


@pytest.mark.usefixtures("never_run")
def test_a_folder_with_other_files_is_refused_and_left_as_it_is(tmp_path: Path):
    (tmp_path / "pipeline.yaml").write_text("source: {path: /data}\n")
    done = CliRunner().invoke(app, ["demo", "--dir", str(tmp_path)])
    assert done.exit_code == 2
    assert f"{tmp_path} has files that no demo wrote" in done.output
    assert [each.name for each in tmp_path.iterdir()] == ["pipeline.yaml"]


def test_the_folder_of_an_earlier_demo_is_taken(tmp_path: Path):
    config = tmp_path / "pipeline.yaml"
    prepare(tmp_path, config)
    config.write_text(config.read_text() + "# a remark\n")
    (tmp_path / "landing").mkdir()
    prepare(tmp_path, config)
    assert config.read_text().endswith("# a remark\n")


@pytest.mark.usefixtures("never_run")
def test_a_folder_that_cannot_be_made_is_an_error_in_words(tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    done = CliRunner().invoke(app, ["demo", "--dir", str(file)])
    assert (done.exit_code, done.output) == (1, f"error: cannot create {file}: File exists\n")
