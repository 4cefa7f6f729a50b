"""The dead letter queue: one NDJSON object per batch that had failures, one line per failure.

The object is written before the batch's journal entry, under a name that is used once, and it
counts only if that entry names it. So a crash in between leaves an object that does not count, and
never a failure without its record. If it cannot be written, the batch is not journaled.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import sink_location, source_uris_of
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.records import FailureStage, SourceRecord
from lakebed.errors import DocumentUnreadable, LakeError, StoreDenied, StoreUnavailable
from lakebed.locations import place_of
from lakebed.retry import Backoff, attempts
from lakebed.storage.options import Location, StorageOptions
from lakebed.storage.store import AlreadyThere, Created, Store

TRIES = 4
PROOF = "_writable"
"""Object that proves that the queue can be written; no source takes a name like this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One failed source file; a line of the queue holds these fields, in this order."""

    path: str
    """The file's full URI."""
    error: str
    stage: FailureStage
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
        return Location(uri=uri, options=dlq_location_of(settings)[0].options)
    return beside(sink_location(settings), uri)


def dlq_location_of(settings: PipelineSettings) -> tuple[Location, str]:
    """Return the store and the folder of a queue: the configured place, or the table directory.

    A configured place is reached with options of its own or, if there are none, as what lies
    beside the sink.
    """
    sink, configured = sink_location(settings), settings.dlq_path
    if configured is None:
        return sink, layout.dead_letter_folder(settings.name)
    if settings.dlq_options.plain():
        return Location(uri=configured, options=settings.dlq_options), ""
    return beside(sink, configured), ""


@dataclass(slots=True)
class DeadLetterWriter:
    """Writes the letters of a pipeline, and knows whether that is possible before a batch runs."""

    settings: PipelineSettings
    clock: Clock
    open_sink: Callable[[Location], Store]
    _is_open: bool = False

    def check(self) -> None:
        """Raise if the queue cannot be written to; called at the start, and again after trouble.

        Without it a batch is not journaled, so that it would be run in vain, each time again. A
        queue in the table directory is not checked: nothing is run without that.
        """
        if self._is_open or self.settings.dlq_path is None:
            return
        store = self.open_sink(dlq_location_of(self.settings)[0])
        # Create-only, so that a proof that may not be removed is left once and for all.
        if isinstance(store.create(PROOF, b""), Created):
            with suppress(StoreDenied):
                store.delete(PROOF)
        self._is_open = True

    def record(
        self, records: Iterable[SourceRecord], *, batch: int, pause: Callable[[float], None]
    ) -> tuple[str, ...]:
        """Write the letters of a batch before its entry; return the URI that the entry then names.

        If that fails, the next batch is not run before the queue can be written to.
        """
        found = letters(
            records,
            pipeline=self.settings.name,
            batch=batch,
            source_uris=source_uris_of(self.settings),
            at=self.clock.now(),
        )
        if not found:
            return ()
        location, folder = dlq_location_of(self.settings)
        try:
            store = self.open_sink(location)
            return (write(store, folder, encode(found), clock=self.clock, pause=pause),)
        except LakeError:
            self._is_open = False
            raise


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
