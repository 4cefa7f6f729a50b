"""The objects of a Delta log: versions, checkpoints and `_last_checkpoint`.

This is the only module that knows how they are named and which of them make up a version.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from lakebed.deltalog.actions import Checkpoint, LogActions, read_actions
from lakebed.deltalog.file_names import path_resolver
from lakebed.documents.reading import parse_json
from lakebed.errors import StoreDenied, StoreUnavailable, TableUnreadable
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, log_version, log_version_number
from lakebed.storage.objects import ahead
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader

CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<of>\d{10})|\.(?P<id>[0-9a-fA-F-]{36}))?\.(?:parquet|json)"
)
LOG_OBJECT = re.compile(r"\d{20}\.(json|checkpoint\..*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointHint:
    """The content of `_last_checkpoint`, a starting point for readers; it may be outdated."""

    version: int = -1
    """-1 if the object is missing or torn."""
    actions: int = 0
    files: int | None = None
    """The number of data files in the checkpoint, if recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """The objects that make up a version of a table: a checkpoint, if any, and later versions."""

    version: int
    """The last version."""
    checkpoint: Checkpoint | None
    objects: Mapping[int, ObjectFacts] = field(default_factory=dict)
    """The listed versions, including those before the checkpoint."""

    @property
    def first(self) -> int:
        """Return the first version after the checkpoint."""
        return 0 if self.checkpoint is None else self.checkpoint.version + 1

    @property
    def missing(self) -> int | None:
        """Return the first version that is missing from the log; None if none is."""
        numbers = range(self.first, self.version)
        return next((number for number in numbers if number not in self.objects), None)


def find_segment(store: Reader, version: int | None = None) -> LogSegment | None:
    """Find the segment of a version, or of the newest, with `_last_checkpoint` and one listing.

    List the whole log if the checkpoint that `_last_checkpoint` names is gone.
    """
    hinted = read_checkpoint_hint(store).version
    is_usable = hinted >= 0 and (version is None or hinted <= version)
    found = _segment_after(store, f"{DELTA_LOG}/{hinted:020d}", version) if is_usable else None
    if found is None or (found.checkpoint is None and is_usable):
        found = _segment_after(store, None, version)
    return found


def _segment_after(store: Reader, start: str | None, version: int | None) -> LogSegment | None:
    # Subfolders hold sidecars or copies, and no version.
    listed = [
        facts
        for facts in store.objects(DELTA_LOG, after=start)
        if facts.path.rpartition("/")[0] == DELTA_LOG
    ]
    objects, complete = versions_in(listed, version), checkpoints(listed)
    last = max((*objects, *(checkpoint.version for checkpoint in complete)), default=-1)
    last = last if version is None else min(last, version)
    if last < 0:
        return None
    return LogSegment(version=last, checkpoint=newest(complete, last), objects=objects)


def whole_segment(store: Reader, version: int | None = None) -> LogSegment:
    """Find the segment of a version; raise TableUnreadable without a log, or if it has a gap."""
    found = find_segment(store, version)
    if found is None:
        raise TableUnreadable("there is no Delta log", path=store.uri)
    if found.missing is not None:
        raise TableUnreadable(
            "a version of the Delta log is missing", version=found.missing, table=store.uri
        )
    return found


def has_log(store: Reader) -> bool:
    """Whether a Delta log exists, readable or not."""
    if store.local_root is not None:
        folder = store.local_root / DELTA_LOG
        try:
            # The store lists an unreadable folder as an empty one.
            next(folder.iterdir(), None)
        except FileNotFoundError:
            return False
        except OSError as cause:
            raise StoreDenied("the Delta log cannot be read", path=folder) from cause
    return any(is_log_object(facts.path) for facts in store.objects(DELTA_LOG))


def is_empty_log(store: Reader) -> bool:
    """Whether the log is only an empty version 0, as a power cut can leave it."""
    objects = store.level(DELTA_LOG)[1]
    return [(facts.path, facts.size) for facts in objects] == [(log_version(0), 0)]


def read_checkpoint_hint(store: Reader) -> CheckpointHint:
    """Read `_last_checkpoint`; ignore a torn one."""
    body = store.get(LAST_CHECKPOINT)
    try:
        match None if body is None else parse_json(body):
            case {"version": int(version), **rest}:
                actions, files = rest.get("size"), rest.get("numOfAddFiles")
                return CheckpointHint(
                    version=version,
                    actions=actions if isinstance(actions, int) else 0,
                    files=files if isinstance(files, int) else None,
                )
    except ValueError:
        pass
    return CheckpointHint()


def versions_in(listed: Iterable[ObjectFacts], last: int | None = None) -> dict[int, ObjectFacts]:
    """Return the objects that are versions, up to `last`, by version."""
    return {
        number: facts
        for facts in listed
        if (number := log_version_number(facts.path)) is not None
        and (last is None or number <= last)
    }


def unbroken(versions: Iterable[int], last: int) -> int:
    """Return the start of the run of versions that ends with `last`; `last + 1` if it is empty."""
    existing = set(versions)
    first = last + 1
    while first - 1 in existing:
        first -= 1
    return first


def checkpoints(listed: Iterable[ObjectFacts]) -> list[Checkpoint]:
    """Return the complete checkpoints among some objects of a log."""
    found: dict[tuple[int, int, str], dict[int, ObjectFacts]] = {}
    for facts in listed:
        match = CHECKPOINT.fullmatch(_name(facts.path))
        if match and (match["id"] or facts.path.endswith(".parquet")):
            key = (int(match["version"]), int(match["of"] or 0), match["id"] or "")
            found.setdefault(key, {})[int(match["part"] or 0)] = facts
    return [
        Checkpoint(
            version=version,
            parts=tuple(parts[number] for number in sorted(parts)),
            is_classic=not name,
        )
        for (version, of, name), parts in found.items()
        if set(parts) == (set(range(1, of + 1)) if of else {0})
        and all(part.size > 0 for part in parts.values())
    ]


def newest(found: Iterable[Checkpoint], last: int) -> Checkpoint | None:
    """Return the newest checkpoint up to a version; prefer a classic one."""
    usable = [checkpoint for checkpoint in found if checkpoint.version <= last]
    return max(usable, key=lambda each: (each.version, each.is_classic), default=None)


def is_log_object(path: str) -> bool:
    """Whether an object belongs to a log, readable or not."""
    return path == LAST_CHECKPOINT or LOG_OBJECT.fullmatch(_name(path)) is not None


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def fetch_actions(
    store: Reader,
    numbers: Iterable[int],
    *,
    kinds: Container[str] | None = None,
    only: Callable[[bytes], bool] | None = None,
    may_be_empty: bool = False,
) -> Iterator[LogActions | None]:
    """Read versions in order, several at a time; None for a missing one."""
    resolve = path_resolver(store)
    parse = partial(
        read_actions, resolve=resolve, kinds=kinds, only=only, may_be_empty=may_be_empty
    )
    for number, body in ahead(lambda each: store.get(log_version(each)), numbers):
        where = store.describe(log_version(number))
        yield None if body is None else parse(number, body, where)


def read_versions(store: Reader, numbers: Iterable[int]) -> Iterator[LogActions]:
    """Read versions in order, several at a time; raise if one is missing."""
    for actions in fetch_actions(store, numbers):
        if actions is None:
            # A clean-up removed it after the listing: the next attempt sees the new state.
            raise StoreUnavailable(
                "versions of the Delta log vanished while they were read", path=store.uri
            )
        yield actions
