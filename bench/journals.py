"""What a start, `blizzard status`, `blizzard dlq list` and a snapshot cost as a journal grows."""

from collections.abc import Callable
from dataclasses import replace

from bench.figures import Figures
from bench.measuring import measured, peak_of
from blizzard.answers.bad_lines import quarantine_of
from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.status_reader import StatusReader, dead_letter_queue
from blizzard.handoff.dead_letters import encode as encode_letters
from blizzard.handoff.dead_letters import letters
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import PipelineSettings, SinkSettings
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, digest, encode
from lakebed.documents.records import Failure, FailureStage, SourceRecord
from lakebed.layout import dead_letter_folder, dead_letters, journal_entry
from lakebed.storage.options import Location
from lakebed.storage.store import Reader
from lakebed.types import Handoff
from tests.support.bucket import Bucket
from tests.support.builders import ID_AND_NAME, NOON, source_settings

TAIL = 50
FAILED_PER_SNAPSHOT = 100
URIS = {"default": "s3://bucket/in"}
SETTINGS = PipelineSettings(
    sources=(source_settings("s3://bucket/in"),),
    sink=SinkSettings(table_uri="s3://bucket/table"),
    schema=ID_AND_NAME,
)


def _journal(count: int) -> Bucket:
    """Return a journal with so many entries of one file each: a snapshot, and fifty after it."""
    store = Bucket(uri="s3://bucket/table")
    keeps = SnapshotWriter(store=store, pipeline="default", clock=Clock())
    last = _entries(store, None, range(count - TAIL))
    keeps.write(read_ledger(store, "default", spill=keeps.spill))
    _entries(store, last, range(count - TAIL, count))
    return store


def _asked(count: int, ask: Callable[[Bucket], object]) -> Figures:
    """Measure what is asked of a journal with so many entries."""
    store = _journal(count)
    store.requests.clear()
    found: Figures = {}
    with measured(found):
        ask(store)
    found["requests"] = sum(store.requests.values())
    found["bytes"] = peak_of(lambda: ask(store))
    return found


def start(count: int) -> Figures:
    """Measure a start."""
    return _asked(count, lambda store: read_ledger(store, "default"))


def status(count: int) -> Figures:
    """Measure `blizzard status`, but for its look at the sources, which are empty."""

    def ask(store: Bucket) -> object:
        places = {SETTINGS.sink.table_uri: store}
        return StatusReader(SETTINGS, Clock()).read(
            lambda place: places.get(place.uri, Bucket(uri=place.uri))
        )

    return _asked(count, ask)


def dlq_list(count: int) -> Figures:
    """Measure `blizzard dlq list` where every hundredth file failed, and one of them still does."""

    def ask(store: Bucket) -> object:
        def open_reader(place: Location) -> Reader:
            return store if place.uri == store.uri else _Below(store, place.uri)

        asked = PipelineEvidence.read(SETTINGS, Clock(), opening=open_reader)
        return dead_letter_queue(asked), quarantine_of(asked)

    return _asked(count, ask)


class _Below(Bucket):
    """A folder of another store, which counts what is asked of it."""

    def __init__(self, store: Bucket, uri: str) -> None:
        super().__init__(uri=uri)
        self._above = store
        self._folder = uri.removeprefix(f"{store.uri}/")

    def get(self, path: str) -> bytes | None:
        return self._above.get(f"{self._folder}/{path}")


class _Weighed(Bucket):
    """Counts the bytes that are written."""

    written = 0

    def replace(self, path: str, body: bytes) -> None:
        self.written += len(body)
        super().replace(path, body)


def failed(count: int) -> Figures:
    """Measure a snapshot, on average, until so many files have failed: a hundred before each."""
    store = _Weighed(uri="s3://bucket/table")
    history = Ledger(store=store, pipeline="default")
    keeps = SnapshotWriter(store=store, pipeline="default", clock=Clock())
    last: tuple[Entry, bytes] | None = None
    snapshots = count // FAILED_PER_SNAPSHOT
    found: Figures = {}
    with measured(found):
        for snapshot in range(snapshots):
            first = snapshot * FAILED_PER_SNAPSHOT
            records = tuple(_failed_file(first + n) for n in range(FAILED_PER_SNAPSHOT))
            last = _after(last, records)
            history.learn(*last)
            keeps.write(history)
    return {
        "cpu_seconds": round(found["cpu_seconds"] / snapshots, 3),
        "requests": round(sum(store.requests.values()) / snapshots),
        "bytes": None,
        "written": round(store.written / snapshots),
    }


def _entries(
    store: Bucket, last: tuple[Entry, bytes] | None, numbers: range
) -> tuple[Entry, bytes] | None:
    """Put entries into a store, each after the one before; the file of every hundredth fails.

    The next entry has it after all.
    """
    for number in numbers:
        letter = f"{dead_letter_folder('default')}/{dead_letters(NOON, Clock().fresh_id())}"
        before, fails = _failed_file(number - 1), number % 100 == 99
        read = replace(before, path=f"{number:08d}.ndjson", failure=None, lines=1, rows=1)
        mended = replace(before, failure=None, lines=1, rows=1)
        if fails:
            found = letters(
                [_failed_file(number)],
                pipeline="default",
                batch=number,
                source_uris=URIS,
                at=NOON,
            )
            store.replace(letter, encode_letters(found))
        last = _after(
            last,
            (_failed_file(number),)
            if fails
            else (read, mended)
            if number and number % 100 == 0
            else (read,),
            dlq=(store.describe(letter),) if fails else (),
        )
        path = journal_entry("default", number)
        store.names.append(path)
        store.bodies[path] = last[1]
    store.names.sort()
    return last


def _after(
    last: tuple[Entry, bytes] | None,
    sources: tuple[SourceRecord, ...],
    dlq: tuple[str, ...] = (),
) -> tuple[Entry, bytes]:
    """Return the entry that follows another, and its bytes."""
    entry = Entry(
        kind="batch" if last else "open",
        pipeline="default",
        journal="j",
        sequence=0 if last is None else last[0].sequence + 1,
        run="r",
        created=NOON.isoformat(),
        previous=None if last is None else digest(last[1]),
        handoff=Handoff.JOURNAL,
        source_uris=URIS,
        table_schema={"type": "struct", "fields": []},
        partition_columns=(),
        sources=sources,
        dlq=dlq,
    )
    return entry, encode(entry)


def _failed_file(number: int) -> SourceRecord:
    failure = Failure(
        stage=FailureStage.PARSE, code="bad_json", message="a line is no JSON", line=17
    )
    path = f"{number:08d}.ndjson"
    return SourceRecord(source="default", path=path, size=1, etag=None, failure=failure)
