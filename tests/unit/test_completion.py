"""The shell completes, help fits a terminal, and counts are worded right."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

import pytest
from typer.main import get_group
from typer.testing import CliRunner

from lakebed.telemetry.events import Event
from lakebed.terminal.program import ForwardingGroup
from lakebed.units import plural
from tests.support.commands import PROGRAMS
from tests.unit.test_pages import events


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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_an_answer_for_every_shell(shell: str):
    assert "replay" in "\n".join(completed("blizzard dlq rep", shell))


def commands(command: Any, *words: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command of a program."""
    yield words
    for name, one in getattr(command, "commands", {}).items():
        deferred = command.deferred() if isinstance(command, ForwardingGroup) else {}
        yield from commands(command.load(name) if name in deferred else one, *words, name)


EVERY = [
    (program, words)
    for program, module in PROGRAMS.items()
    for words in commands(get_group(module.app))
]


@pytest.mark.parametrize(("program", "words"), EVERY)
def test_help_fits_a_terminal(program: str, words: tuple[str, ...]):
    answer = CliRunner().invoke(
        PROGRAMS[program].app, [*words, "--help"], prog_name=program, env={"COLUMNS": "80"}
    )
    assert answer.exit_code == 0
    assert answer.output.startswith("Usage: ")
    usage, _newline, below = answer.output.partition("\n")
    assert "..." not in below, "the line of help is cut off"
    assert usage.count("...") <= 1
    assert max(map(len, answer.output.splitlines())) <= 80


def test_there_are_many_commands():
    assert len(EVERY) > 35


@pytest.mark.parametrize(
    ("program", "words"), [("blizzard", ()), ("blizzard", ("files",)), ("penguin", ("status",))]
)
def test_a_wrong_value_of_an_option_is_told_with_those_that_are_right(
    program: str, words: tuple[str, ...]
):
    done = CliRunner().invoke(PROGRAMS[program].app, [*words, "--output", "yaml"])
    assert done.exit_code == 2
    assert "Invalid value for '--output': " in done.stderr
    assert "'yaml' is not one of 'text', 'json'." in done.stderr


ONE_OF_MANY = re.compile(r"\b1 (\w+ )?(entries|files|units|rows|versions|records|ones)\b")
EXAMPLES: dict[Any, Any] = {int: 1, float: 1.0, str: "x", bool: True, tuple[str, ...]: ("x",)}


@pytest.mark.parametrize(("count", "told"), [(0, "0 files"), (1, "1 file"), (1234, "1,234 files")])
def test_things_are_counted(count: int, told: str):
    assert plural(count, "file") == told


def counted() -> dict[str, Event]:
    """Return the events that can be made of examples alone, each with one of everything."""
    found = {}
    for name, kind in sorted(events().items()):
        given = [
            each
            for each in fields(kind)  # type: ignore[arg-type]
            if each.type in EXAMPLES or each.default is each.default_factory is MISSING
        ]
        if all(each.type in EXAMPLES for each in given):
            found[name] = kind(**{each.name: EXAMPLES[each.type] for each in given})
    return found


@pytest.mark.parametrize("name", sorted(counted()))
def test_one_thing_is_told_as_one(name: str):
    """HOLES W42: no line of the log says "1 files"."""
    said = counted()[name].sentence()
    assert ONE_OF_MANY.search(said) is None, said
