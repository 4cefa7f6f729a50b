"""`blizzard handoff set`, in this process but for a start that is refused. It needs no Spark."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from blizzard.cli.app import app
from lakebed.types import Handoff
from tests.support.processes import Ended
from tests.support.tables import Penguin, TableDirectory, rows_of


@pytest.fixture
def table(tmp_path: Path) -> TableDirectory:
    return TableDirectory(tmp_path / "table")


def config(table: TableDirectory, handoff: str = "journal") -> Path:
    """Two pipelines on one table; the other one is only in the table's directory."""
    file = table.root.parent / "blizzard.yaml"
    pipelines = "".join(
        f"""
  {name}:
    source: {{path: {table.root.parent}/{name}}}
    sink: {{path: {table.root}, handoff: {handoff}}}
    schema: {{fields: [{{name: id, type: int64}}]}}"""
        for name in ("events", "more")
    )
    file.write_text(f"pipelines:{pipelines}\n")
    return file


def handoff_set(*arguments: object) -> Ended:
    ended = CliRunner().invoke(app, ["handoff", "set", *map(str, arguments)])
    return Ended(code=ended.exit_code, out=ended.stdout, err=ended.stderr)


def protocols(table: TableDirectory) -> list[str]:
    return sorted(path.name for path in (table.root / "_blizzard/protocol").iterdir())


def test_it_is_refused_with_names_until_penguin_has_committed_then_done_once(
    table: TableDirectory,
) -> None:
    for number in (1, 2):
        table.journal("events").batch(rows_of(number))
    table.journal("elsewhere").batch(rows_of(3))
    file = config(table)

    early = handoff_set("staging", "-c", file)
    assert early.code == 1, early.err
    assert "pipeline events: entries 1 to 2" in early.out
    assert "pipeline elsewhere: entry 1" in early.out
    assert protocols(table) == ["1.json"]

    Penguin(table).drain()
    done = handoff_set("staging", "-c", file)
    assert done.code == 0, done.err
    assert "handed off by staging from now on" in done.out
    assert "now set sink.handoff: staging" in done.out
    assert protocols(table) == ["1.json", "2.json"]

    again = handoff_set("staging", "-c", config(table, "staging"))
    assert again.code == 0, again.err
    assert "by staging already" in again.out
    assert "now set" not in again.out
    assert protocols(table) == ["1.json", "2.json"]


def test_of_several_tables_each_is_changed_for_itself(tmp_path: Path) -> None:
    """HOLES W22: what was refused is named, and repeating the command finishes it."""
    ready, behind = (TableDirectory(tmp_path / name / "table") for name in ("ready", "behind"))
    behind.journal("late").batch(rows_of(1))
    file = tmp_path / "blizzard.yaml"
    pipelines = "".join(
        f"""
  {name}:
    source: {{path: {tmp_path}/{name}}}
    sink: {{path: {table.root}}}
    schema: {{fields: [{{name: id, type: int64}}]}}"""
        for name, table in (("early", ready), ("late", behind))
    )
    file.write_text(f"pipelines:{pipelines}\n")

    refused = handoff_set("staging", "-c", file)
    assert refused.code == 1, refused.err
    assert "pipeline late: entry 1" in refused.out
    assert protocols(ready) == ["1.json", "2.json"]
    assert protocols(behind) == ["1.json"]

    Penguin(behind).drain()
    again = handoff_set("staging", "-c", file)
    assert again.code == 0, again.err
    assert protocols(ready) == protocols(behind) == ["1.json", "2.json"]


def test_a_configuration_that_contradicts_the_table_is_exit_2(tmp_path: Path) -> None:
    """blizzard refuses to start before it asks Spark for anything."""
    table = TableDirectory(tmp_path / "table", handoff=Handoff.STAGING)
    (tmp_path / "events").mkdir()
    (tmp_path / "more").mkdir()
    ended = CliRunner().invoke(app, ["-c", str(config(table)), "--once"])
    assert ended.exit_code == 2
    assert "blizzard handoff set" in ended.stderr


@pytest.mark.parametrize("arguments", [("carrier-pigeon",), ()])
def test_an_unknown_mode_is_exit_2(table: TableDirectory, arguments: tuple[str, ...]) -> None:
    ended = handoff_set(*arguments, "-c", config(table))
    assert ended.code == 2
    assert protocols(table) == ["1.json"]
