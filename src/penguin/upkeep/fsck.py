"""Find files of a table's newest version that are missing or have another size.

The folders are listed once and compared with the log while it is read. Suspects are checked again,
and so is the log: a file that came or went meanwhile is not missing.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakebed import layout
from lakebed.deltalog.actions import FileAction
from lakebed.deltalog.file_names import is_elsewhere
from lakebed.deltalog.segment import LogSegment, read_versions, whole_segment
from lakebed.deltalog.snapshot import active_files
from lakebed.documents.entry import Entry, Kind
from lakebed.storage.objects import ahead
from lakebed.storage.store import Reader
from penguin.backlog.journals import all_journals
from penguin.foreign.rules import may_be_entered
from penguin.upkeep.log_needs import ignore, list_data


def list_all(store: Reader) -> dict[str, int]:
    """Return the size of every object that may be a data file.

    Hidden folders in the root are not entered.
    """
    return {facts.path: facts.size for facts in list_data(store, _may_hold_data, ignore)}


def _may_hold_data(folder: str) -> bool:
    """Whether a folder may hold data files: a log may name files in any subfolder."""
    return "/" in folder or may_be_entered(folder)


MOST_HEADS = 1000
"""The most files checked one by one; for more, the folders are listed again."""


class FsckFault(StrEnum):
    """What is wrong with a file."""

    MISSING = "missing"
    SIZE = "size_differs"
    VECTOR = "vector_missing"
    """Its deletion vector is gone, so which rows are deleted is unknown."""


@dataclass(slots=True, kw_only=True)
class FileOrigin:
    """The origin of a data file, from a journal."""

    pipeline: str
    entry: int
    kind: Kind
    """The kind of that entry: `blizzard redo` reads only batches again."""
    sources: tuple[str, ...]
    """The source files with rows in it."""
    rows: int
    others: tuple[str, ...]
    """The other files of its work unit; they stand or fall together."""
    replaced: bool
    """Whether another journal replaced its journal: `blizzard redo` uses only the current one."""
    why_lost: str | None
    """Why `blizzard redo` cannot read its rows again; None if it can."""


@dataclass(slots=True, kw_only=True)
class Damaged:
    """A file of the table that differs from what the log says."""

    trouble: FsckFault
    action: FileAction
    found: int | None = None
    """The size of the object; None without one."""
    origin: FileOrigin | None = None
    """None if no entry names it: another program wrote it, or rewrote blizzard's files."""

    @property
    def path(self) -> str:
        """Return its path in the store."""
        return self.action.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of checking a table."""

    version: int
    files: int
    elsewhere: int
    """Files outside of the table's folder, as in a shallow clone: they are not checked."""
    damaged: tuple[Damaged, ...]

    @property
    def missing(self) -> tuple[Damaged, ...]:
        """Return the missing files."""
        return tuple(file for file in self.damaged if file.trouble is FsckFault.MISSING)


def check(store: Reader) -> Checked:
    """Compare the files of the newest version with the existing objects."""
    listed = list_all(store)
    tail = whole_segment(store)
    files = elsewhere = 0
    suspects: list[FileAction] = []
    for action in active_files(store, tail):
        files += 1
        if is_elsewhere(action.path):
            elsewhere += 1
        elif _trouble(action, listed) is not None:
            suspects.append(action)
    damaged = _still_damaged(store, suspects) if suspects else []
    if damaged:
        damaged = _still_active(store, tail, damaged)
        _count_rows(store, tail, damaged)
        _find_origins(store, damaged)
    return Checked(
        version=tail.version,
        files=files,
        elsewhere=elsewhere,
        damaged=tuple(sorted(damaged, key=lambda one: one.path)),
    )


def _trouble(action: FileAction, listed: Mapping[str, int]) -> FsckFault | None:
    size = listed.get(action.path)
    if size is None:
        return FsckFault.MISSING
    if action.size is not None and size != action.size:
        return FsckFault.SIZE
    others = [path for path in action.files if path != action.path and not is_elsewhere(path)]
    return FsckFault.VECTOR if any(listed.get(path) is None for path in others) else None


def _still_damaged(store: Reader, suspects: list[FileAction]) -> list[Damaged]:
    """Check suspects again: they may be behind a link, or have appeared since."""
    paths = sorted({path for suspect in suspects for path in suspect.files})
    if len(paths) > MOST_HEADS:
        again = list_all(store)
    else:
        again = {path: found.size for path, found in ahead(store.head, paths) if found is not None}
    return [
        Damaged(trouble=trouble, action=suspect, found=again.get(suspect.path))
        for suspect in suspects
        if (trouble := _trouble(suspect, again)) is not None
    ]


def _still_active(store: Reader, tail: LogSegment, damaged: list[Damaged]) -> list[Damaged]:
    """Return the files still in the table: one removed meanwhile may well have been deleted."""
    newest = whole_segment(store).version
    gone = {
        action.key
        for version in read_versions(store, range(tail.version + 1, newest + 1))
        for action in version.removes
    }
    return [file for file in damaged if file.action.key not in gone]


def _count_rows(store: Reader, tail: LogSegment, damaged: list[Damaged]) -> None:
    """Read the row counts of files that the checkpoint names."""
    uncounted = {one.action.key: one for one in damaged if one.action.rows is None}
    for action in active_files(store, tail, counted=True) if uncounted else ():
        if action.key in uncounted:
            uncounted[action.key].action = action


def _find_origins(store: Reader, damaged: list[Damaged]) -> None:
    """Find the origin of each file in the entries of all pipelines."""
    wanted = {one.path for one in damaged if layout.file_id(one.path) is not None}
    found: dict[str, FileOrigin] = {}
    readers: dict[tuple[str, str], list[FileOrigin]] = defaultdict(list)
    """By journal and what a work unit read: its files, until a later entry deals with that."""
    for entry, replaced in _entries(store) if wanted else ():
        for name in _dealt_with(entry):
            for origin in readers.pop((entry.journal, name), ()):
                origin.why_lost = origin.why_lost or (
                    f"entry {origin.entry} of {origin.pipeline}: entry {entry.sequence} has read "
                    "or retracted source files of it since, or replayed or discarded bad lines of "
                    "them"
                )
        written = [file for file in entry.data_files if file.filename in wanted]
        for file in written:
            unit = [other.filename for other in entry.data_files if other.unit == file.unit]
            origin = found[file.filename] = FileOrigin(
                pipeline=entry.pipeline,
                entry=entry.sequence,
                kind=entry.kind,
                sources=file.source_files,
                rows=file.record_count,
                others=tuple(name for name in unit if name != file.filename),
                replaced=replaced,
                why_lost=_why_lost(entry, file.unit, replaced=replaced),
            )
            for name in _read(entry, file.unit):
                readers[entry.journal, name].append(origin)
    for one in damaged:
        one.origin = found.get(one.path)


def _why_lost(entry: Entry, unit: str, *, replaced: bool) -> str | None:
    """Return why `blizzard redo` cannot repeat a work unit, regardless of later entries."""
    name = f"entry {entry.sequence} of {entry.pipeline}"
    if entry.kind != "batch":
        return f"{entry.kind}, {name}: not written by a batch"
    if replaced:
        return f"{name}: another journal has replaced that one"
    for record in entry.readings:
        in_part = record.skipped or not record.complete
        if record.unit == unit and record.failure is None and in_part:
            return f"{name}: {record.key} was read over several batches"
    return None


def _read(entry: Entry, unit: str) -> Iterator[str]:
    """Name the source files that a work unit read, and the quarantine files that it wrote."""
    yield from (one.key for one in entry.sources if one.unit == unit and one.failure is None)
    yield from (one.filename for one in entry.quarantine if one.unit == unit)


def _dealt_with(entry: Entry) -> Iterator[str]:
    """Name the source files that an entry read or retracted, and the quarantine files it settled.

    `blizzard redo` does not repeat an earlier work unit that read them.
    """
    yield from (record.key for record in entry.sources if record.failure is None)
    yield from (one.old for one in entry.resolved)


def _entries(store: Reader) -> Iterator[tuple[Entry, bool]]:
    """Yield the entries of all journals, and whether another journal replaced theirs."""
    for journal, is_replaced in all_journals(store):
        numbers = journal.numbers()
        closed = bool(numbers) and journal.listed(numbers[-1]).entry.kind == "closed"
        for _, stored in ahead(journal.listed, numbers):
            yield stored.entry, closed or is_replaced
