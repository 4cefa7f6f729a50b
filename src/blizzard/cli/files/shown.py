"""How `blizzard files` shows days and files."""

from collections.abc import Iterator, Sequence

from blizzard.answers.file_counts import Group
from blizzard.answers.lifecycle import FileStanding
from blizzard.answers.report import Reconciliation
from blizzard.discover.skip_reason import IN_WORDS
from lakebed.terminal.console import Line, Table, more, second
from lakebed.units import in_words, plural

SENTENCES = 7
"""How many days that are not complete are told in words."""
SELDOM = (
    "waiting", "failed", "lost", "journaled", "held", "changed", "removed", "altered",
    "discarded",     "retracted", "deleted", "overwritten", "quarantined_lines",
)  # fmt: skip
"""Columns that are shown only where one of them has something to say."""


def day_lines(found: Reconciliation, *, nothing: str) -> Iterator[Line]:
    """Yield the days, or partitions, of a pipeline, and what is missing.

    `nothing` names the files that were asked about, for the case that none of them has landed.
    """
    yield f"pipeline {found.pipeline} -> {found.table_uri}"
    if found.groups:
        seldom = [name for name in SELDOM if any(getattr(one, name) for one in found.groups)]
        titles = ["bad lines" if name == "quarantined_lines" else name for name in seldom]
        numbers = ["landed", "in table", *titles, "rows", "bytes"]
        yield Table(
            (found.by, *(f">{title}" for title in numbers), "all in"),
            [_cells(group, seldom) for group in found.groups],
        )
    elif not found.errors:  # Otherwise it is not known whether one has.
        yield f"  {nothing} has landed {'lately' if found.left_out else 'yet'}"
    if found.left_out:
        others = "on other days" if found.by == "day" else "on other days or in other partitions"
        yield f"  {plural(found.left_out, 'file')} landed {others}, not counted here"
    open_ones = [group for group in found.groups if not group.complete]
    for group in [*open_ones, *([] if open_ones else found.groups[:1])][:SENTENCES]:
        yield f"  {group.sentence}"
    for each in found.passed_over:
        names = plural(each.files, "name")
        yield f"  {names} passed over: {IN_WORDS[each.reason]}; for example {each.some[0]}"
    yield from (f"  {error}" for error in found.errors)


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


def file_lines(files: Sequence[FileStanding], limit: int) -> Iterator[Line]:
    """Yield the first files, one row each."""
    if not files:
        return
    shown = files[:limit]
    several = len({one.source for one in shown}) > 1
    rows = []
    for one in shown:
        reason = "" if one.reason is None else f" ({one.reason})"
        gone = ", deleted" if one.deleted else ", overwritten" if one.overwritten else ""
        rows.append(
            (
                one.day if gone else second(one.at),
                f"{one.state.value}{reason}{gone}",
                None if one.entry is None else str(one.entry),
                in_words(one.size),
                one.key if several else one.path,
            )
        )
    yield Table(("landed", "state", ">entry", ">bytes", "path"), rows)
    yield from more(len(files) - limit)
