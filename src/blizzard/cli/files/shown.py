"""How `blizzard files` shows days and files."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from blizzard.answers.lifecycle import FileStanding
from blizzard.answers.reconcile import Group
from blizzard.answers.report import Reconciliation
from blizzard.discover.skip_reason import IN_WORDS
from lakebed.terminal.console import (
    INLINED,
    add,
    columns,
    console,
    plural,
    print_table,
    say,
    say_more,
    second,
)
from lakebed.units import in_words

SENTENCES = 7
"""How many days that are not complete are told in words."""
SELDOM = (
    "waiting", "failed", "lost", "journaled", "held", "changed", "removed", "discarded",
    "retracted", "deleted", "overwritten", "quarantined_lines",
)  # fmt: skip
"""Columns that are shown only where one of them has something to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A source file, in the keys that docs/answers.md promises."""

    pipeline: str
    uri: str
    standing: FileStanding = field(metadata=INLINED)
    day: str | None


def show_days(found: Reconciliation, *, nothing: str) -> None:
    """Print the days, or partitions, of a pipeline, and what is missing.

    `nothing` names the files that were asked about, where none of them has landed.
    """
    to = console()
    say(to, f"pipeline {found.pipeline} -> {found.table_uri}")
    if found.groups:
        seldom = [name for name in SELDOM if any(getattr(one, name) for one in found.groups)]
        titles = ["bad lines" if name == "quarantined_lines" else name for name in seldom]
        numbers = ["landed", "in table", *titles, "rows", "bytes"]
        shown = columns(found.by, *numbers, "all in", numbers=numbers)
        for group in found.groups:
            add(shown, *_cells(group, seldom))
        print_table(to, shown)
    elif not found.errors:  # Otherwise it is not known whether one has.
        when = "lately" if found.left_out else "yet"
        say(to, f"  {nothing} has landed {when}")
    if found.left_out:
        others = "on other days" if found.by == "day" else "on other days or in other partitions"
        say(to, f"  {plural(found.left_out, 'file')} landed {others}, not counted here")
    open_ones = [group for group in found.groups if not group.complete]
    for group in [*open_ones, *([] if open_ones else found.groups[:1])][:SENTENCES]:
        say(to, f"  {group.sentence}")
    for each in found.passed_over:
        names = plural(each.files, "name")
        say(to, f"  {names} passed over: {IN_WORDS[each.reason]}; for example {each.some[0]}")
    for error in found.errors:
        say(to, f"  {error}")


def _cells(group: Group, seldom: Sequence[str]) -> list[object]:
    return [
        group.name,
        group.landed,
        group.in_table,
        *(getattr(group, name) for name in seldom),
        group.rows,
        in_words(group.bytes),
        {True: "yes", False: "NO", None: "?"}[group.complete],
    ]


def show_files(rows: Sequence[FileRow], *, more: int) -> None:
    """Print files, one line each."""
    if not rows:
        return
    to = console()
    several = len({row.standing.source for row in rows}) > 1
    shown = columns(
        "landed", "state", "entry", "bytes", "path", numbers=("entry", "bytes"), wide=("path",)
    )
    for row in rows:
        one = row.standing
        reason = "" if one.reason is None else f" ({one.reason})"
        gone = ", deleted" if one.deleted else ", overwritten" if one.overwritten else ""
        at = one.day if gone else second(one.at)
        add(
            shown,
            at,
            f"{one.state.value}{reason}{gone}",
            None if one.entry is None else str(one.entry),
            in_words(one.size),
            one.key if several else one.path,
        )
    print_table(to, shown)
    say_more(to, more)
