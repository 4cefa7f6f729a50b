"""`blizzard --dry-run`: the next batch as a table, and why each other file is not in it."""

import os
from collections import Counter
from dataclasses import dataclass, field

from rich.console import Console

from blizzard.answers.explain import Explanation, explain
from blizzard.answers.source_status import QueueStatus, queues_of
from blizzard.cli.output import looked_with, open_reader
from blizzard.discover.skip_reason import IN_WORDS, SkippedFile, SkipSummary
from blizzard.log_questions import (
    TableOf,
    asks_passed_over,
    asks_retention,
    asks_the_log,
    checks_schema,
)
from blizzard.model.files import SourceFile, WorkUnit
from blizzard.model.locations import OpenReader, source_uris_of
from blizzard.model.settings import PipelineSettings
from blizzard.model.source.forecast import weight
from blizzard.service import open_queue
from lakebed.clock import Clock
from lakebed.locations import place_of
from lakebed.partition import PartitionValues
from lakebed.telemetry.events import code_of
from lakebed.telemetry.levels import LogFormat
from lakebed.terminal.arguments import Outcome, Output, exit_code_of
from lakebed.terminal.console import (
    INLINED,
    add,
    columns,
    console,
    path_end,
    plural,
    print_line,
    print_table,
    say,
    second,
)
from lakebed.types import Codec
from lakebed.units import in_words

LARGE = 512 * 1024 * 1024
FEW = 20
"""How many partitions of a long list are shown to a person."""


def dry_run(
    pipelines: tuple[PipelineSettings, ...],
    output: Output,
    table_of: TableOf,
    log_format: LogFormat = LogFormat.TEXT,
) -> int:
    """Print what the next batch of each pipeline would do, or why there would be none."""
    outcome = Outcome(log_format)
    for pipeline in pipelines:
        with outcome.of(pipeline.name, exit_code_of):
            with looked_with(pipeline.name, output) as opens:
                found = explained(pipeline, pipelines, table_of, opens)
            explanation(found, output, queues_of(pipeline, open_queue))
            if found.refusal is not None:
                raise found.refusal
    return outcome.code


def explained(
    pipeline: PipelineSettings,
    all_of_them: tuple[PipelineSettings, ...],
    table_of: TableOf,
    opens: OpenReader = open_reader,
) -> Explanation:
    """Return what the next batch of a pipeline would do, started with the others beside it."""
    return explain(
        pipeline,
        opens,
        parallelism=os.cpu_count() or 1,
        clock=Clock(),
        log_knows_pipeline=asks_the_log(pipeline),
        passed_over=asks_passed_over(pipeline),
        beside={
            other.name: source_uris_of(other)
            for other in all_of_them
            if other is not pipeline
            and place_of(other.sink.table_uri).same(place_of(pipeline.sink.table_uri))
        },
        check_schema=checks_schema(pipeline, table_of),
        retention=asks_retention(pipeline),
    )


def explanation(found: Explanation, output: Output, queues: tuple[QueueStatus, ...] = ()) -> None:
    """Print what a batch would do, and why some files are not in it."""
    if output is Output.JSON:
        print_line(plan_row(found, queues))
        return
    to = console()
    for queue in queues:
        say(to, f"pipeline {found.pipeline}: {queue.sentence()}")
    if found.refusal is not None:
        # A run waits for what can end by itself; anything else keeps it from starting.
        what = "a run would read nothing" if found.refusal.retryable else "a start would be refused"
        say(to, f"pipeline {found.pipeline}: {what} [{code_of(found.refusal)}]")
        return
    files = _files(found)
    amount = f"{plural(len(files), 'file')} ({in_words(sum(file.to_read for file in files))})"
    units = plural(len(found.units), "unit")
    what = f"batch {found.entry} would read {amount} in {units}" if files else "nothing to read"
    say(to, f"pipeline {found.pipeline}: {what} into {found.table_uri}")
    if found.looks_at:
        say(
            to,
            f"  {in_words(found.looks_at)} of them would be looked at first: no columns are "
            "declared, and none have been found so far",
        )
    if files:
        _show_taken(to, found, files)
    _show_passed(to, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A file of a unit; `bytes` is the part of it that the unit reads, None for all of it."""

    path: str
    size: int
    bytes: tuple[int, int] | None
    format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRow:
    """The files that one task would read."""

    unit: str
    partition_values: PartitionValues
    files: tuple[FileRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotTakenRow:
    """The files of a source that are not taken for one reason."""

    source: str
    summary: SkipSummary = field(metadata=INLINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRow:
    """A file that is not taken."""

    source: str
    file: SkippedFile = field(metadata=INLINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRow:
    """Why there would be no batch."""

    code: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A plan, in the keys that docs/operations.md promises."""

    pipeline: str
    table_uri: str
    entry: int
    files: int
    bytes: int
    units: tuple[UnitRow, ...]
    not_taken: tuple[NotTakenRow, ...]
    left_out: tuple[LeftOutRow, ...]
    """All but those that are in the table already, and of very many with one reason the first."""
    refusal: RefusalRow | None
    looks_at: int
    """Bytes that are looked at first, to find the columns."""
    notifications: tuple[QueueStatus, ...]
    """The queues that tell of new files; no message is taken from them."""


def plan_row(found: Explanation, queues: tuple[QueueStatus, ...] = ()) -> PlanRow:
    """Return everything that is known of the next batch."""
    files, refusal = _files(found), found.refusal
    return PlanRow(
        pipeline=found.pipeline,
        table_uri=found.table_uri,
        entry=found.entry,
        files=len(files),
        bytes=sum(file.to_read for file in files),
        units=tuple(_unit_row(unit) for unit in found.units),
        not_taken=tuple(
            NotTakenRow(source=source, summary=one)
            for source, finding in found.findings.items()
            for one in finding.not_taken
        ),
        left_out=tuple(
            LeftOutRow(source=source, file=one)
            for source, finding in found.findings.items()
            for one in finding.passed
        ),
        refusal=(
            None if refusal is None else RefusalRow(code=code_of(refusal), error=str(refusal))
        ),
        looks_at=found.looks_at,
        notifications=queues,
    )


def _unit_row(unit: WorkUnit) -> UnitRow:
    return UnitRow(
        unit=unit.name,
        partition_values=unit.partition_values,
        files=tuple(
            FileRow(
                path=file.key,
                size=file.size,
                bytes=(file.part.start, file.part.end) if file.part else None,
                format=file.form.format.value,
            )
            for file in unit.files
        ),
    )


def _files(found: Explanation) -> list[SourceFile]:
    """Return the files of a plan, one that is cut into parts once."""
    return list({file.key: file for unit in found.units for file in unit.files}.values())


def _show_taken(to: Console, found: Explanation, files: list[SourceFile]) -> None:
    shown = columns(
        "source", "partition", "files", "bytes", "units", "for example",
        numbers=("files", "bytes", "units"), wide=("source", "partition", "for example"),
    )  # fmt: skip
    groups: dict[tuple[str, str], list[SourceFile]] = {}
    for file in files:
        groups.setdefault((file.source, _partition(file.partition_values)), []).append(file)
    # A unit may hold files of two sources; it is counted for both.
    units = Counter(
        place
        for unit in found.units
        for place in {(file.source, _partition(file.partition_values)) for file in unit.files}
    )
    for (source, partition), group in list(groups.items())[:FEW]:
        size = in_words(sum(file.to_read for file in group))
        add(
            shown,
            source,
            partition or None,
            len(group),
            size,
            units[source, partition],
            path_end(group[0].path, _room(to)),
        )
    print_table(to, shown)
    if len(groups) > FEW:
        say(to, f"  ... and {plural(len(groups) - FEW, 'more partition')}")
    parts = Counter(file.key for unit in found.units for file in unit.files)
    for file in files:
        if note := _cut_note(file, parts[file.key]):
            say(to, f"  {file.key}  {in_words(file.size)}  {note}")


def _show_passed(to: Console, found: Explanation) -> None:
    summed = [
        (source, one) for source, finding in found.findings.items() for one in finding.not_taken
    ]
    if not summed:
        return
    say(to, "not taken:")
    shown = columns(
        "source", "files", "bytes", "why", "for example",
        numbers=("files", "bytes"), wide=("source", "why", "for example"),
    )  # fmt: skip
    for source, one in summed:
        why = IN_WORDS[one.reason]
        if one.until is not None:
            why = f"{why}, the first at {second(one.until)} UTC"
        if one.detail is not None:
            why = f"{why} ({'the first one: ' if one.files > 1 else ''}{one.detail})"
        more = one.files - len(one.some)
        some = [path_end(path, _room(to)) for path in one.some]
        names = [*some, f"... and {more:,} more"] if more else some
        add(shown, source, one.files, in_words(one.bytes), why, names)
    print_table(to, shown)


def _room(to: Console) -> int:
    """Return how wide an example may be, so that the reasons beside it are not squeezed."""
    return max(to.width - 52, 28)


def _partition(values: PartitionValues) -> str:
    return "/".join(f"{key}={value}" for key, value in values.items())


def _cut_note(file: SourceFile, parts: int) -> str:
    """Return how many tasks share a file, or why they cannot, and what is left of it, in words."""
    notes = []
    if file.skip:
        where = f"; {in_words(file.to_read)} left" if file.unread else ""
        what = "record" if file.form.is_documents else "line"
        notes.append(f"{plural(file.skip, what)} of it read before{where}")
    if parts > 1:
        notes.append(f"in {parts} parts")
    elif weight(file) > LARGE and (why := _why_whole(file)):
        notes.append(f"in one part: {why}")
    return ", ".join(notes)


def _why_whole(file: SourceFile) -> str | None:
    """Return why tasks cannot share a file, in words; None where they can."""
    if file.codec is not Codec.NONE:
        return f"{file.codec} cannot be cut"
    if file.form.is_documents:
        return "JSON documents cannot be cut"
    return "where its rest begins is not known" if file.skip and not file.unread else None
