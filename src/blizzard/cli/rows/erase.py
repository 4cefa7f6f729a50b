"""`blizzard erase`: take rows out of the table by what they hold, and say who holds them still."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer

from blizzard.cli.output import (
    One,
    load,
    looked_with,
    tables_of,
    the_one,
    written_before,
)
from blizzard.cli.rows.erased import show
from blizzard.cli.rows.rewriting import commit, rewriter, table_log
from blizzard.cli.surroundings import Surroundings
from blizzard.log_questions import table_entry
from blizzard.log_questions import table_log as log_questions
from blizzard.model.locations import sink_location
from blizzard.model.predicate import parse
from blizzard.model.settings import PipelineSettings
from blizzard.rewrite.erase import Erased, FileWithRows, look
from blizzard.rewrite.erase import erase as append_erasure
from blizzard.rewrite.still_held import (
    BadLinesLeft,
    FilesInHistory,
    InHistory,
    OtherFile,
    SourceLeft,
    StillHeld,
    UnsearchedSource,
    Why,
    still_held,
)
from lakebed.storage.store import Reader, Store
from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    Files,
    Folders,
    Output,
    Shape,
    Sure,
    ends_on_error,
    exit_code_of,
)
from lakebed.terminal.console import print_line
from lakebed.types import Commit


def erase(
    context: typer.Context,
    where: Annotated[
        str,
        typer.Option(metavar="CONDITION", help="Which rows, such as \"user_id = 'x'\"."),
    ],
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    reason: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Why, for the journal; the condition is not kept."),
    ] = None,
    yes: Sure = False,
    output: Shape = Output.TEXT,
) -> None:
    """Take rows out of the table by their values, and show what still holds them.

    Data files that also hold other rows are rewritten on Spark; penguin commits it all at once.
    """
    loaded = load(files, folders)
    settings = the_one(loaded, pipeline)
    around = Surroundings.of(context)
    with ends_on_error(settings.name, exit_code_of), written_before(settings):
        predicate = parse(where)
        table = table_entry(settings, tables_of(loaded, files, folders))
        log, place = table_log(settings, table), sink_location(settings)
        if yes:
            with rewriter(loaded, around) as runner:
                done = append_erasure(
                    Store(place.uri, place.options),
                    settings,
                    predicate,
                    log,
                    runner,
                    clock=around.clock,
                    reason=reason,
                )
            if done.entry is not None and settings.sink.commit is Commit.INLINE:
                commit(settings, table, around)
        else:
            with looked_with(settings.name, output) as opens:
                done = Erased(found=look(opens(place), settings, predicate, log))
        with looked_with(settings.name, output) as opens:
            left = still_held(
                opens(place),
                settings,
                predicate,
                done.found,
                history_of(settings),
                log.origins,
                opens,
            )
    if output is Output.JSON:
        print_line(erasure_row(settings, done, left))
    else:
        show(settings, done, left, sure=yes)
    raise typer.Exit(FAILED if done.found.files and not yes else DONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedFileRow:
    """A data file with rows that leave; `rows` are all that are in it."""

    path: str
    rows: int | None
    bytes: int
    erased: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRow:
    """What an erasure takes out, and who holds it still; `entry` is None if nothing was written."""

    pipeline: str
    table_uri: str
    entry: int | None
    rows: int
    deleted: int
    """Rows that were deleted before, by deletion vectors, and that data files still hold."""
    every_row: bool
    removed: tuple[ErasedFileRow, ...]
    rewritten: tuple[ErasedFileRow, ...]
    data_files: tuple[OtherFile, ...]
    bad_lines: tuple[BadLinesLeft, ...]
    sources: tuple[SourceLeft, ...]
    sources_unknown: int
    possible_sources: tuple[SourceLeft, ...]
    unread: tuple[str, ...]
    not_searched: tuple[UnsearchedSource, ...]


def erasure_row(settings: PipelineSettings, done: Erased, left: StillHeld) -> ErasureRow:
    """Return what was taken out or, where nothing was done, what would be."""
    found = done.found
    return ErasureRow(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        entry=done.entry,
        rows=found.rows,
        deleted=found.deleted,
        every_row=found.is_everything,
        removed=tuple(_file(one) for one in found.files if one.is_whole),
        rewritten=tuple(_file(one) for one in found.files if not one.is_whole),
        data_files=left.data_files,
        bad_lines=left.bad_lines,
        sources=left.sources,
        sources_unknown=left.sources_unknown,
        possible_sources=left.possible_sources,
        unread=left.unread,
        not_searched=left.not_searched,
    )


def _file(one: FileWithRows) -> ErasedFileRow:
    file = one.file
    return ErasedFileRow(path=file.path, rows=file.rows, bytes=file.size, erased=one.rows)


def history_of(settings: PipelineSettings) -> FilesInHistory:
    """Return what asks the log for files of the table's past, and how long they are kept."""
    questions, sink = log_questions(settings), settings.sink

    def ask(paths: Collection[str]) -> dict[str, InHistory]:
        keeps = questions.retention()

        def told(why: Why, since: datetime | None) -> InHistory:
            return InHistory(why=why, deleted_from=None if since is None else since + keeps)

        found = {
            path: told(Why.REMOVED, one.removed_at) if one.removed else told(Why.ADDED, None)
            for path, one in questions.files(paths).items()
            if one.removed or one.in_table
        }
        others = [path for path in paths if path not in found]
        from lakebed.deltalog.table_files import change_files  # noqa: PLC0415 - it loads Arrow

        changes = change_files(Reader(sink.table_uri, sink.storage_options), frozenset(others))
        return found | {path: told(Why.CHANGES, since) for path, since in changes.items()}

    return ask
