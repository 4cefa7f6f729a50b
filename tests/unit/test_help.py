"""The help of every command names what is typed, and says all of it."""

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_group
from typer.testing import CliRunner

from tests.support.commands import PROGRAMS


def commands(command: Any, *words: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command of a program."""
    yield words
    for name, one in getattr(command, "commands", {}).items():
        deferred = getattr(command, "deferred", {})
        yield from commands(command.load(name) if name in deferred else one, *words, name)


EVERY = [
    (program, words)
    for program, module in PROGRAMS.items()
    for words in commands(get_group(module.app))
]


@pytest.mark.parametrize(("program", "words"), EVERY)
def test_help_is_plain(program: str, words: tuple[str, ...]):
    """HOLES W42: `--yes <bool>` and `[[PATH]]` mean nothing to a person."""
    answer = CliRunner().invoke(
        PROGRAMS[program].app, [*words, "--help"], prog_name=program, env={"COLUMNS": "80"}
    )
    assert answer.exit_code == 0
    assert answer.output.startswith("Usage: ")
    usage, _newline, below = answer.output.partition("\n")
    for odd in ("<", "{", "[[", "x>=", "str]"):
        assert odd not in answer.output, odd
    assert "..." not in below, "the line of help is cut off"
    assert usage.count("...") <= 1
    assert max(map(len, answer.output.splitlines())) <= 80


def test_there_are_many_commands():
    assert len(EVERY) > 35


@pytest.mark.parametrize(
    ("program", "words"), [("blizzard", ()), ("blizzard", ("files",)), ("penguin", ("status",))]
)
def test_a_wrong_value_of_an_option_is_told_without_the_words_of_a_library(
    program: str, words: tuple[str, ...]
):
    done = CliRunner().invoke(PROGRAMS[program].app, [*words, "--output", "yaml"])
    assert done.exit_code == 2
    assert "Invalid value for '--output': 'yaml' is not one of 'text', 'json'." in done.stderr
