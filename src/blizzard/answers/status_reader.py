"""Read the status of pipelines and sources, lost files and dead letters. Read-only.

The journal says what was done, the sources what waits, and the log or the receipt what penguin
committed. It neither needs nor disturbs a running blizzard.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from blizzard.answers.answer import AwaitingRedo, FailedSource, FileProgress, FileState
from blizzard.answers.lifecycle import is_failed, of_unfinished
from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.status import PipelineStatus, QueueStatus, SourceStatus, commit_patience
from blizzard.discover.filter import bases_of
from blizzard.discover.finding import Finding, Reason
from blizzard.handoff.dead_letters import DeadLetter, decode, queue_at
from blizzard.journal.books import Retraction
from blizzard.journal.checkpoint import past_damage
from blizzard.journal.lease import this_machine, writer_status
from blizzard.journal.ledger import NEWEST, Ledger
from blizzard.journal.segments import SegmentBroken
from blizzard.journal.standings import EntrySummary, JournalTotals
from blizzard.model.settings import PipelineSettings, QueueSettings, SourceSettings
from blizzard.model.source.file import UnfinishedFile
from blizzard.model.source.partly_read import CODES, PartialFileChanged
from blizzard.model.stores import OpenReader, open_reader, source_uris_of
from blizzard.notices.queue import OpenQueue
from blizzard.pipeline_log import PipelineLog
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import by_reason
from lakebed.errors import DocumentUnreadable, LakeError, ObjectMissing, StoreUnavailable
from lakebed.journal import JournalReader, latest_protocol
from lakebed.storage.store import Reader
from lakebed.telemetry.events import code_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFile:
    """A source file that was deleted from its source before it was loaded."""

    pipeline: str
    lost: str
    """The file's full URI."""
    source: str
    path: str
    """The path below that source, as commands take it."""
    code: str | None
    """How it failed; None if the data files with its rows were given up instead."""
    size: int
    since: str
    """When a run noticed its deletion."""


def lost_among(history: Ledger) -> dict[str, UnfinishedFile]:
    """Return the files deleted before they were loaded and not given up since, by key."""
    return {
        key: known
        for key, known in history.unfinished.items()
        if known.record.gone and not known.record.discarded
    }


def described(
    settings: PipelineSettings, history: Ledger, lost: Iterable[UnfinishedFile]
) -> tuple[LostFile, ...]:
    """Return lost files in printable form, newest first."""
    roots = history.source_uris | source_uris_of(settings)
    newest = sorted(lost, key=lambda known: known.at, reverse=True)
    return tuple(
        LostFile(
            pipeline=settings.name,
            lost=f"{roots.get(known.record.source, '').rstrip('/')}/{known.record.path}",
            source=known.record.source,
            path=known.record.path,
            code=None if known.record.failure is None else known.record.failure.code,
            size=known.record.size,
            since=known.at.isoformat(),
        )
        for known in newest
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterQueue:
    """The dead letter queue of one pipeline."""

    pipeline: str
    letters: tuple[DeadLetter, ...] = ()
    """The letters of files that are failed and still present, one per file, newest first."""
    gone: tuple[str, ...] = ()
    """Objects that entries name but that no longer exist."""
    inherited: int = 0
    """Files that failed under an earlier journal, which names their letters."""
    over: int = 0
    """The number of letters that need no action."""
    lost: tuple[LostFile, ...] = ()
    """Lost files that were not given up, so their days stay incomplete; newest first."""


def dead_letter_queue(evidence: PipelineEvidence) -> DeadLetterQueue:
    """Read a pipeline's dead letter queue. Only readers are passed in, so nothing can be written.

    Only objects with letters of currently failed files are read; the ledger says which entries
    name them.
    """
    settings, ledger = evidence.settings, evidence.history
    if evidence.store is None:
        return DeadLetterQueue(pipeline=settings.name)
    journal = JournalReader(evidence.store, settings.name)
    lost = lost_among(ledger)
    failed_in = {
        key: known.failed_in
        for key, known in ledger.unfinished.items()
        if known.failed_in is not None
        and not _failed_before(known, ledger)
        and of_unfinished(known, FileProgress(committed=None))[0] is FileState.FAILED
    }
    there = {key: entry for key, entry in failed_in.items() if key not in lost}
    entries = [journal.listed(one).entry for one in sorted(set(there.values()))]
    found, gone = _read(entries, lambda uri: evidence.open_reader(queue_at(settings, uri)))
    current = (one for one, entry in found if there.get(_key(one, entry)) == entry.sequence)
    return DeadLetterQueue(
        pipeline=settings.name,
        letters=tuple(current),
        gone=gone,
        inherited=sum(_failed_before(known, ledger) for known in ledger.unfinished.values()),
        over=ledger.books.sums.dead_letters - len(failed_in),
        lost=described(settings, ledger, lost.values()),
    )


def _key(letter: DeadLetter, entry: Entry) -> str:
    root = entry.source_uris.get(letter.source, "").rstrip("/")
    return f"{letter.source}:{letter.path.removeprefix(f'{root}/')}"


def _failed_before(known: UnfinishedFile, ledger: Ledger) -> bool:
    """Whether a file failed under the inherited journal, and not since."""
    entry = known.entry if known.failed_in is None else known.failed_in
    before = entry is None or entry <= ledger.awaits
    return known.record.failure is not None and not known.record.gone and before


def _read(
    entries: Sequence[Entry], open_folder: Callable[[str], Reader]
) -> tuple[list[tuple[DeadLetter, Entry]], tuple[str, ...]]:
    """Read the objects that entries name; also return the names of missing ones.

    Only named objects belong to the queue. They may be in several places, since `dlq_path` may have
    changed.
    """
    found: list[tuple[DeadLetter, Entry]] = []
    gone: list[str] = []
    named = [(uri, entry) for entry in entries for uri in entry.dlq]
    for uri, entry in reversed(named):
        folder, _slash, name = uri.rpartition("/")
        if not layout.is_dead_letters(name):
            raise DocumentUnreadable(
                "a journal entry lists this as dead letters, but it does not have the name of "
                "such an object",
                path=uri,
            )
        try:
            body = open_folder(folder).get(name)
        except ObjectMissing:
            body = None  # The whole folder was deleted.
        if body is None:
            gone.append(uri)
        else:
            found += ((letter, entry) for letter in decode(body, uri))
    return found, tuple(gone)


def queue_status(queue: QueueSettings, open_queue: OpenQueue) -> QueueStatus:
    """Return how full a queue is; report an error in the status instead of raising."""
    try:
        with closing(open_queue(queue)) as opened:
            depth = opened.depth()
            messages = None if depth.waiting is None else depth.waiting + (depth.in_flight or 0)
    except LakeError as trouble:
        return QueueStatus(queue=queue.url, error=f"{trouble} [{code_of(trouble)}]")
    return QueueStatus(queue=queue.url, messages=messages)


def queues_of(settings: PipelineSettings, open_queue: OpenQueue) -> tuple[QueueStatus, ...]:
    """Return how full each queue of a pipeline is."""
    given = (source.notifications for source in settings.sources)
    queues = {queue.url: queue for queue in given if queue is not None}
    return tuple(queue_status(queue, open_queue) for queue in queues.values())


FEW = 10
"""The most failed files to name."""


def source_status(
    evidence: PipelineEvidence,
    source: SourceSettings,
    *,
    open_queue: OpenQueue | None = None,
    listed: bool = True,
) -> SourceStatus:
    """Return the status of a source; a failed listing is reported, not raised.

    Without `listed`, it is not listed and its waiting files are unknown.
    """
    history, name, now = evidence.history, source.name, evidence.clock.now()
    failed = failed_files(evidence.settings, source, history)
    found: Finding | None = None
    error: str | None = None
    try:
        if listed:
            evidence.refuse_other_source(source)
            found = evidence.swept(source)
            failed = as_found(failed, found, now)
    except SegmentBroken:
        raise  # The source is fine; the ledger is read again from the entries.
    except LakeError as trouble:
        error = str(trouble)
    oldest = None if found is None else min((file.modified for file in found.take), default=None)
    age = 0.0 if oldest is None else max(0.0, (now - oldest).total_seconds())
    return SourceStatus(
        source=name,
        uri=source.uri,
        pending_files=None if found is None else len(found.take) + found.left_over,
        pending_bytes=None if found is None else sum(file.to_read for file in found.take),
        oldest_pending=oldest,
        lag_secs=None if found is None else age,
        failed_files=len(failed),
        lost_files=sum(one.record.source == name for one in lost_among(history).values()),
        failures=tuple(failed[:FEW]),
        changed_files=0 if found is None else found.count(Reason.CHANGED),
        skipped_names=() if found is None else found.unread,
        totals=history.books.sums.by_source.get(name, JournalTotals()),
        error=error,
        notifications=(
            queue_status(source.notifications, open_queue)
            if source.notifications is not None and open_queue is not None
            else None
        ),
    )


def as_found(failed: list[FailedSource], found: Finding, now: datetime) -> list[FailedSource]:
    """Return the failed files as the next run will find them.

    A partly read file continues if its object is back. If another object has taken its place, that
    change is the failure now, regardless of the earlier one.
    """
    taken = {file.path for file in found.take}
    changed = {
        record.path: record
        for record in found.misplaced
        if record.failure is not None and record.failure.code == PartialFileChanged.code
    }
    there = [
        one
        for one in failed
        if one.path not in changed and not (one.code in CODES and one.path in taken)
    ]
    before = {one.path: one for one in failed}
    new = []
    for path, record in sorted(changed.items()):
        one, known = FailedSource.of(UnfinishedFile(record=record, at=now), None), before.get(path)
        if one is not None and known is not None:
            one = replace(one, attempts=known.attempts, failed_at=known.failed_at)
        new += [] if one is None else [one]
    return sorted((*new, *there), key=lambda one: one.failed_at, reverse=True)


def failed_files(
    settings: PipelineSettings, source: SourceSettings, history: Ledger
) -> list[FailedSource]:
    """Return the files of a source whose last attempt failed, newest first."""
    failed = [
        known
        for known in history.unfinished.values()
        if known.record.source == source.name and not known.record.gone and is_failed(known)
    ]
    if not failed:
        return []  # Without failures, skip computing the relevant settings.
    bases = bases_of(settings, source)
    found = filter(None, (FailedSource.of(known, bases) for known in failed))
    by_path = sorted(found, key=lambda one: one.path)
    return sorted(by_path, key=lambda one: one.failed_at, reverse=True)


TRIES = 3


@dataclass(slots=True)
class StatusReader:
    """Reads the status of one pipeline repeatedly; no entry is read twice."""

    settings: PipelineSettings
    clock: Clock
    log: PipelineLog | None = None
    _ledger: Ledger = field(default_factory=Ledger)

    def read(
        self,
        opening: OpenReader = open_reader,
        *,
        open_queue: OpenQueue | None = None,
        listed: bool = True,
    ) -> tuple[PipelineEvidence, PipelineStatus]:
        """Return the status; retry if objects vanish because a batch ends meanwhile."""
        for attempt in range(TRIES):
            # Drop the ledger after an error: it may belong to another journal.
            ledger, self._ledger = self._ledger, Ledger()
            try:
                evidence = PipelineEvidence.read(
                    self.settings, self.clock, opening=opening, ledger=ledger, log=self.log
                )
                found = pipeline_status(evidence, open_queue=open_queue, listed=listed)
            except StoreUnavailable:
                if attempt == TRIES - 1:
                    raise
            else:
                self._ledger = ledger
                return evidence, found
        raise AssertionError("unreachable")


def pipeline_status(
    evidence: PipelineEvidence, *, open_queue: OpenQueue | None, listed: bool
) -> PipelineStatus:
    """Return the status of a pipeline. Only readers are passed in, so nothing can be written.

    Without `listed`, the sources are not listed and their waiting files are unknown.
    """
    withheld, handoff, writer = evidence.withheld, None, None
    settings, store, log = evidence.settings, evidence.store, evidence.log
    history, sums = evidence.history, evidence.history.books.sums
    if store is not None:
        protocol = latest_protocol(store)
        handoff = None if protocol is None else protocol.handoff
        writer = writer_status(store, settings.name, this_machine())
    last = evidence.last_committed(log.committed)
    uncommitted = max(0, history.sequence - (last.entry or 0)) * last.receipt_fits
    rows, since = (None, None) if last.unsure else _waiting_rows(evidence, uncommitted)
    error = None
    try:
        history.settle(log.rejections)
    except LakeError as trouble:
        error = str(trouble)
    read = partial(source_status, evidence, open_queue=open_queue, listed=listed)
    counts = withheld.counts()
    not_applied = _not_applied(history)
    awaiting, unread = _awaiting_redo(evidence)
    return PipelineStatus(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        handoff=handoff,
        journal=history.journal,
        last_entry=history.sequence if history.sequence >= 0 else None,
        committed_entry=last.entry,
        uncommitted_entries=uncommitted,
        receipt_fits=last.receipt_fits,
        lost_entry=last.lost,
        last_batch=sums.last_batch,
        writer=writer,
        sources=past_damage(history, lambda: tuple(map(read, settings.sources))),
        totals=sums.totals,
        parquet_files=sums.parquet_files,
        parquet_bytes=sums.parquet_bytes,
        quarantine=sums.quarantine,
        held_files=counts.held_files,
        held_rows=counts.held_rows,
        held=by_reason(withheld.held),
        discarded_files=counts.discarded_files + sum(one.files for one in not_applied),
        discarded_rows=counts.discarded_rows + sum(one.read for one in not_applied),
        awaiting_redo=awaiting,
        withheld_error=withheld.error
        or error
        or unread
        or (last.unsure if last.receipt_fits else None),
        uncommitted_rows=rows,
        uncommitted_since=since,
        last_commit_at=None if since is None else _last_commit_at(evidence, since),
    )


def _waiting_rows(evidence: PipelineEvidence, count: int) -> tuple[int | None, datetime | None]:
    """Return the rows of the last `count` entries, and when the first was written."""
    if evidence.store is None or not count:
        return 0, None
    last, known = evidence.history.sequence, evidence.history.newest
    journal = JournalReader(evidence.store, evidence.settings.name)
    waiting = range(last - count + 1, last + 1)
    for number in waiting if count <= NEWEST else waiting[:1]:
        if number not in known:
            with suppress(LakeError):
                entry = journal.entry(number)
                known |= {} if entry is None else {number: EntrySummary.of(entry)}
    first = known.get(waiting[0])
    rows = sum(known[number].rows for number in waiting) if known.keys() >= {*waiting} else None
    return rows, None if first is None else first.at


def _last_commit_at(evidence: PipelineEvidence, since: datetime) -> datetime | None:
    """Return when entries were last committed, if one has waited longer than usual."""
    waited = (evidence.clock.now() - since).total_seconds()
    with suppress(LakeError):
        return (
            evidence.log.last_commit_at() if waited > commit_patience(evidence.settings) else None
        )
    return None


def _awaiting_redo(evidence: PipelineEvidence) -> tuple[tuple[AwaitingRedo, ...], str | None]:
    """Return the repaired files that await a redo, or why they are unknown."""
    table, history = evidence.table, evidence.history
    if table is None:
        return (), None
    try:
        return past_damage(history, lambda: table.awaiting_redo(history.lookup())), None
    except LakeError as trouble:
        return (), str(trouble)


def _not_applied(history: Ledger) -> list[Retraction]:
    """Return the rejected replacements that were not repeated since."""
    entries = {one.entry for one in history.undecided.rejected if one.not_applied}
    return [one for entry, one in history.books.retractions.items() if int(entry) in entries]
