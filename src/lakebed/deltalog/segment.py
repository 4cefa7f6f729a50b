"""Which objects a Delta log consists of: versions, checkpoints, and the note of the last one.

Every other module asks here how an object of a log is named and what a log is read from.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lakebed.deltalog.actions import LogActions, read_actions
from lakebed.deltalog.file_names import naming
from lakebed.documents.reading import parse_json
from lakebed.errors import StoreDenied, StoreUnavailable, TableUnreadable
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, log_version, log_version_number
from lakebed.storage.ahead import ahead
from lakebed.storage.store import ObjectFacts, Reader

CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<of>\d{10})|\.(?P<id>[0-9a-fA-F-]{36}))?\.(?:parquet|json)"
)
DERIVED = re.compile(r"(?P<version>\d{20})\.crc|\d{20}\.(?P<last>\d{20})\.compacted\.json")
"""Objects that repeat versions: checksums, and several versions in one file."""
LOG_OBJECT = re.compile(r"\d{20}\.(json|checkpoint\..*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint of which all parts exist."""

    version: int
    parts: tuple[ObjectFacts, ...]
    is_classic: bool = True
    """Whether it is named by its version alone; one named by a UUID may refer to sidecars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointNote:
    """What `_last_checkpoint` says. It only helps readers to start; it may lag behind."""

    version: int = -1
    """-1 without a note, or with a torn one."""
    actions: int = 0
    files: int | None = None
    """How many data files the checkpoint names; None if the note does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """What a version of a table is read from: a checkpoint, if there is one, and later versions."""

    version: int
    """The last version."""
    checkpoint: Checkpoint | None
    objects: Mapping[int, ObjectFacts] = field(default_factory=dict)
    """The listed versions, older ones than the checkpoint included."""

    @property
    def first(self) -> int:
        """Return the first version that is not in the checkpoint."""
        return 0 if self.checkpoint is None else self.checkpoint.version + 1

    @property
    def missing(self) -> int | None:
        """Return the first version that should exist and does not."""
        numbers = range(self.first, self.version)
        return next((number for number in numbers if number not in self.objects), None)


def find_segment(store: Reader, version: int | None = None) -> LogSegment | None:
    """Find what a version, or the last one, is read from, by the note and one listing.

    Where the checkpoint that the note names is gone, the whole log is listed.
    """
    noted = noted_checkpoint(store).version
    helps = noted >= 0 and (version is None or noted <= version)
    found = _segment_after(store, f"{DELTA_LOG}/{noted:020d}", version) if helps else None
    if found is None or (found.checkpoint is None and helps):
        found = _segment_after(store, None, version)
    return found


def _segment_after(store: Reader, start: str | None, version: int | None) -> LogSegment | None:
    # Folders below hold no part of the log: sidecars, or copies.
    listed = [
        one
        for one in store.objects(DELTA_LOG, after=start)
        if one.path.rpartition("/")[0] == DELTA_LOG
    ]
    objects, whole = versions_in(listed, version), checkpoints(listed)
    last = max((*objects, *(one.version for one in whole)), default=-1)
    last = last if version is None else min(last, version)
    if last < 0:
        return None
    return LogSegment(version=last, checkpoint=newest(whole, last), objects=objects)


def whole_segment(store: Reader, version: int | None = None) -> LogSegment:
    """Find what a version is read from; no log, or one with a gap, is an error."""
    found = find_segment(store, version)
    if found is None:
        raise TableUnreadable("there is no Delta log", path=store.uri)
    if found.missing is not None:
        raise TableUnreadable(
            "a version of the Delta log is missing", version=found.missing, table=store.uri
        )
    return found


def has_log(store: Reader) -> bool:
    """Whether there is a Delta log, readable or not."""
    if store.local_root is not None:
        folder = store.local_root / DELTA_LOG
        try:
            # A listing by the store takes an unreadable folder for an empty one.
            next(folder.iterdir(), None)
        except FileNotFoundError:
            return False
        except OSError as cause:
            raise StoreDenied("the Delta log cannot be read", path=folder) from cause
    return any(is_log_object(facts.path) for facts in store.objects(DELTA_LOG))


def is_empty_log(store: Reader) -> bool:
    """Whether all of a log is a version 0 without content, as a power cut can leave it."""
    objects = store.level(DELTA_LOG)[1]
    return [(one.path, one.size) for one in objects] == [(log_version(0), 0)]


def noted_checkpoint(store: Reader) -> CheckpointNote:
    """Read the note of the last checkpoint; a torn one counts as none."""
    body = store.get(LAST_CHECKPOINT)
    try:
        match None if body is None else parse_json(body):
            case {"version": int(version), **rest}:
                actions, files = rest.get("size"), rest.get("numOfAddFiles")
                return CheckpointNote(
                    version=version,
                    actions=actions if isinstance(actions, int) else 0,
                    files=files if isinstance(files, int) else None,
                )
    except ValueError:
        pass
    return CheckpointNote()


def versions_in(listed: Iterable[ObjectFacts], last: int | None = None) -> dict[int, ObjectFacts]:
    """Return the versions among some objects of a log, up to the last one of interest."""
    return {
        number: one
        for one in listed
        if (number := log_version_number(one.path)) is not None and (last is None or number <= last)
    }


def unbroken(versions: Iterable[int], last: int) -> int:
    """Return the first version since which all exist; one past the last if that is missing."""
    there = set(versions)
    first = last + 1
    while first - 1 in there:
        first -= 1
    return first


def checkpoints(listed: Iterable[ObjectFacts]) -> list[Checkpoint]:
    """Return the checkpoints that are whole: of one object, or with all of their parts."""
    found: dict[tuple[int, int, str], dict[int, ObjectFacts]] = {}
    for one in listed:
        named = CHECKPOINT.fullmatch(_name(one.path))
        if named and (named["id"] or one.path.endswith(".parquet")):
            key = (int(named["version"]), int(named["of"] or 0), named["id"] or "")
            found.setdefault(key, {})[int(named["part"] or 0)] = one
    return [
        Checkpoint(
            version=version,
            parts=tuple(parts[number] for number in sorted(parts)),
            is_classic=not name,
        )
        for (version, of, name), parts in found.items()
        if set(parts) == (set(range(1, of + 1)) if of else {0})
        and all(one.size > 0 for one in parts.values())
    ]


def newest(found: Iterable[Checkpoint], last: int) -> Checkpoint | None:
    """Return the newest of some checkpoints, up to a version; of two equals the classic one."""
    known = [one for one in found if one.version <= last]
    return max(known, key=lambda one: (one.version, one.is_classic), default=None)


def removable_version(path: str) -> int | None:
    """Return the version that an object of a log belongs to; None if a clean-up must keep it."""
    number = log_version_number(path)
    if number is not None:
        return number
    named = CHECKPOINT.fullmatch(_name(path))
    if named and not named["id"] and path.endswith(".parquet"):
        return int(named["version"])
    if named := DERIVED.fullmatch(_name(path)):
        return int(named["version"] or named["last"])
    return None


def is_log_object(path: str) -> bool:
    """Whether an object is a part of a log, readable or not."""
    return path == LAST_CHECKPOINT or LOG_OBJECT.fullmatch(_name(path)) is not None


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def fetch_actions(
    store: Reader, numbers: Iterable[int], *, only: Callable[[bytes], bool] | None = None
) -> Iterator[LogActions | None]:
    """Read versions in their order, a few ahead; None for one that is not there."""
    named = naming(store)
    for number, body in ahead(lambda each: store.get(log_version(each)), numbers):
        where = store.describe(log_version(number))
        yield None if body is None else read_actions(number, body, where, named, only=only)


def read_versions(store: Reader, numbers: Iterable[int]) -> Iterator[LogActions]:
    """Read versions in their order, a few ahead; one that is not there is an error."""
    for actions in fetch_actions(store, numbers):
        if actions is None:
            # Cleaned up between the listing and the reading: the next attempt finds the new state.
            raise StoreUnavailable(
                "versions of the Delta log vanished while they were read", path=store.uri
            )
        yield actions
