"""`blizzard retract`: take the rows of source files out of the table."""

from collections import Counter
from dataclasses import dataclass
from typing import Annotated

import typer

from blizzard.cli.output import One, open_reader
from blizzard.cli.rows.rewriting import DataFileRow, RewriteCommand, file_rows, ingest_of
from blizzard.journal.source_names import the_key
from blizzard.log_questions import asked_of
from blizzard.model.locations import OpenReader
from blizzard.model.settings import PipelineSettings
from blizzard.rewrite.replace import exchange_of, replace_rows
from blizzard.rewrite.retract import Retracted, plan_retraction
from blizzard.rewrite.retract import retract as append_retraction
from blizzard.service import ServiceRunner
from lakebed.clock import Clock
from lakebed.deltalog import tables
from lakebed.errors import ObjectMissing
from lakebed.storage.store import Reader, Store
from lakebed.telemetry.levels import LogFormat, LogLevel
from lakebed.telemetry.logs import log_events
from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    Files,
    Folders,
    Output,
    Shape,
    Sure,
)
from lakebed.terminal.console import console, is_are, plural, print_line, say, say_first
from lakebed.types import Commit
from lakebed.units import in_words

FEW = 10


def retract(
    context: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="Source files, named as for `blizzard why`; without --yes their whole names are "
            "shown.",
        ),
    ],
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    other: Annotated[
        str | None,
        typer.Option(
            "--replace",
            metavar="OTHER",
            help="A source file whose rows take their place; it may be SOURCE itself.",
        ),
    ] = None,
    rows_deleted: Annotated[
        bool,
        typer.Option(
            "--rows-deleted",
            help="Rows that cannot be told apart from others are deleted already, by their values.",
        ),
    ] = False,
    yes: Sure = False,
    output: Shape = Output.TEXT,
) -> None:
    """Take the rows of source files out of the table, or put those of another in their place.

    Data files that also hold other rows are rewritten on Spark; penguin commits it all at once.
    """
    with RewriteCommand.of(context, files, folders, pipeline, output) as command:
        settings, clock = command.settings, command.around.clock
        keys, new = _keys(settings, sources, other, clock)

        def plan(opens: OpenReader, reader: Reader) -> Retracted:
            some = keys
            if new is not None:
                some = exchange_of(reader, settings, keys, new, opens, now=clock.now()).keys
            return Retracted(
                found=plan_retraction(reader, settings, some, rows_deleted=rows_deleted)
            )

        def apply(store: Store, runner: ServiceRunner, _looked: object) -> Retracted:
            if new is None:
                return append_retraction(
                    store, settings, keys, runner, clock=clock, rows_deleted=rows_deleted
                )
            warn = log_events(LogLevel.WARN, LogFormat.TEXT)
            ingest = ingest_of(command.loaded, settings, runner, clock, warn)
            exchange = exchange_of(store, settings, keys, new, open_reader, now=clock.now())
            return replace_rows(
                store, exchange, runner, ingest, open_reader, rows_deleted=rows_deleted
            )

        done = command.run(sure=yes, plan=plan, apply=apply)
    if output is Output.JSON:
        print_line(retraction_row(settings, done, new))
    else:
        _show(settings, done, new, sure=yes)
    raise typer.Exit(FAILED if (done.found.rows.files or new) and not yes else DONE)


def _keys(
    settings: PipelineSettings, names: list[str], other: str | None, clock: Clock
) -> tuple[tuple[str, ...], str | None]:
    """Return the source files that are named, and the new one, as `source:path`."""
    scope = asked_of(settings, clock)
    if scope.store is None and other is None:
        raise ObjectMissing("the table has no folder", path=settings.sink.table_uri)
    new = None if other is None else the_key(other, scope, listing=True)
    # With new content, a file may be named that the journal does not know.
    return tuple(the_key(name, scope, listing=new is not None) for name in names), new


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """One source file; the rows are those that leave the table, as far as they are known."""

    source: str
    path: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractionRow:
    """What a retraction takes out; `entry` is None where nothing was written."""

    pipeline: str
    table_uri: str
    entry: int | None
    sources: tuple[SourceRow, ...]
    rows: int
    bad_lines: int
    removed: tuple[DataFileRow, ...]
    rewritten: tuple[DataFileRow, ...]
    searched: tuple[DataFileRow, ...]
    replaced_by: str | None
    """The source file whose rows come in their place."""
    new_rows: int | None
    """None where it was not read."""
    new_bad_lines: int | None


def retraction_row(
    settings: PipelineSettings, done: Retracted, other: str | None = None
) -> RetractionRow:
    """Return what was taken out or, where nothing was done, what would be."""
    found, rows = done.found, _rows(done)
    return RetractionRow(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        entry=done.entry,
        sources=tuple(
            SourceRow(source=one.source, path=one.path, rows=rows.get(one.key, 0))
            for one in found.sources
        ),
        rows=sum(rows.values()),
        bad_lines=found.waiting_lines,
        removed=file_rows(found.rows.whole),
        rewritten=file_rows(found.rows.mixed),
        searched=file_rows(found.rows.unnamed),
        replaced_by=_new_name(done) or other,
        new_rows=None if done.content is None else sum(one.rows for one in done.content.records),
        new_bad_lines=None
        if done.content is None
        else sum(one.quarantined for one in done.content.records),
    )


def _new_name(done: Retracted) -> str | None:
    return None if done.content is None else done.content.records[0].key


def _rows(done: Retracted) -> Counter[str]:
    if done.entry is not None:
        return Counter(done.rows)
    return Counter(done.found.rows.rows) + Counter(done.found.rows.counted)


def _show(settings: PipelineSettings, done: Retracted, other: str | None, *, sure: bool) -> None:
    to, found, rows = console(), done.found, _rows(done)
    count = plural(len(found.sources), "source file")
    say(to, f"pipeline {settings.name}: {plural(sum(rows.values()), 'row')} of {count}")
    say_first(
        to, [f"{one.key}: {plural(rows.get(one.key, 0), 'row')}" for one in found.sources], 10
    )
    if not other and (not found.rows.files or (sure and done.entry is None)):
        whose = "its" if len(found.sources) == 1 else "their"
        say(to, f"  none of {whose} rows is in the table; nothing was changed")
        if found.waiting_lines:
            lines = plural(found.waiting_lines, "bad line")
            say(to, f"  {lines} of them in quarantine: blizzard dlq discard gives those up")
        return
    for what, files in (
        ("removed, with no other rows", found.rows.whole),
        ("rewritten without them", found.rows.mixed),
        ("rewritten without them, told apart by _file", found.rows.unnamed),
    ):
        if files:
            # What is rewritten is written by now; what is removed goes with the commit.
            were = "was" if len(files) == 1 else "were"
            done_by = is_are(len(files)) if files is found.rows.whole else were
            verb = done_by if sure else "to be"
            size = in_words(sum(one.size for one in files))
            say(to, f"  {plural(len(files), 'data file')} ({size}) {verb} {what}:")
            say_first(to, [one.path for one in files], FEW, indent="    ")
    if found.waiting_lines:
        verb = "given up" if sure else "to be given up"
        say(to, f"  {plural(found.waiting_lines, 'bad line')} in quarantine {verb}")
    if done.content is not None:
        new = done.content.records[0]
        bad = f", {plural(new.quarantined, 'bad line')} in quarantine" if new.quarantined else ""
        say(to, f"  {plural(new.rows, 'row')} of {new.key} in their place{bad}")
    elif other is not None:
        say(to, f"  the rows of {other} are to come in their place")
    if sure:
        _show_next(settings, done)
    elif other is not None:
        say(to, f"add --yes to do it; {other} is read now, and nothing else is read again")
    else:
        say(to, "add --yes to do it; the source files stay known and are not read again")


def _show_next(settings: PipelineSettings, done: Retracted) -> None:
    to, sink = console(), settings.sink
    inlined = sink.commit is Commit.INLINE
    when = "is committed" if inlined else "takes the rows out once penguin has committed it"
    say(to, f"  entry {done.entry} {when}")
    if not inlined:
        say(to, "  -> run penguin")
    days = tables.file_retention(sink.table_uri, sink.storage_options).total_seconds() / 86_400
    say(
        to,
        f"  time travel still reads them until VACUUM deletes the files, {days:g} days after the "
        "commit at the earliest",
    )
