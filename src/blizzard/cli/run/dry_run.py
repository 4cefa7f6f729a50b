"""`blizzard --dry-run`: the next batch, and why each other file is not in it."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.status import QueueStatus
from blizzard.answers.status_reader import queues_of
from blizzard.cli.call import PipelineCall
from blizzard.discover.finding import Finding, SkipSummary
from blizzard.handoff.publish import CommitsBehind, check_commits
from blizzard.journal.admission import refuse_beside
from blizzard.journal.checkpoint import past_damage
from blizzard.journal.fence import started_before
from blizzard.model.settings import PipelineSettings
from blizzard.model.source.file import SourceFile
from blizzard.model.source.forecast import Forecast
from blizzard.model.stores import OpenReader, open_reader, source_uris_of
from blizzard.model.work import WorkUnit
from blizzard.notices.listener import open_queue
from blizzard.plan.trigger import learned
from blizzard.proposal import BatchProposal, plan_batch
from blizzard.rewrite.replace import Renewed, renewal
from blizzard.table_rules import TableOf, checks_schema
from lakebed.clock import Clock
from lakebed.documents.entry import Started
from lakebed.errors import JournalLost, LakeError
from lakebed.layout import PartitionValues
from lakebed.locations import place_of
from lakebed.telemetry.events import code_of
from lakebed.terminal.call import reading
from lakebed.terminal.console import (
    Line,
    Table,
    fields_of,
    first,
    path_end,
    picked,
    print_error,
    second,
    text_width,
)
from lakebed.units import in_words, plural

FEW = 20
"""The most partitions to print."""
Queues = tuple[QueueStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBatch:
    """The next batch as planned now, and why a start would be refused, if so."""

    pipeline: str
    table_uri: str
    entry: int
    findings: Mapping[str, Finding]
    units: tuple[WorkUnit, ...]
    changed: tuple[SourceFile, ...] = ()
    """Files whose new content is to replace their rows, before the batch."""
    renewed: Renewed = field(default_factory=Renewed)
    """What would become of those, as far as known before they are read."""
    refusal: LakeError | None = None
    """Why a start would be refused before this batch."""

    @property
    def files(self) -> list[SourceFile]:
        """Return the files of the batch, without repeating split files."""
        return list({file.key: file for unit in self.units for file in unit.files}.values())

    @property
    def not_replaced(self) -> dict[str, str | None]:
        """Return why the rows of changed files would stay; None for those that are replaced."""
        renewed = self.renewed
        failed = {one.key: one.failure.message for one in renewed.failed if one.failure}
        return {
            file.key: None if file.key in renewed.keys else failed.get(file.key, renewed.waits)
            for file in self.changed
        }


def explain(
    settings: PipelineSettings,
    open_reader: OpenReader,
    *,
    parallelism: int,
    clock: Clock,
    beside: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    check_schema: Callable[[], None] = lambda: None,
) -> NextBatch:
    """Plan the next batch. Only readers are passed in, so nothing can be written.

    `beside` are the sources of other pipelines on the same table that start together with this one.
    """
    evidence = PipelineEvidence.read(settings, clock, check_schema, opening=open_reader)
    store, history, refusal = evidence.store, evidence.history, _refusal(evidence, beside)
    number, last = max(history.sequence, 0) + 1, history.last

    found = past_damage(
        history,
        lambda: BatchProposal.of({one.name: evidence.swept(one) for one in settings.sources}),
    )
    plan, renewed = BatchProposal(), Renewed()
    try:
        if not found.is_empty and refusal is None and store is not None and last is not None:
            check_commits(
                store,
                settings.name,
                last=last.sequence,
                now=clock.now(),
                retention=evidence.log.retention,
            )
    except CommitsBehind as behind:
        refusal = behind
    else:
        plan = plan_batch(
            found,
            settings,
            open_reader,
            parallelism=parallelism,
            clock=clock,
            started=lambda: (
                Started() if store is None else started_before(store, settings.name, number)
            ),
            forecast=learned(Forecast(), last, settings),
        )
        if plan.renew and refusal is None and store is not None:
            renewed = renewal(store, settings, plan.renew)
    return NextBatch(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        entry=number + len(renewed.entries),
        findings=found.findings,
        units=plan.units,
        changed=plan.renew,
        renewed=renewed,
        refusal=refusal,
    )


def _refusal(
    evidence: PipelineEvidence, beside: Mapping[str, Mapping[str, str]]
) -> LakeError | None:
    """Return why a start would be refused, also together with other pipelines."""
    refusal, settings = evidence.refusal(), evidence.settings
    if refusal is None and evidence.history.sequence < 0:
        try:
            refuse_beside(settings.name, source_uris_of(settings), beside)
        except JournalLost as taken:
            return taken
    return refusal


def show_next_batches(call: PipelineCall) -> None:
    """Print the next batch of each pipeline, or why there is none."""
    pipelines = call.pipelines()
    for pipeline in pipelines:
        with call.guard(pipeline.name):
            with reading(pipeline.name, call.output):
                found = explained(pipeline, pipelines, call.table_of)
            queues = queues_of(pipeline, open_queue)
            call.show(batch_lines(found, queues), batch_document(found, queues))
            if (warning := call.uncommitted(pipeline)) is not None:
                print_error(f"warning: {pipeline.name}: {warning}")
            if found.refusal is not None:
                raise found.refusal


def explained(
    pipeline: PipelineSettings,
    all_of_them: tuple[PipelineSettings, ...],
    table_of: TableOf,
) -> NextBatch:
    """Plan the next batch of a pipeline as started together with the others."""
    return explain(
        pipeline,
        open_reader,
        parallelism=os.cpu_count() or 1,
        clock=Clock(),
        beside={
            other.name: source_uris_of(other)
            for other in all_of_them
            if other is not pipeline
            and place_of(other.sink.table_uri).same(place_of(pipeline.sink.table_uri))
        },
        check_schema=checks_schema(pipeline, table_of),
    )


def batch_document(found: NextBatch, queues: Queues = ()) -> dict[str, object]:
    """Return the next batch with the keys documented in docs/operations.md."""
    files, refusal, findings = found.files, found.refusal, found.findings.items()
    again = {key for _source, finding in findings for key in finding.again}
    return {
        **picked(found, "pipeline table_uri entry"),
        "files": len(files),
        "bytes": sum(file.to_read for file in files),
        "units": [
            {
                **picked(unit, "unit=name partition_values"),
                "files": [
                    {
                        **picked(file, "path=key size"),
                        "bytes": (file.part.start, file.part.end) if file.part else None,
                        "format": file.form.format,
                        "reingested": file.key in again,
                    }
                    for file in unit.files
                ],
            }
            for unit in found.units
        ],
        "replaced": [
            {**picked(file, "path=key size"), "error": found.not_replaced[file.key]}
            for file in found.changed
        ],
        "not_taken": [
            {"source": source, **fields_of(one)}
            for source, finding in findings
            for one in finding.not_taken
        ],
        # Files already in the table are left out; very many with one reason are cut short.
        "left_out": [
            {"source": source, **fields_of(one)}
            for source, finding in findings
            for one in finding.passed
        ],
        "refusal": refusal and {"code": code_of(refusal), "error": str(refusal)},
        "notifications": queues,
    }


def batch_lines(found: NextBatch, queues: Queues = ()) -> Iterator[Line]:
    """Yield the planned batch for a person, and why some files are not in it."""
    yield from (f"pipeline {found.pipeline}: {queue.sentence()}" for queue in queues)
    if found.refusal is not None:
        # A run waits for transient causes; any other cause keeps it from starting.
        what = "a run would read nothing" if found.refusal.retryable else "a start would be refused"
        yield f"pipeline {found.pipeline}: {what} [{code_of(found.refusal)}]"
        return
    yield from _changed(found)
    files = found.files
    units = plural(len(found.units), "unit")
    what = f"batch {found.entry} would read {_amount(files)} in {units}"
    if files or not found.changed:
        what = what if files else "nothing to read"
        yield f"pipeline {found.pipeline}: {what} into {found.table_uri}"
    # Leave room for the reasons next to the example.
    room = max(text_width() - 52, 28)
    if files:
        yield from _taken(found, files, room)
    not_taken = [
        _why_not(source, one, room)
        for source, finding in found.findings.items()
        for one in finding.not_taken
    ]
    if not_taken:
        yield "not taken:"
        yield Table(("source", ">files", ">bytes", "why", "for example"), not_taken)


def _amount(files: Sequence[SourceFile]) -> str:
    return f"{plural(len(files), 'file')} ({in_words(sum(file.to_read for file in files))})"


def _changed(found: NextBatch) -> Iterator[str]:
    """Yield the files with new content, by what becomes of the rows of the old."""
    again = {key for finding in found.findings.values() for key in finding.again}
    groups: dict[str, list[SourceFile]] = {}
    for file in found.changed:
        error = found.not_replaced[file.key]
        what = "the old rows would be replaced" if error is None else f"not replaced: {error}"
        groups.setdefault(what, []).append(file)
    for file in found.files:
        if file.key in again:
            groups.setdefault("the old rows would stay", []).append(file)
    for what, files in groups.items():
        changed = f"{_amount(files)} changed after an earlier reading"
        yield f"pipeline {found.pipeline}: {changed}; {what}:"
        yield from first([file.key for file in files], FEW)


def _taken(found: NextBatch, files: list[SourceFile], room: int) -> Iterator[Line]:
    groups: dict[tuple[str, str], list[SourceFile]] = {}
    for file in files:
        groups.setdefault((file.source, _partition(file.partition_values)), []).append(file)
    # A unit with files of two sources counts for both.
    units = Counter(
        place
        for unit in found.units
        for place in {(file.source, _partition(file.partition_values)) for file in unit.files}
    )
    yield Table(
        ("source", "partition", ">files", ">bytes", ">units", "for example"),
        [
            (
                source,
                partition or None,
                len(group),
                in_words(sum(file.to_read for file in group)),
                units[source, partition],
                path_end(group[0].path, room),
            )
            for (source, partition), group in list(groups.items())[:FEW]
        ],
    )
    if len(groups) > FEW:
        yield f"  ... and {plural(len(groups) - FEW, 'more partition')}"


def _why_not(source: str, one: SkipSummary, room: int) -> tuple[object, ...]:
    why = one.reason.words
    if one.until is not None:
        why = f"{why}, the first at {second(one.until)} UTC"
    if one.detail is not None:
        why = f"{why} ({'the first one: ' if one.files > 1 else ''}{one.detail})"
    rest = one.files - len(one.some)
    names = [
        *(path_end(path, room) for path in one.some),
        *([f"... and {rest:,} more"] * bool(rest)),
    ]
    return source, one.files, in_words(one.bytes), why, names


def _partition(values: PartitionValues) -> str:
    return "/".join(f"{key}={value}" for key, value in values.items())
