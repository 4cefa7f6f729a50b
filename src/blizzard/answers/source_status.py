"""The status of a source: waiting files, failed files and dead letters. Read-only."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime

from blizzard.answers.answer import FailedSource, FileProgress, FileState
from blizzard.answers.lifecycle import is_failed, of_unfinished
from blizzard.answers.progress import PipelineEvidence
from blizzard.discover.filter import bases_of
from blizzard.discover.finding import Finding, Reason, SkipSummary
from blizzard.handoff.dead_letters import DeadLetter, decode, queue_at
from blizzard.journal.ledger import Ledger
from blizzard.journal.segments import SegmentBroken
from blizzard.journal.standings import JournalTotals
from blizzard.model.settings import PipelineSettings, QueueSettings, SourceSettings
from blizzard.model.source.file import UnfinishedFile
from blizzard.model.source.part_way import CODES, ChangedPartWay
from blizzard.model.stores import source_uris_of
from blizzard.notices.queue import OpenQueue
from lakebed import layout
from lakebed.documents.entry import Entry
from lakebed.errors import DocumentUnreadable, LakeError, ObjectMissing
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader
from lakebed.telemetry.events import code_of
from lakebed.units import plural


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


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """The status of one queue; without numbers if it does not answer."""

    queue: str
    messages: int | None = None
    """About how many wait to be received; None if the queue does not say."""
    in_flight: int | None = None
    """About how many are received and not deleted; None if counted in `messages`."""
    error: str | None = None

    def sentence(self) -> str:
        """Describe the status."""
        if self.error is not None:
            return f"the queue of notices cannot be asked: {self.error}; files are found by listing"
        if self.messages is None:
            return f"the queue of notices answers: {self.queue}; it does not tell how many it has"
        if self.in_flight is None:
            waiting = plural(self.messages, "notice")
            return f"{waiting} waiting or being followed in {self.queue}"
        return (
            f"{plural(self.messages, 'notice')} waiting and {self.in_flight:,} being "
            f"followed in {self.queue}"
        )


def queue_status(queue: QueueSettings, open_queue: OpenQueue) -> QueueStatus:
    """Return how full a queue is; report an error in the status instead of raising."""
    try:
        with closing(open_queue(queue)) as opened:
            depth = opened.depth()
    except LakeError as trouble:
        return QueueStatus(queue=queue.url, error=f"{trouble} [{code_of(trouble)}]")
    return QueueStatus(queue=queue.url, messages=depth.waiting, in_flight=depth.in_flight)


def queues_of(settings: PipelineSettings, open_queue: OpenQueue) -> tuple[QueueStatus, ...]:
    """Return how full each queue of a pipeline is."""
    given = (source.notifications for source in settings.sources)
    queues = {queue.url: queue for queue in given if queue is not None}
    return tuple(queue_status(queue, open_queue) for queue in queues.values())


FEW = 10
"""The most failed files to name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """The status of one source; facts from a listing are None if it cannot be listed."""

    source: str
    uri: str
    pending_files: int | None = None
    pending_bytes: int | None = None
    """The bytes of the next batch only; further files are counted but not sized."""
    oldest_pending: datetime | None = None
    lag_secs: float | None = None
    """The age of the oldest waiting file; 0 without one."""
    failed_files: int = 0
    failed_for_good: int = 0
    """Failed files that are not tried again until they change."""
    next_try: datetime | None = None
    """When the next failed file is tried again."""
    lost_files: int = 0
    """Files that failed and were deleted from the source, and are not given up."""
    failures: tuple[FailedSource, ...] = ()
    """Some of the failures, newest first."""
    changed_files: int = 0
    """Ingested files that are other objects now, which are reported and not read."""
    passed_over: tuple[SkipSummary, ...] = ()
    """Unreadable names, by reason."""
    totals: JournalTotals = field(default_factory=JournalTotals)
    error: str | None = None
    notifications: QueueStatus | None = None
    """The queue that announces new files."""


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
        failed_for_good=sum(one.next_try is None for one in failed),
        next_try=min((one.next_try for one in failed if one.next_try), default=None),
        lost_files=sum(one.record.source == name for one in lost_among(history).values()),
        failures=tuple(failed[:FEW]),
        changed_files=0 if found is None else found.count(Reason.CHANGED),
        passed_over=() if found is None else found.unread,
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
        if record.failure is not None and record.failure.code == ChangedPartWay.code
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
