"""`blizzard init` on S3, with the credentials of the environment."""

import pytest
import yaml
from typer.testing import CliRunner, Result

from blizzard.cli.app import app
from blizzard.config.load import load
from lakebed.journal import JournalReader
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.s3 import options, store


@pytest.fixture(autouse=True)
def environment(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in options(s3).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def landed(s3: str, bucket: str) -> str:
    place = store(s3, f"s3://{bucket}")
    for name in ("in/a.ndjson", "in/deep/b.ndjson", "in/c.log"):
        place.create(name, b'{"id": 1, "ts": 1700000000}\n')
    return f"s3://{bucket}"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["init", *arguments])


@pytest.mark.parametrize(
    ("below", "path", "rows"),
    [("/in", "/in", 2), ("/in/*.ndjson", "/in/*.ndjson", 1), ("/in/c.log", "/in/[c].log", 1)],
)
def test_a_folder_a_pattern_and_an_object_run_as_they_are_written(
    s3: str, landed: str, below: str, path: str, rows: int, tmp_path
) -> None:
    file = tmp_path / "p.yaml"
    done = run(f"{landed}{below}", "--output", str(file))
    assert done.exit_code == 0, done.output
    document = yaml.safe_load(file.read_text())
    assert document["source"]["path"] == f"{landed}{path}"
    assert document["sink"]["path"] == f"{landed}/in_table"
    (settings,) = load([file], [], {}).pipelines
    assert [one.type for one in settings.schema.fields] == ["int64", "timestamp"]
    assert pipeline_of(settings, InProcessRunner()).step()
    journal = JournalReader(store(s3, f"{landed}/in_table"), "default")
    assert sum(one.rows for one in list(journal.entries())[-1].sources) == rows


def test_a_whole_bucket_has_its_table_in_a_folder_of_its_own(landed: str, tmp_path) -> None:
    file = tmp_path / "p.yaml"
    assert run(landed, "--output", str(file)).exit_code == 0
    assert yaml.safe_load(file.read_text())["sink"]["path"] == f"{landed}/table"


def test_a_bucket_that_is_not_there_is_said(tmp_path) -> None:
    done = run("s3://nobody-has-this/in", "--output", str(tmp_path / "p.yaml"))
    assert done.exit_code == 2
    assert "has no bucket nobody-has-this (NoSuchBucket)" in done.stderr
    assert not (tmp_path / "p.yaml").exists()
