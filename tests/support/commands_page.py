"""docs/commands.md, made from what the programs' own help says."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer
from typer.main import get_group

import blizzard.cli.app
import penguin.cli.app
from lakebed.terminal.program import ForwardingGroup

LEAST = re.compile(r"x>=([\d.]+)")
Record = tuple[str, str]
"""An argument or option, and what the help says of it."""
PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
HEAD = """\
# Commands

Every command and option of both programs, as their own help describes them; `make commands-page`
writes this page. [Operations](operations.md), [Answers](answers.md) and [penguin's
commands](penguin.md) explain their use.

The options of a command may come before, between or after its words; those of a run, such as
`--once`, only without a command. Arguments (`URI`, `PATH`) are listed in their order; one that
is not marked as required may be left out. Every command takes `-h`, or `--help`. Commands share
these options, and each lists those that it takes:

"""
SHARED = ("--config", "--config-dir", "--output", "--pipeline", "--yes")
"""Options that mean the same for many commands: one list explains them all."""
TYPE = re.compile(r" <(?:list\[)?(?:str|int|float|int range)\]?>")
"""What help says of a plain text or number, which its name and its words say better."""

PROGRAMS: dict[str, typer.Typer] = {
    "blizzard": blizzard.cli.app.app,
    "penguin": penguin.cli.app.app,
}


def commands_page() -> str:
    """Write the page."""
    found = [
        (path, command, list(_records(command, context)))
        for name, app in PROGRAMS.items()
        for path, command, context in commands(name, get_group(app))
    ]
    shared = _shared(record for _path, _command, records in found for record in records)
    parts = [HEAD, *(_row(*record) for record in shared)]
    for path, command, records in found:
        parts.append(f"\n## {path}\n" if path in PROGRAMS else f"\n### `{path}`\n")
        parts.append(_described(command, records, shared))
    return "".join(parts)


def commands(path: str, command: Any, above: Any = None) -> Iterator[tuple[str, Any, Any]]:
    """Yield a command and all that are below it, each by the words that call it."""
    context = typer.Context(command, info_name=path.rpartition(" ")[2], parent=above)
    yield path, command, context
    below = dict(getattr(command, "commands", {}))
    for name in command.deferred() if isinstance(command, ForwardingGroup) else ():
        below[name] = command.load(name)
    for name, each in below.items():
        if not each.hidden:
            yield from commands(f"{path} {name}", each, context)


def _shared(records: Iterable[Record]) -> list[Record]:
    """Return the shared options, each with what most commands say of it."""
    counted = Counter(record for record in records if set(_flags(record)) & set(SHARED))
    return [
        next(record for record, _count in counted.most_common() if flag in _flags(record))
        for flag in SHARED
    ]


def _described(command: Any, records: list[Record], shared: list[Record]) -> str:
    paragraphs = (command.help or "").split("\n\n")
    text = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    rows = [_row(*record) for record in records if record not in shared]
    also = ", ".join(f"`{_flags(record)[0]}`" for record in shared if record in records)
    rows += [f"- shared: {also}\n"] if also else []
    return f"\n{text}\n" + ("\n" + "".join(rows) if rows else "")


def _flags(record: Record) -> list[str]:
    """Return the flags of an option, the short one first: `-c`, `--config`."""
    return re.findall(r"(?<!\S)--?[\w-]+", record[0])


def _records(command: Any, context: Any) -> Iterator[Record]:
    """Yield the arguments and options as the help lists them, each with what it says."""
    for each in command.get_params(context):
        record = each.get_help_record(context)
        if record is not None and "--help" not in each.opts:
            yield record


def _row(name: str, text: str) -> str:
    cells = (f"`{TYPE.sub('', name)}`", LEAST.sub(r"at least \1", text))
    return "- " + ": ".join(" ".join(each.split()) for each in cells) + "\n"


if __name__ == "__main__":
    PAGE.write_text(commands_page())
