"""`blizzard files`: what landed on each day, and whether all of it is in the table."""

import os.path
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Annotated

import typer

from blizzard.answers.answer import LANDED, FileStanding, FileState
from blizzard.answers.file_counts import By, DayOrPartition, Reconciliation
from blizzard.answers.report import DAYS, Question, Reconciler
from blizzard.cli.call import PipelineCall
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import open_reader, source_location
from lakebed.clock import Clock
from lakebed.locations import below, place_of
from lakebed.terminal.call import Output, reading
from lakebed.terminal.console import Line, Table, fields_of, more, print_error, second
from lakebed.units import in_words, plural, typed

MOST_LISTED = 20
SENTENCES = 7
"""The most incomplete days to describe in words."""
SELDOM = (
    "waiting", "failed", "lost", "journaled", "held", "changed", "removed", "altered",
    "discarded",     "retracted", "deleted", "overwritten", "quarantined_lines",
)  # fmt: skip
"""Columns that are shown only if one of their values is not zero."""


def files(
    call: PipelineCall,
    path: Annotated[str | None, typer.Argument(show_default=False)] = None,
    days: Annotated[list[str] | None, typer.Option("--day")] = None,
    partition: str | None = None,
    by: Annotated[By | None, typer.Option(show_default=False)] = None,
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help=f"List the files in this state: {', '.join(LANDED)}; repeatable.",
            autocompletion=lambda incomplete: [one for one in LANDED if one.startswith(incomplete)],
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1)] = MOST_LISTED,
    check: bool = False,
) -> None:
    """Show what landed on each day, and whether all of it is in the table.

    With PATH or --state it also lists files. Nothing is written.

    Args:
        path PATH: List only files whose paths begin with this: a local folder or file, a URI, or
            the start of a path below the source, such as date=2024-05-01/. It is not a pattern.
        days DAY: Only files that landed on this day (UTC): 2024-05-01, today or yesterday;
            repeatable.
        partition VALUE: Only files of this partition in their paths, such as date=2024-05-01.
        by: What to count files by: day, unless --partition is given.
        limit COUNT: List at most this many files.
        check: Exit with 1 unless everything is in the table.
    """
    for state in states or ():
        if state not in LANDED:
            raise typer.BadParameter(
                f"{state!r} is not a state of files that landed; choose from {', '.join(LANDED)}",
                param_hint="--state",
            )
    pipelines, clock = call.pipelines(), call.around.clock
    on = tuple(_day(day, clock.now()) for day in days or ())
    by = by or ("day" if partition is None else "partition")
    asked = _Asked(
        clock=clock,
        question=Question(by=by, days=on, partition=partition, most=max(DAYS, len(on))),
        states=frozenset(map(FileState, states or ())),
        path=path,
        limit=limit,
    )
    everywhere: list[Reconciliation] = []
    for settings in pipelines:
        with call.guard(settings.name):
            found = asked.show(call, settings)
            everywhere += found
            call.fail_if(any(one.errors for one in found))
            # A path may be one of another pipeline's sources.
            call.fail_if(check and (asked.misses(found) or (path is None and asked.lacks(found))))
    call.fail_if(check and path is not None and asked.lacks(everywhere))
    if path is not None and not asked.met:
        roots = sorted({source.uri for settings in pipelines for source in settings.sources})
        raise typer.BadParameter(
            f"{path} is in none of the sources: {', '.join(roots)}", param_hint="PATH"
        )


def _day(text: str, now: datetime) -> str:
    """Return a day in ISO 8601."""
    ago = {"today": 0, "yesterday": 1}.get(text)
    if ago is not None:
        return f"{now - timedelta(days=ago):%Y-%m-%d}"
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return date.fromisoformat(text).isoformat()
    except ValueError:
        pass
    raise typer.BadParameter(
        f"{text!r} is not a day; write it as 2024-05-01, today or yesterday", param_hint="--day"
    )


@dataclass(slots=True, kw_only=True)
class _Asked:
    """The selection and output options of a call."""

    clock: Clock
    question: Question
    """The question for each selected source."""
    states: frozenset[FileState]
    path: str | None
    limit: int
    met: bool = field(default=False)
    """Whether the path belongs to a source."""

    def show(self, call: PipelineCall, settings: PipelineSettings) -> list[Reconciliation]:
        """Print the answer for one pipeline, and return it."""
        lists = self.path is not None or bool(self.states)
        answers = []
        for question in self._questions(settings):
            self.met = True
            with reading(settings.name, call.output):
                reconciler = Reconciler(settings, open_reader, self.clock)
                found, files = reconciler.reconcile_and_list(question, self._lists)
            answers.append(found)
            lines = day_lines(found, nothing=_nothing(question, settings))
            call.show(lines, *(_documents(files, settings) if lists else [found]))
            call.show(file_lines(files, self.limit))
            if lists and call.output is Output.JSON:
                for error in found.errors:
                    print_error(f"error: {settings.name}: {error}")
        return answers

    def misses(self, found: Sequence[Reconciliation]) -> bool:
        """Whether a landed file is not in a final state."""
        groups = (group for one in found for group in one.groups)
        return any(group.landed and not group.complete for group in groups)

    def lacks(self, found: Sequence[Reconciliation]) -> bool:
        """Whether no file landed, on a requested day or at all."""
        landed = {group.name for one in found for group in one.groups if group.landed}
        asked = self.question
        if asked.by == "day" and asked.days:
            return not landed.issuperset(asked.days)
        is_narrowed = asked.days or self.path is not None or asked.partition is not None
        return bool(is_narrowed) and not landed

    def _lists(self, one: FileStanding) -> bool:
        """Whether a file is listed."""
        return one.state in self.states if self.states else self.path is not None

    def _questions(self, settings: PipelineSettings) -> Iterator[Question]:
        if self.path is None:
            yield self.question
            return
        for source, prefix in _places(self.path, settings):
            yield replace(self.question, source=source, prefix=prefix)


def _places(path: str, settings: PipelineSettings) -> Iterator[tuple[str | None, str]]:
    """Yield the sources that a path may belong to, with the path prefix below them.

    It may be typed as printed. An existing local file or folder in a source takes precedence over
    the same path relative to a source.
    """
    path = typed(path) or path
    is_uri = "://" in path
    is_place = is_uri or path.startswith(("/", "~"))
    here = os.path.expanduser(path)  # noqa: PTH111 - a name of no user stays as it is
    is_folder = path.endswith("/") or (not is_uri and os.path.isdir(here))  # noqa: PTH112 - as above
    if is_place or os.path.exists(here):  # noqa: PTH110 - as above
        place = path if is_uri else os.path.abspath(here)  # noqa: PTH100 - its links are not followed
        found = list(_below(f"{place.rstrip('/')}/" if is_folder else place, settings))
        for source, prefix in found:
            yield source, f"{prefix.rstrip('/')}/" if prefix and is_folder else prefix
        if found or is_place:
            return
    head = path.partition(":")[0]
    named = head if head in {source.name for source in settings.sources} else None
    for one in settings.sources:
        if named in (None, one.name):
            yield one.name, path if named is None else path.partition(":")[2]


def _below(place: str, settings: PipelineSettings) -> Iterator[tuple[str, str]]:
    """Yield the sources that contain a location, and its path below them.

    The path is empty for a source and for its parent folders: all of the source is selected.
    """
    for source in settings.sources:
        prefix = below(source.uri, place)
        if prefix is None and place.endswith("/") and place_of(place).holds(place_of(source.uri)):
            prefix = ""
        if prefix is not None:
            yield source.name, prefix


def _nothing(question: Question, settings: PipelineSettings) -> str:
    """Return the message for a query that matches no file."""
    roots = [source.uri for source in settings.sources if source.name == question.source]
    if not question.prefix or not roots:
        of = [f"partition {question.partition}"] if question.partition else []
        of += [" or ".join(question.days)] if question.days else []
        of += [f"source {question.source}"] if roots else []
        return f"no file{' of ' if of else ''}{', '.join(of)}"
    literal = " (it is not a pattern)" if set("*?[") & set(question.prefix) else ""
    return f"no file below {roots[0]} whose path begins with {question.prefix!r}{literal}"


def _documents(
    files: Sequence[FileStanding], settings: PipelineSettings
) -> Iterator[dict[str, object]]:
    """Yield files with the keys documented in docs/answers.md."""
    roots = {source.name: open_reader(source_location(source)) for source in settings.sources}
    for one in files:
        uri = roots[one.source].describe(one.path)
        yield {"pipeline": settings.name, "uri": uri, **fields_of(one), "day": one.day}


def day_lines(found: Reconciliation, *, nothing: str) -> Iterator[Line]:
    """Yield the days, or partitions, of a pipeline, and what is missing.

    `nothing` names the requested files, in case none of them has landed.
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
    elif not found.errors:  # Otherwise it is unknown whether one has.
        yield f"  {nothing} has landed {'lately' if found.left_out else 'yet'}"
    if found.left_out:
        others = "on other days" if found.by == "day" else "on other days or in other partitions"
        yield f"  {plural(found.left_out, 'file')} landed {others}, not counted here"
    open_ones = [group for group in found.groups if not group.complete]
    for group in [*open_ones, *([] if open_ones else found.groups[:1])][:SENTENCES]:
        yield f"  {group.sentence}"
    for each in found.skipped_names:
        names = plural(each.files, "name")
        yield f"  {names} ignored: {each.reason.words}; for example {each.some[0]}"
    yield from (f"  {error}" for error in found.errors)


def _cells(group: DayOrPartition, seldom: Sequence[str]) -> list[object]:
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
