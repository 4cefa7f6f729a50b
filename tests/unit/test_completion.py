"""The shell completes commands, options, choices and configured names."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakebed.config.models import DEFAULT_NAME
from tests.support.commands import PROGRAMS


def completed(line: str, shell: str = "bash") -> list[str]:
    """Return what a shell offers at the end of a line."""
    program, words = line.split(" ", maxsplit=1)
    env: Mapping[str, str] = {
        f"_{program.upper()}_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_WORD_TO_COMPLETE": words.rpartition(" ")[2],
    }
    answer = CliRunner().invoke(PROGRAMS[program].app, [], prog_name=program, env=env)
    assert answer.exit_code == 0, answer.output
    return [line for line in answer.output.splitlines() if line]


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("blizzard ", {"status", "files", "dlq", "demo"}),
        ("blizzard st", {"status"}),
        ("blizzard --on", {"--once"}),
        ("blizzard status --w", {"--watch"}),
        ("blizzard dlq re", {"retry", "replay"}),
        ("blizzard dlq replay --y", {"--yes"}),
        ("blizzard journal ", {"list", "show", "new"}),
        ("blizzard --output json status --output ", {"text", "json"}),
        ("blizzard files --state f", {"failed"}),
        ("blizzard warm --a", {"--again"}),
        ("penguin ", {"status", "held", "vacuum", "adopt"}),
        ("penguin vacuum --y", {"--yes"}),
        ("penguin status --o", {"--output"}),
    ],
)
def test_commands_options_and_choices_are_completed(line: str, some: set[str]):
    found = set(completed(line))
    assert some <= found
    if not line.endswith(" "):
        assert found == some


@pytest.mark.parametrize(
    "line",
    ["blizzard -c FILE status -p ", "blizzard status -c FILE -p ", "blizzard -c FILE --once -p "],
)
def test_the_names_of_pipelines_come_from_the_configuration(tmp_path: Path, line: str):
    file = tmp_path / "p.yaml"
    file.write_text("pipelines: {web: {}, app: {}}\n")
    line = line.replace("FILE", str(file))
    assert completed(line) == ["app", "web"]
    assert completed(f"{line}w") == ["web"]


@pytest.mark.parametrize("text", ["source: {path: x}\nsink: {}\n", "sink: {}\n"])
def test_a_pipeline_without_a_name_is_completed_as_it_is_called(tmp_path: Path, text: str):
    file = tmp_path / "p.yaml"
    file.write_text(text)
    assert completed(f"blizzard status -c {file} -p ") == [DEFAULT_NAME]


@pytest.mark.parametrize("text", [None, "pipelines: [", "- 1", "pipelines: 3", "\x00"])
def test_a_configuration_that_cannot_be_read_completes_nothing(tmp_path: Path, text: str | None):
    file = tmp_path / "p.yaml"
    if text is not None:
        file.write_text(text)
    assert completed(f"blizzard status -c {file} -p ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_an_answer_for_every_shell(shell: str):
    assert "replay" in "\n".join(completed("blizzard dlq rep", shell))
