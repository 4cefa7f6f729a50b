"""How a pipeline stands: what waits, what failed, what was done, what is committed. It looks only.

The journal says what was done, the sources say what waits, the receipt says how far penguin is.
Nothing here needs a running blizzard, and none is disturbed by it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from blizzard.discover.retry import next_try
from blizzard.discover.skip_reason import Reason, SkipSummary
from blizzard.handoff.held_rows import Aside, Fates, Files, by_reason, read_aside
from blizzard.inspect.explain import look_at
from blizzard.journal.checks import redirected, refuse_moved
from blizzard.journal.lease_record import Machine, WriterStatus, this_machine, writer_status
from blizzard.journal.protocol import latest_protocol
from blizzard.journal.state import History
from blizzard.model.failure_basis import bases_of
from blizzard.model.files import UnfinishedFile
from blizzard.model.locations import OpenReader, sink_location
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, Receipt, SourceRecord, Stage
from lakebed.errors import LakeError, ObjectMissing
from lakebed.journal import JournalReader
from lakebed.layout import file_name
from lakebed.locations import written_out
from lakebed.storage.store import Reader
from lakebed.types import Handoff

FEW = 10
"""How many failed files, and how many folders, of a source are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What the entries of a journal add up to."""

    batches: int = 0
    files: int = 0
    """Source files that were read to their end."""
    lines: int = 0
    blank: int = 0
    filtered: int = 0
    quarantined: int = 0
    rows: int = 0
    source_bytes: int = 0

    def plus(self, entry: Entry, source: str | None = None) -> "Totals":
        """Add what an entry says, or what it says of one source. Pure."""
        # What is inherited was counted by the journal that it comes from.
        records = [
            record
            for record in entry.sources
            if entry.kind == "batch" and record.failure is None and source in (None, record.source)
        ]
        return Totals(
            batches=self.batches + (entry.kind == "batch" and (source is None or bool(records))),
            files=self.files + sum(record.complete for record in records),
            lines=self.lines + sum(record.lines for record in records),
            blank=self.blank + sum(record.blank for record in records),
            filtered=self.filtered + sum(record.filtered for record in records),
            quarantined=self.quarantined + sum(record.quarantined for record in records),
            rows=self.rows + sum(record.rows for record in records),
            source_bytes=self.source_bytes + sum(each.size for each in records if each.complete),
        )

    def minus(self, given_up: Sequence[SourceRecord]) -> "Totals":
        """Take out what was read and then given up: it is read again, and counted then. Pure."""
        return replace(
            self,
            files=self.files - sum(record.complete for record in given_up),
            lines=self.lines - sum(record.lines for record in given_up),
            blank=self.blank - sum(record.blank for record in given_up),
            filtered=self.filtered - sum(record.filtered for record in given_up),
            quarantined=self.quarantined - sum(record.quarantined for record in given_up),
            rows=self.rows - sum(record.rows for record in given_up),
            source_bytes=self.source_bytes - sum(each.size for each in given_up if each.complete),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFile:
    """A source file that failed when it was last tried."""

    path: str
    stage: str
    code: str
    message: str
    line: int | None
    field: str | None
    attempts: int
    failed_at: datetime
    next_try: datetime | None
    """None where it is not tried again until it, or what bears on it in the settings, changes."""
    lines_in_table: int = 0
    """Lines of it that earlier batches have read; it cannot just be replaced then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """The highest name in a folder that was read. Lower ones may still come, and are found."""

    folder: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """One source. What a listing would tell is None where it cannot be listed."""

    source: str
    uri: str
    pending_files: int | None = None
    pending_bytes: int | None = None
    """Of the next batch; what is beyond it is counted, not measured."""
    oldest_pending: datetime | None = None
    lag_secs: float | None = None
    """The age of the oldest file that waits; 0 where none does."""
    failed_files: int = 0
    failed_for_good: int = 0
    """Those that are not tried again until they change."""
    next_try: datetime | None = None
    """When the first of the failed files is tried again."""
    failures: tuple[FailedFile, ...] = ()
    """Some of them, the newest first."""
    changed_files: int = 0
    """Ingested before and another object now; reported and not read."""
    passed_over: tuple[SkipSummary, ...] = ()
    """Names that cannot be read, by the reason."""
    watermarks: tuple[Watermark, ...] = ()
    """How far the newest of its folders are read, the last one first."""
    folders: int = 0
    """How many folders have files that were read."""
    totals: Totals = field(default_factory=Totals)
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """An entry in a few numbers."""

    entry: int
    kind: str
    at: datetime
    run: str
    files: int
    failed: int
    rows: int
    parquet_files: int
    parquet_bytes: int
    gone: int = 0
    """Files that were not done, and are not in their source any more."""

    @classmethod
    def of(cls, entry: Entry) -> "Batch":
        """Sum up an entry. Pure."""
        there = [record for record in entry.sources if not record.gone]
        done = [record for record in there if record.failure is None]
        return cls(
            entry=entry.sequence,
            kind=entry.kind,
            at=datetime.fromisoformat(entry.created),
            run=entry.run,
            files=len(done),
            failed=len(there) - len(done),
            rows=sum(record.rows for record in done),
            parquet_files=len(entry.files),
            parquet_bytes=sum(file.size for file in entry.files),
            gone=len(entry.sources) - len(there),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """One pipeline; `last_entry` is None before its journal is begun."""

    pipeline: str
    table_uri: str
    handoff: Handoff | None
    journal: str | None
    last_entry: int | None
    committed_entry: int | None
    """The last entry that penguin's receipt names; None before the first commit."""
    uncommitted_entries: int
    receipt_fits: bool
    """False where the receipt names an entry that the journal does not have."""
    last_batch: Batch | None
    last_written: Batch | None
    """The last entry of any kind: who wrote, and when."""
    writer: WriterStatus | None
    sources: tuple[SourceStatus, ...]
    totals: Totals
    parquet_files: int
    parquet_bytes: int
    held_files: int = 0
    held_rows: int = 0
    """Journaled, perhaps committed as an entry, and not in the table: penguin holds them."""
    held: tuple[Files, ...] = ()
    """Why."""
    discarded_files: int = 0
    discarded_rows: int = 0
    """Journaled, and never to be in the table: somebody discarded them."""
    aside_error: str | None = None
    """Why it is not known what is held."""

    @property
    def lag_secs(self) -> float:
        """Return the age of the oldest file that waits in any source."""
        return max((one.lag_secs or 0.0 for one in self.sources), default=0.0)


class Books:
    """What one journal says so far; asked again, only what is new is read."""

    def __init__(self) -> None:
        self.history = History()
        self.digests: list[str] = []
        self.totals = Totals()
        self.parquet_files = 0
        self.parquet_bytes = 0
        self.by_source: dict[str, Totals] = {}
        self.marks: dict[str, dict[str, str]] = {}
        """The highest name of each folder of each source."""
        self.last_batch: Batch | None = None
        self.last_written: Batch | None = None

    def read(self, store: Reader, pipeline: str) -> None:
        """Read the receipt, then the entries since the last time."""
        journal = JournalReader(store, pipeline)
        self.history.receipt = journal.receipt()
        for stored in journal.stored_entries(self.history.sequence):
            entry = stored.entry
            self.history.learn(entry, stored.body)
            self.digests.append(stored.digest)
            self.totals = self.totals.plus(entry)
            self.parquet_files += len(entry.files)
            self.parquet_bytes += sum(file.size for file in entry.files)
            for source in {record.source for record in entry.sources}:
                before = self.by_source.get(source, Totals())
                self.by_source[source] = before.plus(entry, source)
            if entry.redone:
                self._give_up(journal, entry)
            for record in entry.sources:
                if record.failure is None:
                    self._pass(record.source, record.path)
            self.last_written = Batch.of(entry)
            if entry.kind == "batch":
                self.last_batch = self.last_written

    def _give_up(self, journal: JournalReader, redo: Entry) -> None:
        """Take out what the units wrote whose files a redo gives up."""
        names = frozenset(redo.redone)
        for entry in journal.entries():
            if entry.sequence >= redo.sequence:
                return
            units = {file.unit for file in entry.files if file_name(file.filename) in names}
            files = [file for file in entry.files if file.unit in units]
            records = [each for each in entry.sources if each.unit in units and not each.failure]
            self.totals = self.totals.minus(records)
            self.parquet_files -= len(files)
            self.parquet_bytes -= sum(file.size for file in files)
            for source in {record.source for record in records}:
                own = [record for record in records if record.source == source]
                self.by_source[source] = self.by_source[source].minus(own)

    def _pass(self, source: str, path: str) -> None:
        folder, _, name = path.rpartition("/")
        marks = self.marks.setdefault(source, {})
        marks[folder] = max(name, marks.get(folder, ""))

    def watermarks(self, source: str) -> tuple[Watermark, ...]:
        """Return how far the folders of a source are read, the last one first."""
        marks = self.marks.get(source, {})
        return tuple(
            Watermark(folder=folder, name=marks[folder]) for folder in sorted(marks, reverse=True)
        )


def pipeline_status(
    settings: PipelineSettings,
    open_reader: OpenReader,
    *,
    clock: Clock,
    books: Books,
    machine: Machine | None = None,
    fates: Fates = lambda _names: {},
) -> PipelineStatus:
    """Return how a pipeline stands. It is handed readers only, so it cannot write."""
    aside = Aside()
    handoff = None
    store = None
    writer = None
    try:
        store = open_reader(sink_location(settings))
    except ObjectMissing:
        pass  # The table's folder does not exist yet, so neither does a journal.
    else:
        protocol = latest_protocol(store)
        handoff = None if protocol is None else protocol.handoff
        books.read(store, settings.name)
        writer = writer_status(store, settings.name, machine or this_machine())
        aside = read_aside(store, settings.name, fates)
    history = books.history
    committed, fits = committed_entry(history, books.digests)
    return PipelineStatus(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        handoff=handoff,
        journal=history.journal,
        last_entry=history.sequence if history.sequence >= 0 else None,
        committed_entry=committed,
        uncommitted_entries=max(history.sequence, 0) - (committed or 0) if fits else 0,
        receipt_fits=fits,
        last_batch=books.last_batch,
        last_written=books.last_written,
        writer=writer,
        sources=tuple(
            _source(settings, source, open_reader, store, clock=clock, books=books)
            for source in settings.sources
        ),
        totals=books.totals,
        parquet_files=books.parquet_files,
        parquet_bytes=books.parquet_bytes,
        held=by_reason(aside.held),
        aside_error=aside.error,
        **aside.counts(),
    )


def committed_entry(history: History, digests: Sequence[str]) -> tuple[int | None, bool]:
    """Return the entry that the receipt names, and whether the journal has it. Pure."""
    receipt: Receipt | None = history.receipt
    if receipt is None:
        return None, True
    fits = (
        receipt.journal == history.journal
        and receipt.sequence < len(digests)
        and digests[receipt.sequence] == receipt.digest
    )
    return receipt.sequence, fits


def _source(
    settings: PipelineSettings,
    source: SourceSettings,
    open_reader: OpenReader,
    store: Reader | None,
    *,
    clock: Clock,
    books: Books,
) -> SourceStatus:
    bases = bases_of(settings, source)
    failed = sorted(
        _failed(source, books.history, bases), key=lambda one: one.failed_at, reverse=True
    )
    told = SourceStatus(
        source=source.name,
        uri=source.uri,
        failed_files=len(failed),
        failed_for_good=sum(one.next_try is None for one in failed),
        next_try=min((one.next_try for one in failed if one.next_try), default=None),
        failures=tuple(failed[:FEW]),
        watermarks=books.watermarks(source.name)[:FEW],
        folders=len(books.marks.get(source.name, {})),
        totals=books.by_source.get(source.name, Totals()),
    )
    try:
        if store is not None:
            at = {source.name: written_out(source.uri)}
            if not redirected(at, books.history):
                refuse_moved(store, settings.name, at, books.history.source_uris)
        found = look_at(
            settings,
            source,
            open_reader,
            books.history,
            store,
            clock=clock,
        )
    except LakeError as trouble:
        return replace(told, error=str(trouble))
    oldest = min((file.modified for file in found.take), default=None)
    age = (clock.now() - oldest).total_seconds() if oldest else 0.0
    return replace(
        told,
        pending_files=len(found.take) + found.left_over,
        pending_bytes=sum(file.to_read for file in found.take),
        oldest_pending=oldest,
        lag_secs=max(0.0, age),
        changed_files=found.count(Reason.CHANGED),
        passed_over=found.amiss,
    )


def _failed(
    source: SourceSettings, history: History, bases: Mapping[Stage, str]
) -> Iterator[FailedFile]:
    for known in history.unfinished.values():
        record = known.record
        if record.source == source.name and record.failure is not None and not record.gone:
            yield _failed_file(known, bases)


def _failed_file(known: UnfinishedFile, bases: Mapping[Stage, str]) -> FailedFile:
    failure = known.record.failure
    if failure is None:
        raise AssertionError("only a failed file has a failure to tell of")
    return FailedFile(
        path=known.record.path,
        stage=failure.stage.value,
        code=failure.code,
        message=failure.message,
        line=failure.line,
        field=failure.field,
        attempts=failure.attempts,
        failed_at=known.at,
        next_try=next_try(known, bases),
        lines_in_table=known.record.records_read,
    )
