"""`blizzard schema promote`: fill a column from `_rescued` for rows that are in the table."""

from dataclasses import dataclass
from typing import Annotated

import typer

from blizzard.cli.output import One
from blizzard.cli.rows.rewriting import DataFileRow, RewriteCommand, file_rows, schema_check
from blizzard.model.rewriting import ActiveFile
from blizzard.model.settings import PipelineSettings
from blizzard.rewrite.promote import Promoted, PromotedField, plan_promotion
from blizzard.rewrite.promote import promote as append_promotion
from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    Files,
    Folders,
    Output,
    Shape,
    Sure,
)
from lakebed.terminal.console import console, plural, print_line, say, say_first
from lakebed.types import Commit
from lakebed.units import in_words

FEW = 10


def promote(
    context: typer.Context,
    field: Annotated[
        str,
        typer.Argument(
            metavar="FIELD", help="A column, or a field of a struct, such as user.plan."
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="The type of a column that is not declared."),
    ] = None,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    yes: Sure = False,
    output: Shape = Output.TEXT,
) -> None:
    """Fill a column from _rescued for the rows that are in the table.

    The data files with such values are rewritten on Spark; penguin replaces them in one commit.
    """
    wanted = PromotedField(field=field, type=kind)
    with RewriteCommand.of(context, files, folders, pipeline, output) as command:
        settings = command.settings
        check = schema_check(settings, command.table)
        done = command.run(
            sure=yes,
            plan=lambda _opens, reader: Promoted(
                found=plan_promotion(reader, settings, wanted, check)
            ),
            apply=lambda store, runner, _looked: append_promotion(
                store, settings, wanted, check, runner, clock=command.around.clock
            ),
        )
    if output is Output.JSON:
        print_line(promotion_row(settings, done))
    else:
        _show(settings, done, sure=yes)
    raise typer.Exit(FAILED if done.found.files and not yes else DONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionRow:
    """What a promotion rewrites; `entry` is None where nothing was written."""

    pipeline: str
    table_uri: str
    field: str
    type: str
    entry: int | None
    files: tuple[DataFileRow, ...]
    rows: int
    bytes: int
    promoted: int | None
    left: int | None
    waiting_entries: int


def promotion_row(settings: PipelineSettings, done: Promoted) -> PromotionRow:
    """Return what was rewritten or, where nothing was done, what would be looked into."""
    found, files = done.found, _files(done)
    return PromotionRow(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        field=found.target.shown,
        type=found.target.field.shown,
        entry=done.entry,
        files=file_rows(files),
        rows=sum(one.rows or 0 for one in files),
        bytes=sum(one.size for one in files),
        promoted=sum(one.taken for one in done.rewritten) if done.rewritten else None,
        left=sum(one.left for one in done.rewritten) if done.rewritten else None,
        waiting_entries=found.waiting,
    )


def _files(done: Promoted) -> tuple[ActiveFile, ...]:
    if not done.rewritten:
        return done.found.files
    return tuple(one.old for one in done.rewritten if one.new)


def _show(settings: PipelineSettings, done: Promoted, *, sure: bool) -> None:
    to, found = console(), done.found
    say(to, f"pipeline {settings.name}: {found.target.shown}, {found.target.field.shown}")
    if not found.files:
        say(to, "  no file of the table has values of it in _rescued")
    elif not sure:
        _show_plan(done)
    else:
        _show_done(settings, done)
    if found.waiting and not sure:
        entries = plural(found.waiting, "entry is", "entries are")
        say(to, f"  {entries} not committed yet; rows in there are not included")
    if found.files and not sure:
        say(to, "add --yes to do it")


def _show_plan(done: Promoted) -> None:
    to = console()
    _show_files("to be rewritten", _files(done))
    if done.found.unknown:
        some = plural(len(done.found.unknown), "of them was", "of them were")
        say(to, f"  {some} written by another program and may have no such value")


def _show_done(settings: PipelineSettings, done: Promoted) -> None:
    to = console()
    left = sum(one.left for one in done.rewritten)
    if done.entry is None:
        say(to, "  nothing was changed: no value in _rescued fits the column")
    else:
        _show_files("rewritten", _files(done))
        taken = sum(one.taken for one in done.rewritten)
        say(to, f"  {plural(taken, 'value')} moved from _rescued to the column")
    if left:
        say(
            to,
            f"  {plural(left, 'value')} left in _rescued: of another type, or the column has one",
        )
    if done.entry is not None:
        inlined = settings.sink.commit is Commit.INLINE
        when = "is committed" if inlined else "replaces the files once penguin has committed it"
        say(to, f"  entry {done.entry} {when}")


def _show_files(verb: str, files: tuple[ActiveFile, ...]) -> None:
    to = console()
    rows = plural(sum(one.rows or 0 for one in files), "row")
    size = in_words(sum(one.size for one in files))
    say(to, f"  {plural(len(files), 'file')} with {rows} ({size}) {verb}:")
    say_first(to, [one.path for one in files], FEW, indent="    ")
