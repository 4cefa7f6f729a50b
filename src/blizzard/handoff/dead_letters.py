"""The dead letter queue: one NDJSON object per batch that had failures, one line per failure.

The object is written before the batch's journal entry, under a name that is used once, and it
counts only if that entry names it. So a crash in between leaves an object that nobody counts, and
never a failure without its record. If it cannot be written, the batch is not journaled.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum

from pydantic import TypeAdapter, ValidationError

from blizzard.handoff.lost_files import LostFile, as_told, lost_among
from blizzard.journal.books import dead_letters_of
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.ledger import Ledger
from blizzard.journal.standings import PassedOver, nothing_decided
from blizzard.model.files import Location, UnfinishedFile
from blizzard.model.locations import OpenReader, sink_location, source_uris_of
from blizzard.model.settings import PipelineSettings
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.documents.source_record import SourceRecord, Stage
from lakebed.errors import DocumentUnreadable, ObjectMissing, StoreUnavailable
from lakebed.journal import JournalReader
from lakebed.locations import place_of
from lakebed.retry import Backoff, attempts
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import AlreadyThere, Reader, Store

TRIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One failed source file; a line of the queue holds these fields, in this order."""

    path: str
    """The file's full URI."""
    error: str
    stage: Stage
    timestamp: str
    retry_count: int
    """How often it had been tried before; 0 at the first failure."""
    code: str
    line: int | None
    field: str | None
    pipeline: str
    source: str
    batch: int
    """The journal entry that names the object."""
    size: int
    etag: str | None


def letters(
    records: Iterable[SourceRecord],
    *,
    pipeline: str,
    batch: int,
    source_uris: Mapping[str, str],
    at: datetime,
) -> tuple[DeadLetter, ...]:
    """Return a letter for each failed file of a batch. Pure."""
    return tuple(
        DeadLetter(
            path=f"{source_uris[record.source].rstrip('/')}/{record.path}",
            error=record.failure.message,
            stage=record.failure.stage,
            timestamp=at.isoformat(),
            retry_count=record.failure.attempts - 1,
            code=record.failure.code,
            line=record.failure.line,
            field=record.failure.field,
            pipeline=pipeline,
            source=record.source,
            batch=batch,
            size=record.size,
            etag=record.etag,
        )
        for record in records
        if record.failure is not None and not record.gone
    )


def encode(found: Iterable[DeadLetter]) -> bytes:
    """Write letters as NDJSON."""
    lines = (json.dumps(asdict(letter), ensure_ascii=False) for letter in found)
    return "".join(f"{line}\n" for line in lines).encode()


def decode(body: bytes, path: str) -> tuple[DeadLetter, ...]:
    """Read an object of the queue; one that is not as it was written is an error."""
    try:
        return tuple(_LETTER.validate_json(line) for line in body.split(b"\n") if line)
    except ValidationError as invalid:
        raise DocumentUnreadable(
            f"this is not an object of a dead letter queue: {invalid.errors()[0]['msg']}", path=path
        ) from invalid


_LETTER = TypeAdapter(DeadLetter)


@dataclass(frozen=True, slots=True, kw_only=True)
class DlqLocation:
    """Where a pipeline's letters go: a store, and a folder in it."""

    location: Location
    folder: str


def dlq_location(
    pipeline: str, *, sink: Location, configured: str | None, options: StorageOptions | None = None
) -> DlqLocation:
    """Return where a queue is: at the configured path or, if none, below the table directory.

    It is reached with options of its own or, if there are none, as what lies beside the sink.
    """
    if configured is None:
        return DlqLocation(location=sink, folder=layout.dead_letter_folder(pipeline))
    if options is not None and options.plain():
        return DlqLocation(location=Location(uri=configured, options=options), folder="")
    return DlqLocation(location=beside(sink, configured), folder="")


def beside(sink: Location, uri: str) -> Location:
    """Return how a place is reached: with the sink's options if it is of the same kind."""
    same = place_of(uri).scheme == place_of(sink.uri).scheme
    return Location(uri=uri, options=sink.options if same else StorageOptions())


def is_in_queue(settings: PipelineSettings, uri: str) -> bool:
    """Whether a folder or an object is in the queue that a pipeline has a path for."""
    queue = settings.dlq_path
    return queue is not None and place_of(queue).holds(place_of(uri))


def queue_at(settings: PipelineSettings, uri: str) -> Location:
    """Return how a folder of letters is reached: as the queue if it is in it, or beside the sink.

    The queue may have been at another place when they were written.
    """
    if is_in_queue(settings, uri):
        return Location(uri=uri, options=dlq_location_of(settings).location.options)
    return beside(sink_location(settings), uri)


def write(
    store: Store,
    folder: str,
    body: bytes,
    *,
    clock: Clock,
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """Store one object of the queue under a new name and return its URI; nothing is replaced."""
    for attempt in attempts(TRIES, Backoff(limit_secs=10), pause):
        name = layout.dead_letters(clock.now(), clock.fresh_id())
        path = f"{folder}/{name}" if folder else name
        with attempt:
            # A name that is used once and is taken all the same: our write, its answer lost.
            if isinstance(store.create(path, body), AlreadyThere) and store.get(path) != body:
                raise StoreUnavailable(
                    "a newly generated name is already taken", path=store.describe(path)
                )
            break
    return store.describe(path)


def record_failures(
    records: Iterable[SourceRecord],
    settings: PipelineSettings,
    open_sink: Callable[[Location], Store],
    *,
    batch: int,
    clock: Clock,
    pause: Callable[[float], None],
) -> tuple[str, ...]:
    """Write the letters of a batch before its entry; return the URI that the entry then names."""
    found = letters(
        records,
        pipeline=settings.name,
        batch=batch,
        source_uris=source_uris_of(settings),
        at=clock.now(),
    )
    if not found:
        return ()
    place = dlq_location_of(settings)
    store = open_sink(place.location)
    return (write(store, place.folder, encode(found), clock=clock, pause=pause),)


class Now(StrEnum):
    """What has become of a file since a letter was written."""

    FAILED = "failed"
    """This was its last try."""
    FAILED_AGAIN = "failed again"
    """A later letter reports it."""
    INGESTED = "ingested"
    LOST = "lost"
    """This was its last try, it was deleted from its source since, and nobody has given it up."""
    GONE = "gone"
    """It is not in its source any more, or is to be read again for another reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What the queue of one pipeline holds."""

    pipeline: str
    letters: tuple[DeadLetter, ...]
    """The newest first."""
    gone: tuple[str, ...]
    """Objects that entries name and that are not there any more."""
    now: tuple[Now, ...] = ()
    """What has become of the file of each letter."""
    inherited: int = 0
    """Files that failed under an earlier journal: it has their letters."""
    unread: int = 0
    """Letters in objects that were not read, because none is of a file that is failed now."""
    lost: tuple[LostFile, ...] = ()
    """Files that nobody has given up: their days stay open. The newest first."""

    @property
    def current(self) -> tuple[DeadLetter, ...]:
        """Return the letters of files that are failed now, one of each file."""
        together = zip(self.letters, self.now, strict=True)
        return tuple(letter for letter, now in together if now is Now.FAILED)

    @property
    def over(self) -> int:
        """Count the letters of failures that nobody has to do anything about."""
        return sum(now not in (Now.FAILED, Now.LOST) for now in self.now) + self.unread


def read(
    entries: Sequence[Entry],
    states: Mapping[str, "int | Now"],
    *,
    pipeline: str,
    open_folder: Callable[[str], Reader],
    lost: Collection[str] = (),
) -> Queue:
    """Read the objects that journal entries name; no other object belongs to the queue.

    `states` says by key what became of a file, or which entry says how it failed; `lost` are the
    keys of those that are lost. The objects may be in several places, since `dlq_path` may have
    been another one before.
    """
    found: list[DeadLetter] = []
    now: list[Now] = []
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
            body = None  # The whole folder was cleared away.
        if body is None:
            gone.append(uri)
        else:
            letters_here = decode(body, uri)
            found += letters_here
            now += [_now(letter, entry, states, lost) for letter in letters_here]
    return Queue(pipeline=pipeline, letters=tuple(found), gone=tuple(gone), now=tuple(now))


def _states(entries: Iterable[Entry], lost: Collection[str]) -> dict[str, int | Now]:
    """Return what became of each file that has ever failed, or the entry that says how it failed.

    Pure. Only those are held: of all others there is no letter.
    """
    states: dict[str, int | Now] = {}
    for entry in entries:
        for record in entry.sources:
            if record.failure is None and record.key not in states:
                continue
            if record.gone and record.key in lost:
                continue  # It failed as it did before, and still stands so.
            if record.gone:
                states[record.key] = Now.GONE
            elif record.failure is None:
                states[record.key] = Now.INGESTED
            elif not record.retry:  # One that is asked for again has failed as it did before.
                states[record.key] = entry.sequence
    return states


def _now(
    letter: DeadLetter, entry: Entry, states: Mapping[str, int | Now], lost: Collection[str]
) -> Now:
    root = entry.source_uris.get(letter.source, "").rstrip("/")
    key = f"{letter.source}:{letter.path.removeprefix(f'{root}/')}"
    state = states.get(key, Now.GONE)
    if isinstance(state, Now):
        return state
    if state != entry.sequence:
        return Now.FAILED_AGAIN
    return Now.LOST if key in lost else Now.FAILED


def dlq_location_of(settings: PipelineSettings) -> DlqLocation:
    """Return where the pipeline's dead letters go."""
    return dlq_location(
        settings.name,
        sink=sink_location(settings),
        configured=settings.dlq_path,
        options=settings.dlq_options,
    )


def dead_letter_queue(
    settings: PipelineSettings,
    open_reader: OpenReader,
    *,
    every: bool = True,
    passed_over: PassedOver = nothing_decided,
) -> Queue:
    """Read a pipeline's dead letter queue. It is handed readers only, so it cannot write.

    Without `every` only objects with letters of files that are failed now: the newest snapshot and
    the entries after it say which entries name those. With it, every entry is read.
    """
    sink = sink_location(settings)

    def open_folder(uri: str) -> Reader:
        return open_reader(queue_at(settings, uri))

    try:
        store = open_reader(sink)
    except ObjectMissing:
        # The table's folder does not exist yet.
        return Queue(pipeline=settings.name, letters=(), gone=())
    journal = JournalReader(store, settings.name)
    history = read_ledger(store, settings.name, passed_over=passed_over)
    inherited = sum(_failed_before(known, history) for known in history.unfinished.values())
    lost = lost_among(history)
    told = as_told(settings, history, lost.values())
    if every:
        entries = list(journal.entries())
        in_vain = {one.entry for one in history.undecided.passed_over}
        states = _states((one for one in entries if one.sequence not in in_vain), lost)
        queue = read(entries, states, pipeline=settings.name, open_folder=open_folder, lost=lost)
        return replace(queue, inherited=inherited, lost=told)
    failed_in = {
        key: known.failed_in
        for key, known in history.unfinished.items()
        if known.record.failure is not None
        and (key in lost or not known.record.gone)
        and known.failed_in is not None
    }
    named = [journal.listed(number).entry for number in sorted(set(failed_in.values()))]
    queue = read(named, failed_in, pipeline=settings.name, open_folder=open_folder, lost=lost)
    there = sum(dead_letters_of(entry) for entry in named)
    unread = history.books.sums.dead_letters - there
    return replace(queue, unread=unread, inherited=inherited, lost=told)


def _failed_before(known: UnfinishedFile, history: Ledger) -> bool:
    """Whether a file failed under the journal that this one has taken over, and not since."""
    entry = known.entry if known.failed_in is None else known.failed_in
    before = entry is None or entry <= history.awaits
    return known.record.failure is not None and not known.record.gone and before
