"""What a journal says up to entry N, in one document, so that a start reads that and a tail.

It is derived from the entries and written after them. A small note says which snapshot is the
newest; it is never believed: the snapshot carries a digest of itself and that of its entry.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from blizzard.journal.books import KeptBooks
from blizzard.journal.earlier import EarlierObjects
from blizzard.journal.ingested import SegmentRef
from blizzard.journal.shelf import Kept
from blizzard.journal.undecided import Undecided
from blizzard.model.files import UnfinishedFile
from lakebed import layout
from lakebed.errors import LakeError
from lakebed.storage.store import Reader, Store

FORMAT = 1
"""A snapshot of another format is not read: the entries are read once instead."""
CHECK = b'"check":"'


class SnapshotBroken(LakeError):
    """A snapshot is missing, damaged, or of another entry; the entries are read instead."""

    code = "snapshot_broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state after entry N."""

    format: int
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
    peak: str | None = None
    """The latest time that an entry tells; None for that of entry N."""
    stepped_back: float = 0.0
    """By how many seconds a later entry had an earlier time."""
    unfinished: Kept[UnfinishedFile] = field(default_factory=Kept)
    """Files that failed, or of which a part is unread."""
    undecided: Mapping[str, tuple[Undecided, ...]] = field(default_factory=dict)
    """What retractions make of files, unless penguin passes them over, in their order."""
    earlier: Kept[EarlierObjects] = field(default_factory=Kept)
    """What else is in the table that was read under the names of files."""
    books: KeptBooks = field(default_factory=KeptBooks)
    segments: tuple[SegmentRef, ...] = ()
    check: str = ""
    """The SHA-256 of this document with nothing in this place."""

    @property
    def segment_ids(self) -> frozenset[str]:
        """Return the ids of all segments that it names, of whatever they are."""
        shelves: tuple[Kept[Any], ...] = (self.unfinished, self.earlier, *self.books.values)
        return frozenset(
            ref.id for refs in (self.segments, *(each.segments for each in shelves)) for ref in refs
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What every version of a snapshot has."""

    format: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """Which snapshot is the newest."""

    sequence: int


_SNAPSHOT = TypeAdapter(Snapshot)
_LATEST = TypeAdapter(Latest)
_STAMP = TypeAdapter(Stamp)


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
        if _STAMP.validate_json(body).format != FORMAT:
            raise SnapshotBroken("a snapshot of another version of blizzard", path=path)
        found = _SNAPSHOT.validate_json(body)
    except ValidationError as invalid:
        raise SnapshotBroken("this document cannot be read", path=path) from invalid
    if found.sequence != latest.sequence or _check(body) != found.check:
        raise SnapshotBroken("this snapshot is damaged", path=path)
    return found


def write(store: Store, pipeline: str, found: Snapshot) -> None:
    """Put a snapshot in place, and then the note that it is the newest."""
    whole = replace(found, check=_check(_encoded(replace(found, check="none yet"))))
    store.replace(layout.snapshot(pipeline, found.sequence), _encoded(whole) + b"\n")
    latest = Latest(sequence=found.sequence)
    store.replace(layout.latest_snapshot(pipeline), _LATEST.dump_json(latest) + b"\n")


def _encoded(found: Snapshot) -> bytes:
    return _SNAPSHOT.dump_json(found, exclude_defaults=True)


def _check(body: bytes) -> str:
    """Return the SHA-256 of a snapshot as it is stored, with nothing in the place of the check.

    It goes by the bytes, not by what this program would write: a program that knows more fields
    than the one that wrote a snapshot must not take it for damaged.
    """
    before = body.rpartition(CHECK)[0]
    return hashlib.sha256(before + CHECK + b'"}').hexdigest()
