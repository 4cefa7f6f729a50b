"""What a pipeline reports of its batches. Pure: facts in, events out."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from blizzard import events
from blizzard.discover.finding import Finding
from blizzard.discover.skip_reason import AMISS, IN_WORDS, Reason
from blizzard.model.event_time import row_partitions_of, rows_without_time
from blizzard.model.files import Effort, SourceFile, WorkUnit
from blizzard.model.progress import Done
from blizzard.model.settings import PipelineSettings
from lakebed.columns.field_path import format_path
from lakebed.documents.entry import Entry
from lakebed.documents.source_record import SourceRecord
from lakebed.telemetry.events import Event


def listed(
    pipeline: str, findings: Mapping[str, Finding], *, resting: int, bad_lines: int = 0
) -> Iterator[Event]:
    """Yield how much is waiting. What is beyond one batch is counted; its age is not checked."""
    files = [file for finding in findings.values() for file in finding.take]
    yield events.SourcesListed(
        pipeline=pipeline,
        pending=len(files) + sum(finding.left_over for finding in findings.values()),
        oldest=min((file.modified.timestamp() for file in files), default=None),
        resting=resting,
        amiss={reason.value: _amiss(findings, reason) for reason in AMISS},
        bad_lines=bad_lines,
        changed={
            source: finding.count(Reason.CHANGED)
            for source, finding in findings.items()
            if finding.swept
        },
    )


def resting(findings: Mapping[str, Finding], unfinished: Iterable[SourceRecord]) -> int:
    """Count the files that failed and are neither to be read now nor found to be gone."""
    found = {file.key for finding in findings.values() for file in finding.take}
    found |= {record.key for finding in findings.values() for record in finding.gone}
    return sum(
        record.failure is not None
        and not record.gone
        and record.source in findings
        and record.key not in found
        for record in unfinished
    )


def _amiss(findings: Mapping[str, Finding], reason: Reason) -> int:
    return sum(
        one.files for found in findings.values() for one in found.amiss if one.reason is reason
    )


def passed_over(
    pipeline: str, findings: Mapping[str, Finding], told: set[str]
) -> Iterator[events.NamesPassedOver]:
    """Yield the names that cannot be read, once for as long as they are the same."""
    for source, finding in findings.items():
        for one in finding.amiss:
            sign = f"{source}:{one.reason}:{one.files}:{one.some[0]}"
            if sign not in told:
                told.add(sign)
                yield events.NamesPassedOver(
                    pipeline=pipeline,
                    source=source,
                    reason=one.reason.value,
                    names=one.files,
                    example=one.some[0],
                    why=IN_WORDS[one.reason],
                )


def overwritten(
    settings: PipelineSettings, findings: Mapping[str, Finding], told: set[str]
) -> Iterator[events.SourceFileOverwritten]:
    """Yield the ingested files that are different objects now, once for each object."""
    uris = {source.name: source.uri.rstrip("/") for source in settings.sources}
    for source, finding in findings.items():
        for facts in finding.changed:
            sign = f"{source}:{facts.path}:{facts.etag}"
            if sign not in told:
                told.add(sign)
                yield events.SourceFileOverwritten(
                    pipeline=settings.name, path=f"{uris[source]}/{facts.path}"
                )


def started(
    pipeline: str,
    entry: int,
    files: tuple[SourceFile, ...],
    units: tuple[WorkUnit, ...],
    journal: str,
) -> Iterator[Event]:
    """Yield that a batch begins, and how much is in it."""
    yield events.BatchStarted(
        pipeline=pipeline,
        entry=entry,
        files=len(files),
        bytes=sum(file.to_read for file in files),
        units=len(units),
        planned=tuple((unit.name, len(unit.files), unit.to_read) for unit in units),
        journal=journal,
    )


def journaled(
    entry: Entry,
    settings: PipelineSettings,
    *,
    late: Collection[str],
    noticed: Collection[str] = frozenset(),
    effort: Effort,
    seconds: float,
    files: Iterable[SourceFile] = (),
) -> Iterator[Event]:
    """Yield the outcome of a batch: its failures, what it left out, and the batch as a whole."""
    name = settings.name
    for record in entry.sources:
        if record.failure is not None and not record.gone:
            yield _failed(name, entry.source_uris, record)
    gone = [record.path for record in entry.sources if record.gone]
    if gone:
        yield events.SourceFilesGone(
            pipeline=name, entry=entry.sequence, files=len(gone), example=gone[0]
        )
    for uri in entry.dlq:
        yield events.FailuresRecorded(pipeline=name, entry=entry.sequence, object=uri)
    yield from _set_aside(name, entry)
    yield from _without_column(name, entry)
    by = row_partitions_of(settings)
    if by is not None and (rows := rows_without_time(entry.files, by)):
        yield events.RowsWithoutTime(
            pipeline=name, entry=entry.sequence, field=format_path(by.timestamp_path), rows=rows
        )
    too_late = [record.path for record in entry.sources if record.key in late] if late else []
    if too_late:
        yield events.LateFiles(pipeline=name, files=len(too_late), example=too_late[0])
    done = [each for each in entry.sources if each.failure is None and each.complete]
    done = [each for each in done if not each.gone]
    if done:
        by_notice = sum(record.key in noticed for record in done) if noticed else 0
        yield events.FilesFoundBy(pipeline=name, notice=by_notice, sweep=len(done) - by_notice)
    failed = [each for each in entry.sources if each.failure is not None and not each.gone]
    work = in_journal(entry, settings)
    yield events.BatchJournaled(
        pipeline=name,
        entry=entry.sequence,
        files=sum(record.failure is None and not record.gone for record in entry.sources),
        failed=len(failed),
        rows=work.rows,
        parquet_files=work.parquet_files,
        bytes=work.bytes_written,
        seconds=seconds,
        files_complete=work.source_files,
        blank=work.blank,
        filtered=work.filtered,
        quarantined=work.quarantined,
        source_bytes=work.source_bytes,
        failed_bytes=sum(record.size for record in failed),
        multipart_uploads=work.multipart_uploads,
        download_retries=effort.download_retries,
        upload_retries=effort.upload_retries,
        write_seconds=tuple(effort.write_seconds.values()),
        delays=_delays(entry, files, {record.key for record in done}),
        document=entry,
    )


def _delays(entry: Entry, files: Iterable[SourceFile], done: Collection[str]) -> tuple[float, ...]:
    """Return how long each file that is done has been on its way, by the store's clock and ours.

    A file that several tasks share is one file.
    """
    at = datetime.fromisoformat(entry.created)
    arrived = {key: file.modified for file in files if (key := file.key) in done}
    return tuple(max(0.0, (at - modified).total_seconds()) for modified in arrived.values())


def in_journal(entry: Entry, settings: PipelineSettings) -> Done:
    """Return the work that an entry stands for."""
    done = [record for record in entry.sources if record.failure is None and not record.gone]
    return Done(
        rows=sum(record.rows for record in done),
        blank=sum(record.blank for record in done),
        filtered=sum(record.filtered for record in done),
        quarantined=sum(record.quarantined for record in done),
        source_files=sum(record.complete for record in done),
        source_bytes=sum(record.size for record in done if record.complete),
        parquet_files=len(entry.files),
        bytes_written=sum(file.size for file in entry.files),
        multipart_uploads=sum(settings.sink.upload.in_parts(file.size) for file in entry.files),
    )


def _set_aside(pipeline: str, entry: Entry) -> Iterator[Event]:
    """Yield what was set aside of each source file: how many lines, and the first of them."""
    if not entry.quarantine:
        return
    records = {record.key: record for record in entry.sources}
    told: set[str] = set()
    for file in entry.quarantine:
        for one in file.sources:
            if one.source in told:
                continue
            told.add(one.source)
            record = records[one.source]
            yield events.LinesQuarantined(
                pipeline=pipeline,
                entry=entry.sequence,
                path=f"{entry.source_uris[record.source].rstrip('/')}/{record.path}",
                lines=record.quarantined,
                line=one.first,
                field=one.field,
                code=one.code,
                reason=one.message,
            )


def _without_column(pipeline: str, entry: Entry) -> Iterator[Event]:
    """Yield what became of values that no column takes."""
    dropped: Counter[str] = Counter()
    rescued: Counter[str] = Counter()
    for record in entry.sources:
        if record.dropped:
            dropped.update(record.dropped)
        if record.rescued:
            rescued.update(record.rescued)
    if dropped:
        yield events.FieldsDropped(
            pipeline=pipeline,
            entry=entry.sequence,
            fields=dict(dropped),
            twins=_twins(dropped, [column["name"] for column in entry.table_schema["fields"]]),
        )
    if rescued:
        yield events.ValuesRescued(pipeline=pipeline, entry=entry.sequence, paths=dict(rescued))


def _twins(dropped: Iterable[str], columns: Iterable[str]) -> dict[str, str]:
    """Return the fields that differ from another only in case: no table can hold both."""
    seen = {column.casefold(): column for column in columns}
    pairs = ((name, seen.setdefault(name.casefold(), name)) for name in sorted(dropped))
    return {name: other for name, other in pairs if name != other}


def _failed(
    pipeline: str, source_uris: Mapping[str, str], record: SourceRecord
) -> events.SourceFileFailed:
    failure = record.failure
    if failure is None:
        raise AssertionError("only a failed file has a failure to report")
    return events.SourceFileFailed(
        pipeline=pipeline,
        path=f"{source_uris[record.source].rstrip('/')}/{record.path}",
        stage=failure.stage.value,
        code=failure.code,
        reason=failure.message,
        line=failure.line,
        field=failure.field,
    )
