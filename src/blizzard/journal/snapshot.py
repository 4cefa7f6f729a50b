"""What a journal says up to entry N, in one document, so that a start reads that and a tail.

It is derived from the entries and written after them. A small note says which snapshot is the
newest; it is never believed: the snapshot carries a digest of itself and that of its entry.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter, ValidationError

from blizzard.journal.ingested import SegmentRef
from lakebed import layout
from lakebed.documents.entry import SourceRecord
from lakebed.documents.formats import FORMATS
from lakebed.errors import LakeError
from lakebed.storage.store import Reader, Store

FORMAT = 1
FORMAT_2 = 2
"""Of a snapshot that remembers a file which was read in places, or whose segments mark names that
gave no row, or name the entry of each. A program that knows format 1 only would misread them.
Whatever needs a higher format in an entry needs it here, too."""
CHECK = b'"check":"'


class SnapshotBroken(LakeError):
    """A snapshot is missing, damaged, or of another entry; the entries are read instead."""

    code = "snapshot_broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A file that is not done, and when an entry said so."""

    record: SourceRecord
    at: str
    entry: int | None = None
    since: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state after entry N."""

    format: int = FORMAT
    journal: str
    sequence: int
    digest: str
    """The SHA-256 of entry N."""
    last: int
    """The last entry with files, which may have to be handed off again."""
    shaping: int | None = None
    """The last entry that says which columns were found; None where it is `last`."""
    source_names: Mapping[str, str] = field(default_factory=dict)
    source_uris: Mapping[str, str] = field(default_factory=dict)
    since: Mapping[str, str] = field(default_factory=dict)
    awaits: int = 0
    heir: str | None = None
    unfinished: tuple[Remembered, ...] = ()
    bad_lines: int = 0
    segments: tuple[SegmentRef, ...] = ()
    check: str = ""
    """The SHA-256 of this document with nothing in this place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """Which snapshot is the newest."""

    sequence: int


_SNAPSHOT = TypeAdapter(Snapshot)
_LATEST = TypeAdapter(Latest)


def read_latest(store: Reader, pipeline: str) -> Snapshot | None:
    """Read the newest snapshot; None where none was ever written."""
    path = layout.latest_snapshot(pipeline)
    body = store.get(path)
    if body is None:
        return None
    try:
        latest = _LATEST.validate_json(body)
        path = layout.snapshot(pipeline, latest.sequence)
        body = store.get(path)
        if body is None:
            raise SnapshotBroken("the newest snapshot is missing", path=path)
        found = _SNAPSHOT.validate_json(body)
    except ValidationError as invalid:
        raise SnapshotBroken("this document cannot be read", path=path) from invalid
    fits = found.format in FORMATS and found.sequence == latest.sequence
    if not fits or _check(body) != found.check:
        raise SnapshotBroken("this snapshot is damaged", path=path)
    return found


def write(store: Store, pipeline: str, found: Snapshot) -> None:
    """Put a snapshot in place, and then the note that it is the newest."""
    needed = max((each.record.needs_format for each in found.unfinished), default=FORMAT)
    whole = replace(found, format=max(found.format, needed), check="")
    whole = replace(whole, check=_check(_SNAPSHOT.dump_json(whole)))
    store.replace(layout.snapshot(pipeline, found.sequence), _SNAPSHOT.dump_json(whole) + b"\n")
    latest = Latest(sequence=found.sequence)
    store.replace(layout.latest_snapshot(pipeline), _LATEST.dump_json(latest) + b"\n")


def _check(body: bytes) -> str:
    """Return the SHA-256 of a snapshot as it is stored, with nothing in the place of the check.

    It goes by the bytes, not by what this program would write: a program that knows more fields
    than the one that wrote a snapshot must not take it for damaged.
    """
    before = body.rpartition(CHECK)[0]
    return hashlib.sha256(before + CHECK + b'"}').hexdigest()
