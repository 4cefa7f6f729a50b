"""`blizzard compact`: put small data files together, and what a run does of it by itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from blizzard.cli.output import One
from blizzard.cli.rows.rewriting import RewriteCommand
from blizzard.events import (
    CompactionFailed,
    CompactionGaveWay,
    CompactionStarted,
    FilesCompacted,
)
from blizzard.execute.runner import Rewriter, Runner
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from blizzard.plan.small_files import Group
from blizzard.renewal import Compact
from blizzard.rewrite.compact import Compacted, KnownOrigins, Partition, plan_compaction
from blizzard.rewrite.compact import compact as put_together
from blizzard.rewrite.transaction import PromotionWaits
from blizzard.service import CompactOf
from lakebed.clock import Clock
from lakebed.errors import LakeError, ObjectMissing
from lakebed.storage.store import Store
from lakebed.telemetry.events import Emit, code_of
from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    USAGE,
    Files,
    Folders,
    Output,
    Shape,
    Sure,
)
from lakebed.terminal.console import console, print_line, say, say_error, say_first
from lakebed.types import Commit
from lakebed.units import in_words, is_are, plural

FEW = 10


def compact(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="PIPELINE", help="The pipeline, if there are several.")
    ] = None,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    partition: Annotated[
        str | None,
        typer.Option(metavar="KEY=VALUE", help="Only this partition: date=2024-01-01/hour=05."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")
    ] = False,
    at_once: Annotated[
        bool, typer.Option("--now", help="Take files that are younger than quiet_secs, too.")
    ] = False,
    yes: Sure = False,
    output: Shape = Output.TEXT,
) -> None:
    """Merge the small data files of each partition into files of about file_size_mb.

    They are rewritten on Spark; no row changes, and penguin commits it all at once.
    """
    _check_options(yes, dry_run)
    values = _partition(partition)
    with RewriteCommand.of(context, files, folders, name or pipeline, output) as command:
        settings, clock = command.settings, command.around.clock
        if at_once:
            settings = _without_quiet(settings)

        done = command.run(
            sure=yes,
            plan=lambda _opens, reader: Compacted(
                found=plan_compaction(reader, settings, now=clock.now(), partition=values)
            ),
            apply=lambda store, runner, looked: put_together(
                store,
                settings,
                runner,
                clock=clock,
                partition=values,
                progress=looked.rewritten,
            ),
        )
    if output is Output.JSON:
        print_line(compaction_row(settings, done))
    else:
        _show(settings, done, sure=yes)
    raise typer.Exit(_exit_code(done, sure=yes, dry_run=dry_run))


def _check_options(yes: bool, dry_run: bool) -> None:
    if yes and dry_run:
        say_error("error: --yes and --dry-run contradict each other")
        raise typer.Exit(USAGE)


def _without_quiet(settings: PipelineSettings) -> PipelineSettings:
    """Return settings that take files however young they are."""
    now = replace(settings.sink.compact, quiet=0.0)
    return replace(settings, sink=replace(settings.sink, compact=now))


def _exit_code(done: Compacted, *, sure: bool, dry_run: bool) -> int:
    groups = done.found.groups if done.found else ()
    if sure:
        return FAILED if done.failed or done.gave_way else DONE
    return FAILED if groups and not dry_run else DONE


def _partition(text: str | None) -> Partition:
    found: dict[str, str | None] = {}
    for part in filter(None, (text or "").strip("/").split("/")):
        key, equals, value = part.partition("=")
        if not key or not equals:
            say_error(f"error: --partition {text!r}: write date=2024-01-01")
            raise typer.Exit(USAGE)
        found[key] = None if value in ("", "__HIVE_DEFAULT_PARTITION__") else value
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """Files of one partition that become fewer."""

    partition: Mapping[str, str | None]
    files: int
    into: int
    rows: int
    bytes: int
    sorted_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRow:
    """What a compaction does; `entry` is None if nothing was written."""

    pipeline: str
    table_uri: str
    entry: int | None
    small_files: int
    young_files: int
    """Small files that are not `quiet_secs` old yet."""
    groups: tuple[GroupRow, ...]
    written: tuple[str, ...]
    failed: tuple[str, ...]
    gave_way: str | None


def compaction_row(settings: PipelineSettings, done: Compacted) -> CompactionRow:
    """Return what was put together or, where nothing was done, what would be."""
    found = done.found
    return CompactionRow(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        entry=done.entry,
        small_files=found.small if found else 0,
        young_files=found.young if found else 0,
        groups=tuple(map(_row, found.groups if found else ())),
        written=tuple(file.filename for one in done.merged for file in one.new),
        failed=tuple(f"{one.message} [{one.code}]" for one in done.failed),
        gave_way=done.gave_way,
    )


def _row(group: Group) -> GroupRow:
    return GroupRow(
        partition=dict(group.files[0].partition),
        files=len(group.files),
        into=group.outputs,
        rows=group.rows,
        bytes=group.size,
        sorted_by=group.sorted_by,
    )


def _show(settings: PipelineSettings, done: Compacted, *, sure: bool) -> None:
    to, row = console(), compaction_row(settings, done)
    files = sum(one.files for one in row.groups)
    into = len(row.written) if sure else sum(one.into for one in row.groups)
    if not row.groups:
        say(to, f"{settings.name}: {_why_nothing(settings, row)}")
        return
    if sure:
        done_with = sum(len(one.old) for one in done.merged)
        say(to, f"{settings.name}: {plural(done_with, 'data file')} became {into:,}")
    else:
        size = in_words(sum(one.bytes for one in row.groups))
        say(to, f"{settings.name}: {plural(files, 'data file')} ({size}) would become {into:,}")
    say_first(to, [_group_line(one) for one in row.groups], FEW)
    for failed in row.failed:
        say(to, f"  not compacted: {failed}")
    if row.gave_way is not None:
        say(to, f"  gave way: {row.gave_way}; nothing was changed, run it again later")
    if row.entry is not None and settings.sink.commit is Commit.PENGUIN:
        say(to, f"  entry {row.entry} waits for its commit: run penguin --once")
    if not sure:
        say(to, "  nothing was changed; --yes does it")


def _why_nothing(settings: PipelineSettings, row: CompactionRow) -> str:
    compact = settings.sink.compact
    small = plural(row.small_files, "small data file")
    if row.young_files:
        return (
            f"{small}, nothing is worth compacting: {row.young_files:,} of them "
            f"{is_are(row.young_files)} younger than {compact.quiet:g} seconds "
            "(sink.compact.quiet_secs); --now takes such files, too"
        )
    few = (
        f": no partition has {compact.min_files} of this pipeline (sink.compact.min_files), or "
        "enough for a file of full size"
    )
    return f"{small}, nothing is worth compacting{few if row.small_files else ''}"


def _group_line(one: GroupRow) -> str:
    where = "/".join(f"{key}={value or ''}" for key, value in one.partition.items())
    by = f", sorted by {', '.join(one.sorted_by)}" if one.sorted_by else ""
    counts = f"{plural(one.files, 'file')} -> {one.into:,}, {in_words(one.bytes)}"
    return f"{where or 'the table'}: {counts}{by}"


def compacts(clock: Clock) -> CompactOf:
    """Return what puts small files together between batches, for the pipelines of a run."""

    def compact_of(
        _loaded: BlizzardSettings, settings: PipelineSettings, runner: Runner, emit: Emit
    ) -> Compact:
        if not settings.sink.compact.enabled:
            return lambda _store, _at_end: None
        if not isinstance(runner, Rewriter):
            raise TypeError("this runner rewrites no data files")
        known = KnownOrigins()
        due = clock.seconds() + settings.sink.compact.every

        def try_it(store: Store, at_end: bool) -> int | None:
            nonlocal due
            now = clock.seconds()
            if now < due and not at_end:
                return None
            due = now + settings.sink.compact.every
            emit(CompactionStarted(pipeline=settings.name))
            return _reported(
                lambda: put_together(store, settings, runner, clock=clock, known=known),
                settings.name,
                emit,
            )

        return try_it

    return compact_of


def _reported(do: Callable[[], Compacted], pipeline: str, emit: Emit) -> int | None:
    """Compact, and report what came of it; that it did not work is no trouble of a batch."""
    try:
        done = do()
    except PromotionWaits as waits:
        emit(CompactionGaveWay(pipeline=pipeline, reason=waits.message))
        return None
    except ObjectMissing:
        return None  # There is no table yet.
    except LakeError as error:
        emit(CompactionFailed(pipeline=pipeline, code=code_of(error), error=str(error)))
        return None
    if done.gave_way is not None:
        emit(CompactionGaveWay(pipeline=pipeline, reason=done.gave_way))
    for one in done.failed:
        emit(CompactionFailed(pipeline=pipeline, code=one.code, error=one.message))
    if done.entry is not None:
        new = [file for one in done.merged for file in one.new]
        emit(
            FilesCompacted(
                pipeline=pipeline,
                entry=done.entry,
                files=sum(len(one.old) for one in done.merged),
                into=len(new),
                bytes=sum(file.size for file in new),
            )
        )
    return done.entry
