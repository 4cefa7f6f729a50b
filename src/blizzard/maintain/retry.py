"""Source files that failed, and that an operator wants to be read again at once.

A `retry` entry names them. It changes nothing of what is known of them but that they are due: a
blizzard that runs hears of it at its next look, any other at its start.
"""

from dataclasses import dataclass, replace

from blizzard.journal.checks import refuse_closed, refuse_half_begun
from blizzard.journal.fence import append_beside
from blizzard.journal.state import read_history
from blizzard.model.part_way import lacks_its_object
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, SourceRecord
from lakebed.errors import JournalConflict
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader, Store

TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The source files that failed and are meant, and where the journal stands."""

    records: tuple[SourceRecord, ...] = ()
    unknown: frozenset[str] = frozenset()
    """What was named, and is none of the files that failed."""
    stuck: tuple[SourceRecord, ...] = ()
    """Files that are meant and failed since the object that was begun is not there: asking for them
    again changes nothing."""
    last: Entry | None = None
    digest: str | None = None


def look(store: Reader, pipeline: str, wanted: frozenset[str] | None) -> Failed:
    """Find the files that failed: all of them, or those that are named.

    A name is the file's path, `source:path` or its URI. A file that is gone from its source is
    none of them: there is nothing to read.
    """
    history = read_history(store, pipeline)
    tail = JournalReader(store, pipeline).entries(history.sequence - 1)
    last = next(tail, None) if history.sequence >= 0 else None
    if last is None:
        return Failed(unknown=wanted or frozenset())
    refuse_closed(store, pipeline, heir=history.heir)
    refuse_half_begun(store, pipeline, sequence=history.sequence, awaits=history.awaits)
    found: list[SourceRecord] = []
    unknown = set(wanted or ())
    for key in sorted(history.unfinished):
        record = history.unfinished[key].record
        if record.failure is None or record.gone:
            continue
        uri = f"{last.source_uris.get(record.source, '').rstrip('/')}/{record.path}"
        names = {record.key, record.path, uri}
        if wanted is None or not names.isdisjoint(wanted):
            found.append(record)
            unknown -= names
    return Failed(
        records=tuple(record for record in found if not lacks_its_object(record)),
        unknown=frozenset(unknown),
        stuck=tuple(record for record in found if lacks_its_object(record)),
        last=last,
        digest=history.digest,
    )


def retry(
    store: Store, pipeline: str, wanted: frozenset[str] | None, *, clock: Clock
) -> tuple[Failed, int | None]:
    """Append the entry that makes the files due; return what it names, and its number."""
    for _try in range(TRIES):
        found = look(store, pipeline, wanted)
        if not found.records or found.last is None:
            return found, None
        entry = found.last.successor(
            "retry",
            previous=found.digest,
            run=str(clock.fresh_id()),
            created=clock.now().isoformat(),
            sources=tuple(replace(record, retry=True) for record in found.records),
        )
        if append_beside(store, entry):
            return found, entry.sequence
    raise JournalConflict(
        "batches are journaled faster than this can be written down; nothing was done, try again",
        path=store.describe(layout.journal_folder(pipeline)),
    )
