"""Results, for a person or a machine, on standard output."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from itertools import zip_longest

from blizzard.answers.dead_letters import DeadLetterQueue, FailedLetter
from blizzard.handoff.dead_letters import DeadLetter
from blizzard.handoff.held_rows import Counts
from blizzard.run_totals import Statistics
from lakebed.terminal.arguments import Output
from lakebed.terminal.console import (
    INLINED,
    add,
    columns,
    console,
    plural,
    print_lines,
    print_table,
    say,
    say_more,
)
from lakebed.units import in_words, is_are

FEW = 10
"""How many lost files are named; as JSON, all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """What one pipeline did in a run."""

    pipeline: str
    table_uri: str
    statistics: Statistics = field(metadata=INLINED)
    aside: Counts = field(metadata=INLINED)
    error: str | None


def results(rows: list[ResultRow], output: Output, inline: Collection[str] = ()) -> None:
    """Print what each pipeline did: a JSON object a line, or a table.

    People see commits only of the pipelines that make them, which `inline` names.
    """
    if output is Output.JSON:
        print_lines(rows)
        return
    to = console()
    for row in rows:
        say(to, f"pipeline {row.pipeline}:")
        table = columns("", "", wide=("",), header=False)
        add(table, "table_uri", row.table_uri)
        for part in (row.statistics, row.aside):
            for each in fields(part):
                if each.name == "delta_commits" and row.pipeline not in inline:
                    continue
                value = getattr(part, each.name)
                add(table, each.name, in_words(value) if each.name == "bytes_written" else value)
        if row.error is not None:
            add(table, "error", row.error)
        print_table(to, table)


def dead_letters(
    queue: DeadLetterQueue, output: Output, uris: Mapping[str, str], *, every: bool = True
) -> None:
    """Print what a dead letter queue holds, the newest first: a JSON object a line, or a table.

    Without `every` only failures that are not over. `uris` are those of the sources, by name.
    """
    letters = queue.letters if every else queue.current
    if output is Output.JSON:
        print_lines(letters)
        print_lines(queue.lost)
        return
    _show_letters(queue, letters, uris, every=every)
    _show_lost(queue)


def _show_lost(queue: DeadLetterQueue) -> None:
    """Name the files that no run can read any more, with the way out."""
    if not queue.lost:
        return
    to, count = console(), len(queue.lost)
    files = plural(count, "file is lost, it", "files are lost, they")
    days = "its day stays" if count == 1 else "their days stay"
    say(
        to,
        f"pipeline {queue.pipeline}: {files} failed and {'was' if count == 1 else 'were'} deleted "
        f"from the source, and {days} open until somebody decides:",
    )
    for one in queue.lost[:FEW]:
        code = "" if one.code is None else f" [{one.code}]"
        say(to, f"  {one.path}{code}")
    say_more(to, count - FEW)
    say(
        to,
        f"  put {'it' if count == 1 else 'them'} back, or run blizzard dlq discard PATH --yes "
        "(--deleted instead of PATH for all)",
    )


def _show_letters(
    queue: DeadLetterQueue, letters: tuple[DeadLetter, ...], uris: Mapping[str, str], *, every: bool
) -> None:
    to = console()
    if queue.inherited:
        files = plural(queue.inherited, "file")
        say(
            to,
            f"pipeline {queue.pipeline}: {files} failed under the earlier journal and "
            f"{is_are(queue.inherited)} not below; blizzard files --state failed lists "
            f"{'it' if queue.inherited == 1 else 'them'}, blizzard why says more",
        )
    if not queue.letters and not queue.unread:
        if queue.lost:
            return
        since = " under this journal" if queue.inherited else ""
        say(to, f"pipeline {queue.pipeline}: no failures{since}")
        return
    over = 0 if every else queue.over
    told = plural(over, "earlier failure is", "earlier failures are")
    more = f"; {told} over, and --all lists {'it' if over == 1 else 'them'} too" if over else ""
    if not letters:
        say(to, f"pipeline {queue.pipeline}: no file is in a failed state now{more}")
        return
    below = f", below {uris[letters[0].source]}" if _is_one(letters, uris) else ""
    failures = plural(len(letters), "failure")
    say(to, f"pipeline {queue.pipeline}: {failures}, the newest first{below}{more}")
    table = columns(
        *("path", "stage", "code", "line", "message", "retries", *(("now",) if every else ())),
        numbers=("line", "retries"),
        wide=("path", "code", "message", "now"),
    )
    for letter, failed in zip_longest(letters, queue.failures if every else ()):
        field = "" if letter.field is None else f"{letter.field}: "
        add(
            table,
            _named(letter, uris, alone=bool(below)),
            letter.stage,
            letter.code,
            "" if letter.line is None else str(letter.line),
            f"{field}{letter.error}",
            letter.retry_count,
            *([] if failed is None else [_now(failed)]),
        )
    print_table(to, table)


def _now(failed: FailedLetter) -> str:
    """Return the state of a failed file as `blizzard files` prints it."""
    more = ", deleted" if failed.deleted else " again" if failed.repeated else ""
    return f"{failed.state.value}{more}"


def _is_one(letters: tuple[DeadLetter, ...], uris: Mapping[str, str]) -> bool:
    """Whether all of the files are below the same source, as it is configured now."""
    return len({letter.source for letter in letters}) == 1 and all(
        letter.path.startswith(_root(letter, uris)) for letter in letters
    )


def _named(letter: DeadLetter, uris: Mapping[str, str], *, alone: bool) -> str:
    """Return a file as `blizzard dlq retry` and the others take it, so that it can be copied."""
    root = _root(letter, uris)
    if not letter.path.startswith(root):
        return letter.path  # Its source has moved, or is not configured any more.
    path = letter.path.removeprefix(root)
    return path if alone else f"{letter.source}:{path}"


def _root(letter: DeadLetter, uris: Mapping[str, str]) -> str:
    return f"{uris.get(letter.source, '').rstrip('/')}/"
