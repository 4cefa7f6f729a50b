"""Results and plans, for a person or a machine, on standard output."""

import json
from collections import Counter
from dataclasses import asdict
from itertools import takewhile
from typing import Any, assert_never

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from blizzard.dlq import DeadLetter, Queue
from blizzard.flow import SourceFile
from blizzard.plan import can_be_cut, weight
from blizzard.sight import Explanation
from blizzard.switch import Changed, Switched, TooEarly, Unchanged, Uncommitted
from lake.arguments import Output
from lake.entry import Handoff, SourceRecord
from lake.units import in_words

CHANGED = "ingested before, changed since; its new content is not read"
LARGE = 512 * 1024 * 1024
FEW = 20
"""How many files a person wants to see of a long list."""


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


def explanation(found: Explanation, output: Output) -> None:
    """Print what a batch would do, and why some files are not in it."""
    if output is Output.JSON:
        print(json.dumps(_as_document(found), ensure_ascii=False), flush=True)  # noqa: T201 - this is the program's output
        return
    console = _console()
    parts = Counter(file.key for unit in found.units for file in unit.files)
    files = list({file.key: file for unit in found.units for file in unit.files}.values())
    console.print(
        f"pipeline {found.pipeline}: batch {found.entry} would read {len(files)} files "
        f"({in_words(sum(file.size for file in files))}) in {len(found.units)} units "
        f"into {found.table_uri}",
        soft_wrap=True,
    )
    for file in files[:FEW]:
        console.print(
            f"  read   {file.key}  {in_words(file.size)}{_cut_note(file, parts[file.key])}",
            soft_wrap=True,
        )
    if len(files) > FEW:
        console.print(f"  … and {len(files) - FEW} more")
    for path, reason in _left_out(found)[:FEW]:
        console.print(f"  leave  {path}  {reason}", soft_wrap=True)
    later = sum(finding.left_over for finding in found.findings.values())
    if later:
        console.print(f"  {later} more files are left for the batches after it")


def dead_letters(queue: Queue, output: Output) -> None:
    """Print what a dead letter queue holds, the newest first: a JSON object a line, or a table."""
    if output is Output.JSON:
        for letter in queue.letters:
            print(json.dumps(asdict(letter), ensure_ascii=False), flush=True)  # noqa: T201 - this is the program's output
        return
    console = _console()
    if not queue.letters:
        console.print(f"pipeline {queue.pipeline}: no failures", soft_wrap=True)
        return
    folder = _common_folder(queue.letters)
    console.print(
        f"pipeline {queue.pipeline}: {len(queue.letters)} failures, the newest first, below "
        f"{folder or '/'}",
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
    for letter in queue.letters:
        table.add_row(
            escape(letter.path.removeprefix(folder).lstrip("/")),
            letter.stage.value,
            letter.code,
            "" if letter.line is None else str(letter.line),
            escape(letter.error),
            str(letter.retry_count),
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


def _cut_note(file: SourceFile, parts: int) -> str:
    """Say how many tasks share a large file, or why they cannot."""
    if parts > 1:
        return f"  in {parts} parts"
    if weight(file) > LARGE and not can_be_cut(file):
        return f"  in one part: {file.codec} cannot be cut"
    return ""


def _left_out(found: Explanation) -> list[tuple[str, str]]:
    return [
        pair
        for name, finding in found.findings.items()
        for pair in (
            *((record.key, _reason(record)) for record in finding.misplaced),
            *((f"{name}:{facts.path}", CHANGED) for facts in finding.overwritten),
            *((record.key, f"failed before: {_reason(record)}") for record in finding.resting),
        )
    ]


def _reason(record: SourceRecord) -> str:
    return record.failure.message if record.failure else ""


def _as_document(found: Explanation) -> dict[str, Any]:
    return {
        "pipeline": found.pipeline,
        "table_uri": found.table_uri,
        "entry": found.entry,
        "units": [
            {
                "unit": unit.name,
                "partition_values": dict(unit.partition_values),
                "files": [
                    {
                        "path": file.key,
                        "size": file.size,
                        "bytes": [file.part.start, file.part.end] if file.part else None,
                    }
                    for file in unit.files
                ],
            }
            for unit in found.units
        ],
        "left_out": [{"path": path, "reason": reason} for path, reason in _left_out(found)],
        "left_for_later": sum(finding.left_over for finding in found.findings.values()),
    }


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
