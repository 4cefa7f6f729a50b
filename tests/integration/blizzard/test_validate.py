"""`blizzard validate`: what is wrong with a configuration, before anything is started with it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from blizzard.cli.app import app
from tests.support.desk import Desk


class Checked(Desk):
    """A desk whose configuration a test changes."""

    def __init__(self, folder: Path, **sections: Any) -> None:
        super().__init__(folder)
        self.landing.folder.mkdir(exist_ok=True)
        self.write(**sections)

    def write(self, **sections: Any) -> None:
        document = {
            "source": {"path": str(self.landing.folder)},
            "sink": {"path": str(self.table)},
            "tables": {"t": {"table_uri": str(self.table)}},
        }
        self.file.write_text(yaml.safe_dump(document | sections))

    def run(self, *words: str, java: bool = True) -> Result:
        env = {"NO_COLOR": "1", **({} if java else {"JAVA_HOME": "/nowhere"})}
        done = CliRunner().invoke(app, ["validate", "-c", str(self.file), *words], env=env)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    def rows(self, *words: str, java: bool = True) -> dict[str, dict[str, Any]]:
        done = self.run(*words, "--output", "json", java=java)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        return {each["check"]: each for each in found}


@pytest.fixture
def desk(tmp_path: Path) -> Checked:
    return Checked(tmp_path / "desk")


def test_faults_of_either_program_are_told_once_and_end_it(desk: Checked) -> None:
    done = desk.run()
    assert (done.exit_code, done.stdout) == (0, "ok      configuration: 1 pipeline, 1 table\n")
    assert not desk.table.exists()
    assert "properties" in json.loads(desk.run("--json-schema").stdout)
    desk.write(
        source={"path": str(desk.landing.folder), "batch_size": 0},
        tables={"t": {"table_uri": str(desk.table), "table_properties": {"delta.x": "y"}}},
    )
    done = desk.run("--online")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.count("source.batch_size") == 1


def test_a_sink_that_no_table_commits_is_told_also_by_status_and_dry_run(desk: Checked) -> None:
    desk.write(tables={"t": {"table_uri": f"{desk.table}s"}})
    warning = desk.rows()["default"]
    assert warning["result"] == "warning"
    assert f"{desk.table}, which is none of the tables" in warning["message"]
    assert desk.run().exit_code == 0
    for words in (("status",), ("--dry-run",)):
        done = desk.cli(*words)
        assert done.exit_code == 0, done.output
        assert "which is none of the tables that penguin commits" in done.output
    desk.write(sink={"path": str(desk.table), "commit": "inline"}, tables={})
    assert "default" not in desk.rows()
    desk.write(tables={})
    assert "sink.commit: inline" in desk.rows()["default"]["message"]


def test_online_says_what_a_start_would_do_and_compares_the_columns_with_the_table(
    desk: Checked,
) -> None:
    desk.landing.write("a.ndjson", b'{"id": 1}\n')
    rows = desk.rows("--online")
    assert {each["result"] for each in rows.values()} == {"ok"}
    assert rows["default"]["message"] == f"would read 1 file (10 B) into {desk.table}"
    assert rows["default, sink"]["message"] == "will be created"
    assert "penguin creates it" in rows["table t"]["message"]
    assert not desk.table.exists()
    desk.blizzard()
    desk.penguin()
    said = desk.rows("--online")["default"]["message"]
    assert said.startswith("1 file found, none new; blizzard -c ")
    assert said.endswith(" --dry-run lists the reasons")
    desk.write(schema={"fields": [{"name": "id", "type": "string"}]})
    found = desk.rows("--online")["default"]
    assert found["result"] == "error"
    assert found["code"] == "schema_conflict"
    assert "id" in found["message"]


def test_online_finds_what_is_missing(desk: Checked) -> None:
    desk.write(error_handling={"dlq_path": str(desk.file / "below")})
    rows = desk.rows("--online", java=False)
    assert rows["java"]["result"] == "error"
    assert "JAVA_HOME" in rows["java"]["message"]
    assert rows["default, dead letter queue"]["code"] == "store_denied"
    assert desk.run("--online", java=False).exit_code == 2
