"""Events and totals that follow from a listing, a journaled batch, and a whole run. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from blizzard import events
from blizzard.discover.finding import AMISS, Finding, Reason
from blizzard.model.event_time import row_partitions, rows_without_time
from blizzard.model.settings import PipelineSettings
from blizzard.proposal import BatchRun
from lakebed.columns.column_mapping import format_path
from lakebed.documents.entry import Entry
from lakebed.documents.records import BadLines, SourceRecord
from lakebed.errors import (
    LakeError,
    ObjectChanged,
    Whose,
)
from lakebed.telemetry.events import Event
from lakebed.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryWork:
    """The work recorded in an entry."""

    rows: int
    blank: int
    filtered: int
    quarantined: int
    source_files: int
    """Source files read to their end."""
    source_bytes: int
    parquet_files: int
    bytes_written: int
    multipart_uploads: int


def work_of(entry: Entry, settings: PipelineSettings) -> EntryWork:
    """Return the work recorded in an entry: what was read for it, and all that was written."""
    read = [record for record in entry.readings if record.failure is None and not record.gone]
    files = entry.data_files
    return EntryWork(
        rows=sum(record.rows for record in read),
        blank=sum(record.blank for record in read),
        filtered=sum(record.filtered for record in read),
        quarantined=sum(record.quarantined for record in read),
        source_files=sum(record.complete for record in read),
        source_bytes=sum(record.size for record in read if record.complete),
        parquet_files=len(files),
        bytes_written=sum(file.size for file in files),
        multipart_uploads=sum(settings.sink.upload.in_parts(file.size) for file in files),
    )


def listed(
    pipeline: str,
    findings: Mapping[str, Finding],
    unfinished: Iterable[SourceRecord],
    bad_lines: int,
) -> events.SourcesListed:
    """Return how much is waiting; files beyond one batch are counted without their age."""
    files = [file for finding in findings.values() for file in finding.take]
    amiss = [one for finding in findings.values() for one in finding.amiss]
    return events.SourcesListed(
        pipeline=pipeline,
        pending=len(files) + sum(finding.left_over for finding in findings.values()),
        oldest=min((file.modified.timestamp() for file in files), default=None),
        resting=resting(findings, unfinished),
        amiss={
            reason.value: sum(one.files for one in amiss if one.reason is reason)
            for reason in AMISS
        },
        bad_lines=bad_lines,
        changed={
            source: finding.count(Reason.CHANGED)
            for source, finding in findings.items()
            if finding.swept
        },
    )


def overwritten(
    settings: PipelineSettings, findings: Mapping[str, Finding]
) -> Iterator[events.SourceFileOverwritten]:
    """Yield the ingested files that are now different objects."""
    uris = {source.name: source.uri.rstrip("/") for source in settings.sources}
    for source, finding in findings.items():
        for facts in finding.changed:
            yield events.SourceFileOverwritten(
                pipeline=settings.name, path=f"{uris[source]}/{facts.path}", etag=facts.etag
            )


def names_skipped(pipeline: str, findings: Mapping[str, Finding]) -> Iterator[events.NamesSkipped]:
    """Yield the names that cannot be read."""
    for source, finding in findings.items():
        for one in finding.amiss:
            yield events.NamesSkipped(
                pipeline=pipeline,
                source=source,
                reason=one.reason.value,
                names=one.files,
                example=one.some[0],
                why=one.reason.words,
            )


def resting(findings: Mapping[str, Finding], unfinished: Iterable[SourceRecord]) -> int:
    """Count the failed files that are neither due now nor found gone."""
    found = {file.key for finding in findings.values() for file in finding.take}
    found |= {record.key for finding in findings.values() for record in finding.gone}
    return sum(
        record.source in findings and record.key not in found for record in failed_of(unfinished)
    )


def failed_of(records: Iterable[SourceRecord]) -> Iterator[SourceRecord]:
    """Yield the files that failed and are still in their source."""
    return (each for each in records if each.failure is not None and not each.gone)


def journaled(
    entry: Entry, settings: PipelineSettings, batch: BatchRun, work: EntryWork, seconds: float
) -> Iterator[Event]:
    """Yield the events of a journaled batch: failures, omissions, and the batch as a whole."""
    name, failed = settings.name, list(failed_of(entry.sources))
    yield from (_failed(name, entry, record) for record in failed)
    gone = [record.path for record in entry.sources if record.gone]
    if gone:
        yield events.SourceFilesGone(
            pipeline=name, entry=entry.sequence, files=len(gone), example=gone[0]
        )
    for uri in entry.dlq:
        yield events.FailuresRecorded(pipeline=name, entry=entry.sequence, object=uri)
    yield from _quarantined(name, entry)
    yield from _without_column(name, entry)
    by = row_partitions(settings.sink.template, settings.schema, settings.sink.timestamp_field)
    if by is not None and (rows := rows_without_time(entry.files, by)):
        yield events.RowsWithoutTime(
            pipeline=name, entry=entry.sequence, field=format_path(by.timestamp_path), rows=rows
        )
    read = [each for each in entry.sources if each.failure is None and not each.gone]
    done = {each.key for each in read if each.complete}
    yield events.BatchJournaled(
        pipeline=name,
        entry=entry.sequence,
        files=len(read),
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
        download_retries=batch.effort.download_retries,
        upload_retries=batch.effort.upload_retries,
        write_seconds=tuple(batch.effort.write_seconds.values()),
        delays=_delays(entry, batch, done),
        document=entry,
    )


def _delays(entry: Entry, batch: BatchRun, done: Collection[str]) -> tuple[float, ...]:
    """Return the age of each finished file, by the store's clock and ours.

    A file that several tasks share counts once.
    """
    at = datetime.fromisoformat(entry.created)
    arrived = {key: file.modified for file in batch.proposal.files if (key := file.key) in done}
    return tuple(max(0.0, (at - modified).total_seconds()) for modified in arrived.values())


def _quarantined(pipeline: str, entry: Entry) -> Iterator[Event]:
    """Yield the quarantined lines of each source file: how many, and the first of them."""
    if not entry.quarantine:
        return
    records = {record.key: record for record in entry.sources}
    first: dict[str, BadLines] = {}
    for one in (one for file in entry.quarantine for one in file.sources):
        first.setdefault(one.source, one)
    for source, one in first.items():
        record = records[source]
        yield events.LinesQuarantined(
            pipeline=pipeline,
            entry=entry.sequence,
            path=entry.uri_of(record.key),
            lines=record.quarantined,
            line=one.first,
            field=one.field,
            code=one.code,
            reason=one.message,
        )


def _without_column(pipeline: str, entry: Entry) -> Iterator[Event]:
    """Yield the rescued and dropped values."""
    dropped: Counter[str] = Counter()
    rescued: Counter[str] = Counter()
    for record in entry.sources:
        dropped.update(record.dropped)
        rescued.update(record.rescued)
    if dropped:
        yield events.FieldsDropped(pipeline=pipeline, entry=entry.sequence, fields=dict(dropped))
    if rescued:
        yield events.ValuesRescued(pipeline=pipeline, entry=entry.sequence, paths=dict(rescued))


def _failed(pipeline: str, entry: Entry, record: SourceRecord) -> events.SourceFileFailed:
    failure = record.failure
    if failure is None:
        raise AssertionError("only a failed file has a failure to report")
    return events.SourceFileFailed(
        pipeline=pipeline,
        path=entry.uri_of(record.key),
        stage=failure.stage.value,
        code=failure.code,
        reason=failure.message,
        line=failure.line,
        field=failure.field,
    )


class TooManyFailures(LakeError, code="max_failures_reached", whose=Whose.USER):
    """As many source files failed as `error_handling.max_failures` allows."""


@dataclass(slots=True)
class Statistics:
    """What one run of a pipeline has journaled so far."""

    files_processed: int = 0
    records_processed: int = 0
    bytes_written: int = 0
    parquet_files_written: int = 0
    delta_commits: int = 0
    checkpoints_saved: int = 0
    lines_quarantined: int = 0
    files_failed: int = 0
    files_still_failed: int = 0
    """Failed files that are not in the table, including those of earlier runs."""


@dataclass(slots=True, kw_only=True)
class RunTotals:
    """The statistics of a run, and the files that have failed in it."""

    once: bool
    """Whether the run ends when nothing is left, and then tries failed files only once."""
    statistics: Statistics = field(default_factory=Statistics)
    failed: set[str] = field(default_factory=set)
    """The files that count against `max_failures`."""
    tried: set[str] = field(default_factory=set)
    """The files that this run does not try again."""

    def add(self, entry: Entry, work: EntryWork) -> None:
        """Add a journaled batch."""
        # A file that changed while it was read is left for a later batch, and does not count.
        self.failed |= {
            record.key
            for record in failed_of(entry.sources)
            if record.failure is not None and record.failure.code != ObjectChanged.code
        }
        if self.once:
            self.tried |= {record.key for record in entry.sources if record.failure is not None}
        totals = self.statistics
        totals.files_processed += work.source_files
        totals.records_processed += work.rows
        totals.lines_quarantined += work.quarantined
        totals.bytes_written += work.bytes_written
        totals.parquet_files_written += work.parquet_files
        totals.checkpoints_saved += 1
        totals.files_failed = len(self.failed)

    def count_failed(self, unfinished: Iterable[SourceRecord]) -> None:
        """Count the failed files that are not in the table, including those of earlier runs."""
        self.statistics.files_still_failed = sum(
            record.failure is not None and not record.gone for record in unfinished
        )

    def check_failures(self, limit: int | None) -> None:
        """Raise once too many files have failed; successful files are still handed off."""
        if limit is not None and len(self.failed) >= limit:
            count = plural(len(self.failed), "source file")
            raise TooManyFailures(
                f"{count} failed so far and "
                f"error_handling.max_failures is {limit}; what succeeded is journaled"
            )
