"""`blizzard init`: from files to a configuration that runs as it is written."""

import gzip
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from deltalake import DeltaTable
from typer.testing import CliRunner, Result

from blizzard.cli import init
from blizzard.cli.app import app
from blizzard.cli.surroundings import Surroundings
from blizzard.config import load as blizzard_config
from blizzard.inspect import sample
from lakebed.clock import Clock
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.config import load as penguin_config
from tests.support.commands import WIDTH
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner, inside
from tests.support.tables import commit_table


def put(folder: Path, name: str, *records: Any) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = (each if isinstance(each, str) else json.dumps(each) for each in records)
    body = "".join(line + "\n" for line in lines).encode()
    file.write_bytes(gzip.compress(body) if name.endswith(".gz") else body)
    return file


def run(*arguments: object, **env: str) -> Result:
    done = CliRunner().invoke(
        app, ["init", *map(str, arguments)], env={"COLUMNS": str(WIDTH), "NO_COLOR": "1", **env}
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def ingested(file: Path) -> list[dict[str, Any]]:
    """Run both programs with a configuration as it is, and return the rows."""
    (settings,) = blizzard_config.load([file], [], {}).pipelines
    pipeline = pipeline_of(settings, InProcessRunner())
    while pipeline.step():
        pass
    (table,) = penguin_config.load([file], [], {}).tables
    commit_table(table, Store(table.table_uri, table.storage_options), lambda _: None, Clock())
    return sorted(DeltaTable(table.table_uri).to_pyarrow_table().to_pylist(), key=str)


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "in"


def test_what_is_written_runs_without_any_editing(there: Path, tmp_path: Path) -> None:
    """HOLES W34: nobody has to write a schema."""
    put(
        there,
        "a.ndjson",
        {"id": 1, "ts": 1_700_000_000_000, "t": "10/Oct/2000:13:55:36 -0700", "took": "0.5"},
        {
            "id": 2,
            "ts": 1_700_000_000_001,
            "t": "-",
            "took": "-",
            "user": {"a b": "x", "tags": [1]},
        },
    )
    put(there, "deep/b.jsonl.gz", {"id": 3, "Name": "x", "name": "y", "day": "2024-01-31"})
    file = tmp_path / "pipeline.yaml"
    done = run(there, "--output", file)
    assert done.exit_code == 0, done.output
    assert f"blizzard -c {file} --dry-run" in done.stdout
    first, second, third = ingested(file)
    assert first["ts"] == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert first["t"] == datetime(2000, 10, 10, 20, 55, 36, tzinfo=UTC)
    assert [first["took"], second["took"], second["t"]] == ["0.5", "-", None]
    assert second["user"] == {"a_b": "x", "tags": [1]}
    assert [third["Name"], third["name_2"], third["day"]] == ["x", "y", date(2024, 1, 31)]


def test_inline_needs_one_program_and_one_command(there: Path, tmp_path: Path) -> None:
    put(there, "a.ndjson", {"id": 1})
    file = tmp_path / "pipeline.yaml"
    done = run(there, "--output", file, "--inline")
    assert "penguin" not in done.output
    assert "--once       # read the files and commit\n" in done.output
    here = Surroundings(make_runner=inside)
    ran = CliRunner().invoke(app, ["-c", str(file), "--once"], obj=here)
    assert ran.exit_code == 0, ran.output
    rows = DeltaTable(yaml.safe_load(file.read_text())["sink"]["path"]).to_pyarrow_table()
    assert rows.to_pylist() == [{"id": 1}]


def test_one_file_means_that_file_and_a_folder_with_a_wild_name_that_folder(
    there: Path, tmp_path: Path
) -> None:
    put(there, "other.ndjson", {"id": 1})
    put(tmp_path / "weird", "a.log", {"id": 2})
    folder = put(tmp_path / "we[i]rd", "a.log", {"id": 7}).parent
    names = ("it.ndjson", "we[i]rd.ndjson", "plain.log")
    for number, place in enumerate([*(put(there, name, {"id": 7}) for name in names), folder]):
        file = tmp_path / f"{number}.yaml"
        assert run(place, "--output", file, "--table", tmp_path / f"{number}").exit_code == 0
        assert ingested(file) == [{"id": 7}]


def test_files_of_another_suffix_are_found_if_there_are_no_others(
    there: Path, tmp_path: Path
) -> None:
    put(there, "a/x.log", {"id": 1})
    put(there, "y.log", {"id": 2})
    put(there, "readme.md", "hello")
    file = tmp_path / "p.yaml"
    assert run(there, "--output", file).exit_code == 0
    assert yaml.safe_load(file.read_text())["source"] == {"path": f"{there}/**.log"}
    assert ingested(file) == [{"id": 1}, {"id": 2}]


def test_the_forms_of_files_are_written_down(there: Path, tmp_path: Path) -> None:
    put(there, "a.json", '{"Records": [{"id": 1},', '  {"id": 2}], "next": null}')
    file = tmp_path / "p.yaml"
    assert run(there, "--output", file).exit_code == 0
    text = file.read_text()
    assert ingested(file) == [{"id": 1}, {"id": 2}]
    assert yaml.safe_load(text)["source"] | {"path": ""} == {
        "path": "", "format": "json", "records": "Records",
    }  # fmt: skip
    assert "# Other members of a document are left out: next" in text
    put(there, "a.json", {"index": {"_id": "1"}}, {"id": 1})
    text = run(there, "--output", "-").stdout
    assert yaml.safe_load(text)["source"]["skip_records"] == {"only_key": ["index"]}
    assert yaml.safe_load(text)["schema"]["fields"] == [{"name": "id", "type": "int64"}]


def test_folders_that_look_like_partitions_are_partitions(there: Path, tmp_path: Path) -> None:
    put(there, "date=2024-01-01/region=eu/a.ndjson", {"id": 1, "region": "eu"})
    put(there, "date=2024-01-02/region=us/a.ndjson", {"id": 2})
    file = tmp_path / "p.yaml"
    run(there, "--output", file)
    assert '    prefix_template: "date=%Y-%m-%d/region=%s"' in file.read_text()
    assert [row["region"] for row in ingested(file)] == ["eu", "us"]


def test_columns_are_counted_as_they_are_written_and_bad_lines_are_quarantined(there: Path) -> None:
    put(there, "a.ndjson", {"id": 1, "user": {"a": 1, "b": 2}, "tags": [1], "none": None})
    done = run(there, "--output", "-")
    told = done.stderr.splitlines()
    assert told[0].startswith("3 columns, 2 of them nested, from 1 record (")
    assert told[1] == "1 field has no column yet: see the comments"
    assert told[2] == "next, once it is in a file:"
    assert "error_handling" not in yaml.safe_load(done.stdout)
    with (there / "a.ndjson").open("a") as to:
        to.write("broken\n")
    text = run(there, "--output", "-").stdout
    assert yaml.safe_load(text)["error_handling"] == {"on_bad_record": "quarantine"}


def test_a_file_that_is_there_is_never_replaced_unasked(there: Path, tmp_path: Path) -> None:
    """Nor one that was not there when the command began, and is when the lines are written."""
    put(there, "a.ndjson", {"id": 1})
    file = tmp_path / "p.yaml"
    file.write_text("mine")
    done = run(there, "--output", file)
    assert done.exit_code == 2
    assert "--force" in done.stderr
    with pytest.raises(typer.Exit) as ended:
        init._write(file, "source: {}\n", force=False)
    assert ended.value.exit_code == 2
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["p.yaml"]
    assert file.read_text() == "mine"
    assert run(there, "--output", file, "--force").exit_code == 0
    assert "source:" in file.read_text()
    left = {each.name for each in tmp_path.iterdir() if each.is_file()}
    assert left == {"p.yaml", "blizzard.schema.json"}


def test_a_place_without_files_is_an_error_and_writes_nothing(there: Path, tmp_path: Path) -> None:
    """HOLES W34: with the reason, and never with a trace."""
    file = tmp_path / "p.yaml"
    assert run(there, "--output", file).exit_code == 2
    there.mkdir()
    empty = run(there, "--output", file)
    assert (empty.exit_code, empty.stderr.count("\n")) == (1, 1)
    assert "the folder is empty" in empty.stderr
    put(there, "a.parquet", "x")
    assert (
        "no file name ends in .ndjson, .jsonl or .json; found a.parquet"
        in run(there, "--output", file).stderr
    )
    put(there, "b.ndjson")
    assert "all files there are empty" in run(there, "--output", file).stderr
    put(there, "c.ndjson", "hello")
    assert "no file here has JSON objects" in run(there, "--output", file).stderr
    assert not file.exists()


def test_files_that_cannot_be_read_are_named_and_the_others_count(
    there: Path, tmp_path: Path
) -> None:
    put(there, "a.ndjson", {"id": 1})
    whole = put(there, "b.ndjson.gz", *({"n": n} for n in range(1000)))
    whole.write_bytes(whole.read_bytes()[:-9])
    put(there, "c.ndjson", "hello")
    file = tmp_path / "p.yaml"
    done = run(there, "--output", file)
    assert done.exit_code == 0
    assert "b.ndjson.gz" in done.stderr
    assert "c.ndjson: line 1 is not JSON (expecting value at column 1)" in done.stderr
    assert "{name: id, type: int64}" in file.read_text()


def test_wrong_arguments_are_refused() -> None:
    for arguments, said in (
        (["ftp://x/y"], "must be a local path or start with one of"),
        (["in", "--table", "s3://"], "names no bucket"),
        (["in", "--sample", "0"], "Invalid value for '--sample'"),
        (["in", "--sample", "x"], "Invalid value for '--sample'"),
        ([], "Missing argument"),
        (["in", "-c", "x.yaml"], "No such option: -c"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2, arguments
        assert said in done.stderr, arguments


def test_what_every_other_command_would_refuse_or_cannot_be_written_is_said(
    there: Path, tmp_path: Path
) -> None:
    for below, said in (("sub", "inside the table"), ("", "the table of pipeline default itself")):
        put(there / below, "a.ndjson", {"id": 1})
        file = tmp_path / "p.yaml"
        done = run(there / below, "--table", there, "--inline", "--output", file)
        assert done.exit_code == 2
        assert f"error: source.path: is {said}" in done.stderr
        assert not file.exists()
    done = run(there, "--output", tmp_path / "nowhere/p.yaml")
    assert done.exit_code == 1
    assert "cannot write" in done.stderr


def test_no_more_is_read_than_is_allowed(there: Path) -> None:
    """HOLES W34: a little of a few files, however much there is."""
    for number in range(50):
        put(there, f"{number:02}.ndjson", *({"n": n, "f": number} for n in range(1000)))
    found = sample.take(str(there), StorageOptions(), 10_000)
    assert sum(len(each.data) for each in found.files) <= 10_000
    assert len(found.files) == sample.FILES
    assert {Path(each.file).name for each in found.files} >= {"00.ndjson", "47.ndjson"}
    assert not any(each.whole for each in found.files)


def test_what_is_written_and_printed_fits_a_terminal(there: Path) -> None:
    put(there, "a.ndjson", {f"field_with_a_long_name_{n}": ["x", 1] for n in range(50)})
    done = run(there, "--output", "-")
    paths = (str(there), "in_table")
    lines = [one for one in done.output.splitlines() if not any(path in one for path in paths)]
    assert max(map(len, lines)) <= WIDTH
    assert "next, once it is in a file:" in done.stderr
    assert "-c FILE" in done.stderr
    assert "pipeline.yaml" not in done.stderr
    assert yaml.safe_load(done.stdout)["schema"]["unknown_fields"] == "add"


ROTATED = ("access.log", "access.log.1", "access.log.2.gz", "access.log-20240511.gz", "x.log")


def test_files_that_were_rotated_are_taken(there: Path, tmp_path: Path) -> None:
    for number, name in enumerate(ROTATED):
        put(there, name, {"id": number})
    put(there, "readme.md", "hello")
    put(there, "access.log.bak", {"id": -1})
    put(there, "access.log.9.tmp", {"id": -1})
    file = tmp_path / "p.yaml"
    done = run(there, "--output", file)
    assert done.exit_code == 0
    left_out, told = done.stderr.splitlines()[:3], done.stderr.splitlines()[3:]
    assert left_out == [
        "warning: access.log.9.tmp is left out: it is named like an unfinished file",
        "warning: access.log.bak is left out: it is not named like a file of JSON records",
        "warning: readme.md is left out: it is not named like most files here",
    ]
    assert len(told) == 1
    assert told[0].startswith("warning: access.log and 2 more get other names when the log is")
    assert "get other names when" in file.read_text()
    assert [row["id"] for row in ingested(file)] == list(range(len(ROTATED)))


def test_dated_files_that_keep_their_names_need_no_warning(there: Path, tmp_path: Path) -> None:
    put(there, "x.json-20240510.gz", {"id": 1})
    put(there, "x.json-20240511", {"id": 2})
    file = tmp_path / "p.yaml"
    done = run(there, "--output", file)
    assert (done.exit_code, done.stderr) == (0, "")
    assert ingested(file) == [{"id": 1}, {"id": 2}]


def test_many_files_that_are_left_out_are_counted(there: Path) -> None:
    put(there, "a.ndjson", {"id": 1})
    for number in range(25):
        put(there, f"{number:02}.csv", "x")
    told = run(there, "--output", "-").stderr.splitlines()
    assert told[19] == "warning: 19.csv is left out: it is not named like a file of JSON records"
    assert told[20] == "warning: 5 other files likewise"
    assert not any("warning" in line for line in told[21:])


def test_a_file_without_the_envelope_of_the_others_is_named(there: Path) -> None:
    for name in ("a.json", "b.json"):
        put(there, name, {"Records": [{"id": 1}, {"id": 2}]})
    put(there, "digest.json", {"digest": "x"})
    done = run(there, "--output", "-")
    assert yaml.safe_load(done.stdout)["source"]["records"] == "Records"
    assert f"warning: {there}/digest.json: it has no array Records" in done.stderr


def test_a_record_that_the_sample_cuts_off_gives_no_columns(there: Path, tmp_path: Path) -> None:
    put(there, "a.ndjson", {"id": 1, "s": "x" * 5000})
    made = tmp_path / "pipeline.yaml"
    cut = run(there, "--output", made, "--sample", 1000)
    assert cut.exit_code == 1
    assert "no JSON object ends within 1000 B; --sample BYTES reads more" in cut.stderr
    assert not made.exists()

    assert run(there, "--output", made, "--sample", 10_000).exit_code == 0
    assert [field["name"] for field in yaml.safe_load(made.read_text())["schema"]["fields"]] == [
        "id",
        "s",
    ]


def test_deep_records_and_reserved_names_run_without_any_editing(
    there: Path, tmp_path: Path
) -> None:
    deep: dict[str, Any] = {"a": 1}
    for _ in range(40):
        deep = {"a": deep}
    put(there, "a.ndjson", {"id": 1, "deep": deep, "_file": "x", "_LINE": 2})
    file = tmp_path / "p.yaml"
    assert run(there, "--output", file).exit_code == 0
    (row,) = ingested(file)
    assert (row["id"], row["file"], row["LINE"]) == (1, "x", 2)
    assert "_rescued" not in row
