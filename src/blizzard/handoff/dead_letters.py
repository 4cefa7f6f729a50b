"""The dead letter queue: one NDJSON object per batch with failures, one line per failure.

The object is written before the batch's journal entry, under a unique name, and counts only if the
entry names it. So a crash in between leaves an unused object, never a failure without its record.
If the object cannot be written, the batch is not journaled.
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
"""Name of the object that tests whether the queue is writable; no source reads such a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One failed source file; the fields of a line in the queue, in order."""

    path: str
    """The file's full URI."""
    error: str
    stage: FailureStage
    timestamp: str
    retry_count: int
    """Earlier attempts; 0 at the first failure."""
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
    """Parse an object of the queue; raise if it is damaged."""
    try:
        return tuple(_LETTER.validate_json(line) for line in body.split(b"\n") if line)
    except ValidationError as invalid:
        raise DocumentUnreadable(
            f"this is not an object of a dead letter queue: {invalid.errors()[0]['msg']}", path=path
        ) from invalid


_LETTER = TypeAdapter(DeadLetter)


def beside(sink: Location, uri: str) -> Location:
    """Return how to reach a URI: with the sink's options if the store is of the same kind."""
    same = place_of(uri).scheme == place_of(sink.uri).scheme
    return Location(uri=uri, options=sink.options if same else StorageOptions())


def is_in_queue(settings: PipelineSettings, uri: str) -> bool:
    """Whether a folder or object is in the pipeline's configured queue."""
    queue = settings.dlq_path
    return queue is not None and place_of(queue).holds(place_of(uri))


def queue_at(settings: PipelineSettings, uri: str) -> Location:
    """Return how to reach a folder of letters: like the queue if inside it, else like the sink.

    The queue may have been elsewhere when they were written.
    """
    if is_in_queue(settings, uri):
        return Location(uri=uri, options=dlq_location_of(settings)[0].options)
    return beside(sink_location(settings), uri)


def dlq_location_of(settings: PipelineSettings) -> tuple[Location, str]:
    """Return the store and the folder of a queue: as configured, or in the table directory.

    A configured queue without options of its own is reached like the sink.
    """
    sink, configured = sink_location(settings), settings.dlq_path
    if configured is None:
        return sink, layout.dead_letter_folder(settings.name)
    if settings.dlq_options.plain():
        return Location(uri=configured, options=settings.dlq_options), ""
    return beside(sink, configured), ""


@dataclass(slots=True)
class DeadLetterWriter:
    """Writes the letters of a pipeline, and checks in advance that it can."""

    settings: PipelineSettings
    clock: Clock
    open_sink: Callable[[Location], Store]
    _is_open: bool = False

    def check(self) -> None:
        """Raise if the queue is not writable; called at the start and after errors.

        A batch with failures cannot be journaled without it, so it would run in vain. A queue in
        the table directory is not checked, since no batch runs without that.
        """
        if self._is_open or self.settings.dlq_path is None:
            return
        store = self.open_sink(dlq_location_of(self.settings)[0])
        # Create-only, so that an object which may not be deleted is left only once.
        if isinstance(store.create(PROOF, b""), Created):
            with suppress(StoreDenied):
                store.delete(PROOF)
        self._is_open = True

    def record(
        self, records: Iterable[SourceRecord], *, batch: int, pause: Callable[[float], object]
    ) -> tuple[str, ...]:
        """Write the letters of a batch before its entry; return the URI for the entry.

        If that fails, no further batch runs until the queue is writable.
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
    pause: Callable[[float], object] = time.sleep,
) -> str:
    """Store one object of the queue under a new name and return its URI."""
    for attempt in attempts(TRIES, Backoff(limit_secs=10), pause):
        name = layout.dead_letters(clock.now(), clock.fresh_id())
        path = f"{folder}/{name}" if folder else name
        with attempt:
            # The name is unique, so an existing object is ours and the response was lost.
            if isinstance(store.create(path, body), AlreadyThere) and store.get(path) != body:
                raise StoreUnavailable(
                    "a newly generated name is already taken", path=store.describe(path)
                )
            break
    return store.describe(path)
