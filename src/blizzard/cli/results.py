"""Results, for a person or a machine, on standard output."""

import json
from dataclasses import asdict
from itertools import takewhile, zip_longest
from typing import Any, assert_never

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from blizzard.handoff.dead_letters import DeadLetter, Queue
from blizzard.handoff.switch import Changed, Switched, TooEarly, Unchanged, Uncommitted
from lakebed.arguments import Output
from lakebed.types import Handoff
from lakebed.units import in_words


def results(rows: list[dict[str, Any]], output: Output) -> None:
    """Print what each pipeline did: a JSON object a line, or a table."""
    if output is Output.JSON:
        for row in rows:
            print(json.dumps(row, ensure_ascii=False), flush=True)  # noqa: T201 - this is the program's output
        return
    console = _console()
    for row in rows:
        table = Table(title=f"pipeline {row['pipeline']}", title_justify="left", show_header=False)
        for key, value in row.items():
            if key != "pipeline" and value is not None:
                shown = in_words(value) if key == "bytes_written" else str(value)
                table.add_row(key, Text(shown))
        console.print(table)


def dead_letters(queue: Queue, output: Output, *, every: bool = True) -> None:
    """Print what a dead letter queue holds, the newest first: a JSON object a line, or a table.

    Without `every` only failures that are not over.
    """
    letters = queue.letters if every else queue.current
    if output is Output.JSON:
        for letter in letters:
            print(json.dumps(asdict(letter), ensure_ascii=False), flush=True)  # noqa: T201 - this is the program's output
        return
    console = _console()
    if not queue.letters:
        console.print(f"pipeline {queue.pipeline}: no failures", soft_wrap=True)
        return
    over = len(queue.letters) - len(letters)
    more = f"; {over} more are over, --all shows them" if over else ""
    if not letters:
        console.print(f"pipeline {queue.pipeline}: no file is failed now{more}", soft_wrap=True)
        return
    folder = _common_folder(letters)
    console.print(
        f"pipeline {queue.pipeline}: {len(letters)} failures, the newest first, below "
        f"{folder or '/'}{more}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("path", overflow="fold", ratio=2)
    table.add_column("stage", no_wrap=True)
    table.add_column("code", overflow="fold")
    table.add_column("line", justify="right", no_wrap=True)
    table.add_column("message", overflow="fold", ratio=3)
    table.add_column("retries", justify="right", no_wrap=True)
    if every:
        table.add_column("now", overflow="fold")
    states = queue.now if every else ()
    for letter, now in zip_longest(letters, states):
        field = "" if letter.field is None else f"{letter.field}: "
        table.add_row(
            escape(letter.path.removeprefix(folder).lstrip("/")),
            letter.stage.value,
            letter.code,
            "" if letter.line is None else str(letter.line),
            escape(f"{field}{letter.error}"),
            str(letter.retry_count),
            *([now.value] if now is not None else []),
        )
    console.print(table)


def _common_folder(letters: tuple[DeadLetter, ...]) -> str:
    """Give the folder that all paths share, so that a table has room for what tells them apart."""
    folders = [letter.path.split("/")[:-1] for letter in letters]
    shared = takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))
    return "/".join(parts[0] for parts in shared)


def _console() -> Console:
    """Print names and messages as they are: a file may be called `a[/b].ndjson`."""
    return Console(markup=False, highlight=False, emoji=False)


def switched(table_uri: str, handoff: Handoff, found: Switched) -> bool:
    """Print what became of a change of the hand-off, and say whether the table has it now."""
    match found:
        case Changed():
            told = f"{table_uri}: files are handed off by {handoff.value} from now on"
        case Unchanged():
            told = f"{table_uri}: files are handed off by {handoff.value} already"
        case TooEarly(waiting):
            first = (
                f"{table_uri}: the hand-off was not changed: these entries are not committed yet; "
                "let penguin commit them and try again"
            )
            lines = (f"  pipeline {one.pipeline}: {_entries(one)}" for one in waiting)
            told = "\n".join((first, *lines))
        case _:
            assert_never(found)
    print(told, flush=True)  # noqa: T201 - this is the program's output
    return not isinstance(found, TooEarly)


def _entries(waiting: Uncommitted) -> str:
    if waiting.first == waiting.last:
        return f"entry {waiting.first}"
    return f"entries {waiting.first} to {waiting.last}"
