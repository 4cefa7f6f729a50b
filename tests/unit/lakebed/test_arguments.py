"""Options mean the same before a command and behind it."""

from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

import blizzard.cli.app
import penguin.cli.app

BLIZZARD, PENGUIN = blizzard.cli.app.app, penguin.cli.app.app


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "in").mkdir()
    path = tmp_path / "both.yaml"
    path.write_text(
        "\n".join(
            [
                "pipelines:",
                *(
                    f"  {name}: {{source: {{path: {tmp_path}/in/{name}}}, sink: {{path: {tmp_path}"
                    f"/{name}}}, schema: {{fields: [{{name: id, type: int64}}]}}}}"
                    for name in ("a", "b")
                ),
                f"tables: {{a: {{table_uri: {tmp_path}/a}}}}",
            ]
        )
    )
    for name in ("a", "b"):
        (tmp_path / "in" / name).mkdir()
    return str(path)


@pytest.mark.parametrize(
    ("app", "command"),
    [
        (BLIZZARD, ["status"]),
        (BLIZZARD, ["journal"]),
        (BLIZZARD, ["gc"]),
        (BLIZZARD, ["redo"]),
        (BLIZZARD, ["dlq", "list"]),
        (PENGUIN, ["status"]),
        (PENGUIN, ["plan"]),
        (PENGUIN, ["history", "3"]),
        (PENGUIN, ["replay"]),
        (PENGUIN, ["forget"]),
    ],
)
def test_an_option_before_a_command_is_as_good_as_behind_it(
    app: Typer, command: list[str], file: str
):
    """HOLES W42: `blizzard -c FILE status` is what people type."""
    behind = CliRunner().invoke(app, [*command, "-c", file, "--output", "json"])
    assert behind.exit_code == 0, behind.output
    before = CliRunner().invoke(app, ["-c", file, "--output", "json", *command])
    mixed = CliRunner().invoke(app, ["-c", file, *command, "--output", "json"])
    for other in (before, mixed):
        assert (other.exit_code, other.stdout.split("lag_secs")[0]) == (
            behind.exit_code,
            behind.stdout.split("lag_secs")[0],
        )


def test_an_option_that_a_command_does_not_have_is_refused(file: str):
    """HOLES W42: it was passed over without a word."""
    for app in (BLIZZARD, PENGUIN):
        answer = CliRunner().invoke(app, ["-c", file, "--once", "status"])
        assert answer.exit_code == 2
        assert "--once" in answer.stderr


@pytest.mark.parametrize("command", [["status"], ["dlq", "list"], ["--dry-run"], ["gc"]])
def test_one_pipeline_of_several_can_be_named(command: list[str], file: str):
    """HOLES W42: the page says that all commands take `-p NAME`."""
    for words in (["-p", "b", *command], [*command, "-p", "b"]):
        answer = CliRunner().invoke(BLIZZARD, [*words, "-c", file])
        assert answer.exit_code == 0, answer.output
        assert "pipeline b" in answer.stdout
        assert "pipeline a" not in answer.stdout
    unknown = CliRunner().invoke(BLIZZARD, [*command, "-p", "c", "-c", file])
    assert unknown.exit_code == 2
    assert "there is no pipeline 'c'; there are: a, b" in unknown.stderr


def test_a_group_of_commands_shows_them(file: str):
    for words in (["dlq"], ["-c", file, "dlq"]):
        answer = CliRunner().invoke(BLIZZARD, words)
        assert "Show which source files failed" in answer.output


def test_a_word_that_looks_like_an_option_stays_a_word(file: str):
    answer = CliRunner().invoke(BLIZZARD, ["-c", file, "journal", "--", "-c"])
    assert answer.exit_code == 2
    assert "'-c' is neither the number of an entry nor `new`" in answer.stderr
