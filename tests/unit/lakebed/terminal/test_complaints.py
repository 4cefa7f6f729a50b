"""What keeps a program from starting is told in the shape of its log."""

import json
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

import blizzard.cli.app
import penguin.cli.app

BLIZZARD, PENGUIN = blizzard.cli.app.app, penguin.cli.app.app
AS_JSON = ("--log-format", "json")
PIPELINE = (
    "pipelines: {{a: {{source: {{path: {0}/in}}, sink: {{path: {0}/t}}, "
    "schema: {{fields: [{{name: id, type: int64}}]}}}}}}\n"
    "tables: {{a: {{table_uri: {0}/t}}}}\n"
)


def told(app: Typer, *arguments: str) -> list[dict[str, str]]:
    """Run a program that is refused; every line of its log must be an object."""
    ended = CliRunner().invoke(app, [*AS_JSON, *arguments])
    assert ended.exit_code == 2, ended.output
    return [json.loads(line) for line in ended.stderr.splitlines()]


@pytest.mark.parametrize("app", [BLIZZARD, PENGUIN])
@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_faults_of_the_configuration_are_json_lines_one_for_each(
    app: Typer, more: list[str], tmp_path: Path
):
    """HOLES W42: whoever reads the log by machine learns why there is none."""
    missing = told(app, "-c", str(tmp_path / "none.yaml"), *more)
    assert [line["level"] for line in missing] == ["error"]
    assert "none.yaml" in missing[0]["message"]
    file = tmp_path / "c.yaml"
    file.write_text(PIPELINE.format(tmp_path) + "metrics: {enabled: 7, speed: 1}\n")
    faults = told(app, "-c", str(file), *more)
    assert len(faults) == 2
    assert {(line["event"], line["code"]) for line in faults} == {("FaultFound", "config_invalid")}


def test_a_missing_java_and_an_unknown_pipeline_are_json_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """HOLES W42: they are noticed once the configuration is read."""
    file = tmp_path / "c.yaml"
    file.write_text(PIPELINE.format(tmp_path))
    assert "'b'" in told(BLIZZARD, "-c", str(file), "-p", "b")[0]["message"]
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(tmp_path))
    (fault,) = told(BLIZZARD, "-c", str(file), "--once")
    assert "Java" in fault["message"]


def test_a_start_that_would_be_refused_is_a_json_line_of_a_dry_run(tmp_path: Path):
    """HOLES W42: its answer goes to standard output, its trouble to the log."""
    file = tmp_path / "c.yaml"
    file.write_text(PIPELINE.format(tmp_path))
    ended = CliRunner().invoke(BLIZZARD, [*AS_JSON, "-c", str(file), "--dry-run"])
    assert ended.exit_code == 1
    (line,) = map(json.loads, ended.stderr.splitlines())
    assert line["code"] == "object_missing"


@pytest.mark.parametrize("app", [BLIZZARD, PENGUIN])
def test_a_log_level_may_be_written_in_any_case(app: Typer, tmp_path: Path):
    """HOLES W42: the log itself writes it in capitals."""
    (fault,) = told(app, "--log-level", "DEBUG", "-c", str(tmp_path / "none.yaml"))
    assert "none.yaml" in fault["message"]
