"""docs/commands.md, made from what the programs' own help says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.main import get_group

import blizzard.cli.app
import penguin.cli.app
from lakebed.terminal.program import LEAST

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
HEAD = """\
# Commands

Every command and every option of both programs. This page is made from what the programs' own help
says (`make commands-page`), and a test holds it equal to that. What the commands are for is on
[Operations](operations.md), [Answers](answers.md) and [penguin's commands](penguin.md).

Options may stand before, between or after the words of a command. Every command takes `-h`, or
`--help`, and prints what is written here.
"""
TYPE = re.compile(r" <(?:list\[)?(?:str|int|float|int range)\]?>")
"""What help says of a plain text or number, which its name and its words say better."""

PROGRAMS: dict[str, typer.Typer] = {
    "blizzard": blizzard.cli.app.app,
    "penguin": penguin.cli.app.app,
}


def commands_page() -> str:
    """Write the page."""
    parts = [HEAD]
    for name, app in PROGRAMS.items():
        parts.append(f"\n## {name}\n")
        for path, command, context in commands(name, get_group(app)):
            title = "" if path == name else f"\n### `{path}`\n"
            parts.append(title + _described(command, context))
    return "".join(parts)


def commands(path: str, command: Any, above: Any = None) -> Iterator[tuple[str, Any, Any]]:
    """Yield a command and all that are below it, each by the words that call it."""
    context = typer.Context(command, info_name=path.rpartition(" ")[2], parent=above)
    yield path, command, context
    below = dict(getattr(command, "commands", {}))
    for name in getattr(command, "deferred", {}):
        below[name] = command.load(name)
    for name, each in below.items():
        if not each.hidden:
            yield from commands(f"{path} {name}", each, context)


def _described(command: Any, context: Any) -> str:
    words = " ".join(command.collect_usage_pieces(context))
    paragraphs = (command.help or "").split("\n\n")
    text = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    rows = [_row(name, help_text) for name, help_text in _records(command, context)]
    table = "\n| | |\n|---|---|\n" + "".join(rows) if rows else ""
    return f"\n```text\n{context.command_path} {words}\n```\n\n{text}\n{table}"


def _records(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    """Yield the arguments and options as the help lists them, each with what it says."""
    for each in command.get_params(context):
        record = each.get_help_record(context)
        if record is not None and "--help" not in each.opts:
            yield record


def _row(name: str, text: str) -> str:
    cells = (f"`{TYPE.sub('', name)}`", LEAST.sub(r"at least \1", text))
    return "| " + " | ".join(" ".join(each.split()).replace("|", r"\|") for each in cells) + " |\n"


if __name__ == "__main__":
    PAGE.write_text(commands_page())
