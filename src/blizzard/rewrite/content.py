"""What source files hold now, read to come in the place of rows that are taken out of the table.

They are read as a batch reads them. What is written for them is garbage until an entry names it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from blizzard.discover.filter import Decision, FileFilter
from blizzard.discover.lister import source_listers
from blizzard.execute.bisect import look_at_units, run_units
from blizzard.execute.runner import Runner
from blizzard.found_columns import BatchColumns, TableColumns, look_share
from blizzard.journal.identity import EntryColumns
from blizzard.journal.ledger import UNKNOWN, Ledger
from blizzard.model.bounds import Bounds
from blizzard.model.files import SourceFile
from blizzard.model.locations import OpenReader, source_location
from blizzard.model.settings import PipelineSettings
from blizzard.plan.recognise import planned
from blizzard.plan.work import work_of
from blizzard.rewrite.retracted_sources import Named
from lakebed.clock import Clock
from lakebed.columns.column_mapping import ColumnMapping
from lakebed.columns.schema import Schema
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.entry import Entry
from lakebed.documents.quarantine_file import QuarantineFile
from lakebed.documents.source_record import Failure, SourceRecord, Stage
from lakebed.errors import LakeError, ObjectMissing, Whose
from lakebed.telemetry.events import Emit
from lakebed.types import Handoff


class ContentNotRead(LakeError):
    """What is to take the place of rows could not be read, so nothing was changed."""

    code = "content_not_read"
    whose = Whose.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is needed to read source files as a batch does."""

    runner: Runner
    open_source: OpenReader
    of_table: TableColumns
    clock: Clock
    emit: Emit = lambda _event: None
    total_concurrency: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What source files hold now, as the entry is to have it."""

    records: tuple[SourceRecord, ...]
    files: tuple[FinishedFile, ...]
    quarantine: tuple[QuarantineFile, ...]
    columns: EntryColumns
    known: Schema | None
    """The columns that the journal knew when it was read."""
    before: Mapping[str, Named | None]
    """The objects that the journal knew the files as, by their keys."""
    failed: tuple[SourceRecord, ...] = ()
    """Files that cannot be read, or that have no row; nothing of them is in the rest."""

    def within(self, entry: Entry) -> Entry:
        """Return an entry that takes rows out with what comes in their place."""
        return replace(
            entry,
            sources=(*entry.sources, *self.records),
            files=self.files,
            quarantine=self.quarantine,
            table_schema=self.columns.table_schema,
            columns=self.columns.found,
            # The entry hands its files off by itself, whatever the hand-off of batches is.
            handoff=Handoff.JOURNAL,
        )


def find_object(
    settings: PipelineSettings, key: str, open_source: OpenReader, *, now: datetime
) -> SourceFile:
    """Return a source file as it is in its source now; raise where it cannot be read."""
    name, _, path = key.partition(":")
    lister = next((one for one in source_listers(settings) if one.source.name == name), None)
    facts = None
    if lister is not None:
        facts = open_source(source_location(lister.source)).head(path)
    if lister is None or facts is None:
        raise ObjectMissing(f"no source has a file {key}; nothing was changed", path=key)
    chosen = FileFilter(
        source=lister.source,
        template=lister.template,
        partition_fields=lister.partition_fields,
        now=now,
    )
    taken = chosen.is_ours(facts) and chosen.consider(facts, UNKNOWN) is Decision.TAKE
    finding = chosen.finding(late=frozenset(), swept=False)
    if not taken:
        why = ", ".join(one.reason.value for one in finding.not_taken)
        raise ContentNotRead(f"blizzard would not read {key}: {why}; nothing was changed", file=key)
    return finding.take[0]


def read_content(
    settings: PipelineSettings,
    files: Sequence[SourceFile],
    before: Mapping[str, Named | None],
    reading: Reading,
    *,
    history: Ledger,
    journal: str,
    mapping: ColumnMapping | None,
) -> Content:
    """Read source files as a batch would read them now; `mapping` is that of the table."""
    runner, emit = reading.runner, reading.emit
    columns = BatchColumns(
        settings=settings,
        known=history.columns,
        of_table=reading.of_table,
        emit=emit,
        mapping_of_table=lambda: mapping,
    )
    work = work_of(
        settings,
        schema=columns.schema,
        journal=journal,
        batch=history.sequence + 1,
        bounds=Bounds(),
        clock=reading.clock,
        parallelism=runner.parallelism,
        total_concurrency=reading.total_concurrency,
    )
    work = replace(work, outbox=None)
    units = planned(settings, files, reading.open_source, parallelism=runner.parallelism)
    if columns.to_be_inferred:
        look = replace(columns.within(work), look=look_share(units, settings.infer_max_bytes))
        columns.grow(look_at_units(units, look, runner, emit))
    settled = run_units(
        units,
        columns.within(work),
        runner,
        emit,
        lambda seen: columns.within(work) if columns.grow(seen) else None,
    )
    settled.require_room()
    failed = tuple(_failed(record) for record in settled.sources if not _may_come_in(record))
    # What shares files with lines that must not come in waits for the next time.
    spoilt = {
        record.unit
        for record in settled.sources
        if not _may_come_in(record) and (record.rows or record.quarantined)
    }
    good = tuple(
        record for record in settled.sources if _may_come_in(record) and record.unit not in spoilt
    )
    names = {record.unit for record in good}
    written = tuple(file for file in settled.files if file.unit in names)
    return Content(
        records=good,
        files=written,
        quarantine=tuple(file for file in settled.quarantine if file.unit in names),
        columns=columns.entry(written),
        known=history.columns,
        before={record.key: before[record.key] for record in good},
        failed=failed,
    )


def _may_come_in(record: SourceRecord) -> bool:
    """Whether a file may take the place of rows: with nothing to come in, they stay."""
    return record.failure is None and record.complete and record.rows > 0


def _failed(record: SourceRecord) -> SourceRecord:
    """Return the record of a file of which nothing comes in, with the reason."""
    if record.failure is not None:
        return record
    why = "it has no row" if record.complete else "it was not read to its end"
    failure = Failure(
        stage=Stage.PARSE,
        code=ContentNotRead.code,
        message=f"{why}, so the rows that are in the table stay",
        retryable=not record.complete,
    )
    return SourceRecord(
        source=record.source,
        path=record.path,
        size=record.size,
        etag=record.etag,
        form=record.form,
        failure=failure,
    )
