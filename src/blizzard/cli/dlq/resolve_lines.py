"""`blizzard dlq replay` and `discard`: lines in quarantine are read again, or given up.

Source files that failed and were deleted since can be given up, too, or what was not read of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from blizzard.cli.dlq.bad_lines import word_for
from blizzard.cli.names import resolved
from blizzard.cli.output import One, load, tables_of, the_one
from blizzard.cli.rows.rewriting import commit, rewriter
from blizzard.cli.surroundings import Surroundings
from blizzard.log_questions import TableOf, asked_of, asks_passed_over
from blizzard.model.locations import sink_location
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from blizzard.model.source.part_way import is_part_way
from blizzard.model.source.unread import in_the_table
from blizzard.repair.retry import FailedSources, deleted, give_up
from blizzard.rewrite.replay import (
    ReplayOutcome,
    corrections,
    discard,
    in_place,
    lines_not_in_place,
    meant_lines,
    plan_replay,
    replay,
    table_of,
)
from lakebed.clock import Clock
from lakebed.errors import LakeError, ObjectMissing
from lakebed.storage.store import Store
from lakebed.telemetry.levels import LogFormat, LogLevel
from lakebed.telemetry.logs import log_events
from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    USAGE,
    Files,
    Folders,
    Output,
    Shape,
    Sure,
    complain,
    ends_on_error,
    exit_code_of,
)
from lakebed.terminal.console import (
    console,
    plural,
    print_line,
    say,
    say_error,
    say_first,
    say_more,
)
from lakebed.types import Commit
from lakebed.units import is_are

FEW = 10

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="GROUP|FILE",
        help="Groups of bad lines, as `blizzard dlq list` names them, or source files, as for "
        "`blizzard why`.",
    ),
]
All = Annotated[bool, typer.Option("--all", help="All lines that are waiting.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRow:
    """What was done with lines in quarantine; `entry` is None where nothing was."""

    pipeline: str
    table_uri: str
    entry: int | None
    lines: int
    """Lines that became rows or were discarded or, where nothing was done, would be looked at."""
    filtered: int
    """Lines that were read again and are passed over by now: they wait no longer."""
    left: int
    """Lines that were read again and still cannot be read."""
    files: tuple[str, ...] = ()
    """Source files that failed, are deleted from their source, and are given up, or their rest."""
    sources: tuple[str, ...] = ()
    """Source files that were named and have bad lines, as `source:path`."""


def dlq_replay(
    context: typer.Context,
    names: Names = None,
    every: All = False,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Read the lines of this file in their place: a corrected line for each line that "
            "`blizzard dlq show` prints, in its order.",
            exists=True,
            dir_okay=False,
            readable=True,
        ),
    ] = None,
    yes: Sure = False,
    output: Shape = Output.TEXT,
) -> None:
    """Read again, with the current configuration, lines that are set aside.

    Lines that can be read now become rows, on Spark; the others keep waiting. With --from they are
    read as corrected there.
    """
    loaded, settings, meant = _asked(names, every, files, folders, pipeline)
    around = Surroundings.of(context)
    if not yes:
        _show_plan(settings, meant, "read again", output, corrected=_corrected(source))
    try:
        done = _replay(settings, meant, loaded, around, _corrected(source))
        _commit(settings, done, tables_of(loaded, files, folders), around)
    except LakeError as trouble:
        complain(trouble, who=settings.name)
        raise typer.Exit(exit_code_of(trouble)) from None
    _tell(settings, done, "became rows", output)


def dlq_discard(
    context: typer.Context,
    names: Names = None,
    every: All = False,
    lost: Annotated[
        bool,
        typer.Option(
            "--deleted",
            help="All files that failed and were deleted from their source, also those of which a "
            "part is in the table.",
        ),
    ] = False,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    yes: Sure = False,
    output: Shape = Output.TEXT,
) -> None:
    """Give up lines that are set aside, or failed files that were deleted: they never become rows.

    Until then, a file that was deleted before it could be read keeps its day incomplete. Of a file
    that was deleted after a part of it was read, the rest is given up, and its rows stay.
    """
    loaded, settings, meant = _asked(names, every, files, folders, pipeline, lost=lost)
    names = meant
    if not yes:
        _show_plan(settings, meant, "discarded", output, files=_Files(names, lost=lost))
    try:
        store, around = _store(settings), Surroundings.of(context)
        clock = around.clock
        done, given_up = ReplayOutcome(unknown=frozenset(names or ())), FailedSources()
        if store is not None:
            if not lost:
                done = discard(store, settings, meant, clock=clock)
            if lost or names:
                wanted = frozenset(names) if names else None
                given_up, entry = give_up(
                    store,
                    settings.name,
                    wanted,
                    clock=clock,
                    passed_over=asks_passed_over(settings),
                )
                unknown = done.unknown & given_up.unknown
                done = replace(done, entry=done.entry if entry is None else entry, unknown=unknown)
            _commit(settings, done, tables_of(loaded, files, folders), around)
    except LakeError as trouble:
        complain(trouble, who=settings.name)
        raise typer.Exit(exit_code_of(trouble)) from None
    _tell(settings, done, "discarded", output, given_up)


@dataclass(frozen=True, slots=True)
class _Files:
    """Which source files that failed and were deleted are meant."""

    names: list[str] | None = None
    lost: bool = False

    def find(self, store: Store, settings: PipelineSettings) -> FailedSources:
        """Return them; nothing is written."""
        if not (self.lost or self.names):
            return FailedSources()
        wanted = frozenset(self.names) if self.names else None
        return deleted(store, settings.name, wanted, passed_over=asks_passed_over(settings))


def _asked(
    names: list[str] | None,
    every: bool,
    files: list[Path] | None,
    folders: list[Path] | None,
    pipeline: str | None,
    *,
    lost: bool = False,
) -> tuple[BlizzardSettings, PipelineSettings, list[str] | None]:
    """Return what is asked for; no names for all lines."""
    if every and lost:
        say_error("error: use --all for all bad lines, or --deleted for deleted files")
        raise typer.Exit(USAGE)
    if bool(names) + every + lost != 1:
        say_error("error: name groups or source files, or use --all")
        raise typer.Exit(USAGE)
    loaded = load(files, folders)
    settings = the_one(loaded, pipeline)
    if not names:
        return loaded, settings, None
    with ends_on_error(settings.name, exit_code_of):
        scope = asked_of(settings, Clock())
        return loaded, settings, list(resolved(names, [scope])[settings.name])


def _corrected(file: Path | None) -> list[bytes] | None:
    """Return the lines of a file of corrections; a line ends with a line feed."""
    return None if file is None else file.read_bytes().removesuffix(b"\n").split(b"\n")


def _store(settings: PipelineSettings) -> Store | None:
    place = sink_location(settings)
    try:
        return Store(place.uri, place.options)
    except ObjectMissing:
        return None  # The table's folder does not exist yet, so nothing is set aside.


def _replay(
    settings: PipelineSettings,
    names: list[str] | None,
    loaded: BlizzardSettings,
    around: Surroundings,
    corrected: Sequence[bytes] | None,
) -> ReplayOutcome:
    store = _store(settings)
    if store is None:
        return ReplayOutcome()
    with rewriter(loaded, around) as runner:
        return replay(
            store,
            settings,
            names,
            runner,
            clock=around.clock,
            emit=log_events(LogLevel.INFO, LogFormat.TEXT),
            corrected=corrected,
        )


def _commit(
    settings: PipelineSettings, done: ReplayOutcome, table_of: TableOf, around: Surroundings
) -> None:
    """Commit the entry of a pipeline that commits inline: no penguin is expected to."""
    if done.entry is not None and settings.sink.commit is Commit.INLINE:
        commit(settings, table_of(settings.name), around)


def _show_plan(
    settings: PipelineSettings,
    names: list[str] | None,
    verb: str,
    output: Output,
    files: _Files | None = None,
    corrected: Sequence[bytes] | None = None,
) -> None:
    """Print what would be done, and end the program."""
    lost = FailedSources()
    try:
        store = _store(settings)
        meant, in_vain, unknown, sources = 0, 0, frozenset(names or ()), frozenset[str]()
        if store is not None:
            if files is None or not files.lost:
                found = plan_replay(store, settings.name, names, table_of(settings))
                meant, unknown = meant_lines(store, found)
                sources = found.meant.sources
                if files is None:  # What is discarded need not be in its place.
                    in_vain = lines_not_in_place(store, found)
                    meant -= in_vain
                if corrected is not None:
                    corrections(store, in_place(found), corrected)
            if files is not None:
                lost = files.find(store, settings)
                unknown &= lost.unknown
    except LakeError as trouble:
        complain(trouble, who=settings.name)
        raise typer.Exit(exit_code_of(trouble)) from None
    if output is Output.JSON:
        _print(settings, ReplayOutcome(lines=meant, sources=sources), lost)
    elif meant or lost.records or not unknown:
        say(console(), f"pipeline {settings.name}: {_both(settings, meant, lost)} would be {verb}")
        say_first(console(), [f"bad lines of {key}" for key in sorted(sources)], FEW)
        _list(lost)
        _tell_in_vain(settings, in_vain)
        if meant or lost.records:
            say(console(), "add --yes to do it")
    _warn_of(lost)
    _complain_of(unknown)
    raise typer.Exit(FAILED if meant or lost.records or unknown else DONE)


def _both(settings: PipelineSettings, lines: int, lost: FailedSources) -> str:
    """Return in words how many lines and how many deleted files are meant."""
    in_part = sum(map(is_part_way, lost.records))
    told = [plural(lines, word_for(settings))] if lines or not lost.records else []
    for count, of in ((len(lost.records) - in_part, ""), (in_part, "the rest of ")):
        if count:
            files = plural(count, "source file")
            told.append(f"{of}{files} that failed and {is_are(count)} not there any more")
    return " and ".join(told)


def _list(lost: FailedSources) -> None:
    for record in lost.records[:FEW]:
        stays = in_the_table(record)
        say(console(), f"  {record.key}" + (f": {stays}; they stay there" if stays else ""))
    say_more(console(), len(lost.records) - FEW)


def _tell(
    settings: PipelineSettings,
    done: ReplayOutcome,
    verb: str,
    output: Output,
    lost: FailedSources | None = None,
) -> None:
    if output is Output.JSON:
        _print(settings, done, lost or FailedSources())
    else:
        to, word, given_up = console(), word_for(settings), lost or FailedSources()
        say(
            to,
            f"pipeline {settings.name}: {_both(settings, done.lines, given_up)} {verb}",
        )
        _list(given_up)
        if done.filtered:
            passed = plural(done.filtered, word)
            say(to, f"  {passed} passed over by source.skip_records, without a row")
        if left := done.left - done.not_in_place:
            keep = "keeps" if left == 1 else "keep"
            say(to, f"  {plural(left, word)} still cannot be read and {keep} waiting")
        _tell_in_vain(settings, done.not_in_place)
        if done.entry is not None:
            say(to, f"  recorded in entry {done.entry}")
    _warn_of(lost or FailedSources())
    _complain_of(done.unknown)
    raise typer.Exit(FAILED if done.unknown else DONE)


def _tell_in_vain(settings: PipelineSettings, lines: int) -> None:
    if lines:
        keep = "keeps" if lines == 1 else "keep"
        say(
            console(),
            f"  {plural(lines, word_for(settings))} {keep} waiting, of content that was to come "
            "in the place of rows and has not; blizzard dlq discard gives up such lines",
        )


def _print(settings: PipelineSettings, done: ReplayOutcome, lost: FailedSources) -> None:
    print_line(
        ResolvedRow(
            pipeline=settings.name,
            table_uri=settings.sink.table_uri,
            entry=done.entry,
            lines=done.lines,
            filtered=done.filtered,
            left=done.left,
            files=tuple(record.key for record in lost.records),
            sources=tuple(sorted(done.sources)),
        )
    )


def _warn_of(found: FailedSources) -> None:
    """Name the files that were meant and still stand as failed: only their bad lines are done."""
    for key, why in found.refused.items():
        say_error(f"warning: {key}: {why}")


def _complain_of(unknown: frozenset[str]) -> None:
    if unknown:
        listed = ", ".join(sorted(unknown))
        say_error(
            f"error: no bad lines of {listed} are waiting; blizzard dlq list shows what is. Of a "
            "file that failed and was deleted, a run has to notice first that it is gone"
        )
