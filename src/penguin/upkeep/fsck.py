"""Find files of a table's newest version that are missing or have another size.

The folders are listed once and compared with the log while it is read. Suspects are checked again,
and so is the log: a file that came or went meanwhile is not missing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from lakebed import layout
from lakebed.deltalog.actions import FileAction, FileKey
from lakebed.deltalog.file_names import is_elsewhere
from lakebed.deltalog.segment import LogSegment, fetch_actions, read_versions, whole_segment
from lakebed.deltalog.snapshot import active_files
from lakebed.documents.entry import Entry, Kind
from lakebed.documents.losses import TakenOut
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


def rewritten_into(store: Reader, path: str, added: int | None) -> dict[str, bool]:
    """Return blizzard's files with rows in a file, and whether all of their rows must be in it.

    A version that adds files and removes others of the same partition moved rows from these to
    those; it does not say from which to which. Repeated rewrites are followed back, as far as the
    log has the versions.
    """
    if added is None or layout.file_id(path) is not None:
        return {}
    found: dict[str, bool] = {}
    sought = {path: True}
    for actions in fetch_actions(store, range(added, max(added - MOST_BACK, -1), -1)):
        if actions is None:
            break  # Older versions were cleaned up.
        new = actions.adds
        for one in new:
            if one.path not in sought:
                continue
            whole = sought.pop(one.path) and not any(
                other is not one and _may_share(one, other) for other in new
            )
            for gone in actions.removes:
                if gone.path != one.path and _may_share(one, gone):
                    into = sought if layout.file_id(gone.path) is None else found
                    into[gone.path] = whole
        if not sought:
            break
    return found


def _may_share(one: FileAction, other: FileAction) -> bool:
    """Whether rows may have moved between two files; a removal may have no partition."""
    values = one.partition_values, other.partition_values
    return not all(values) or sorted(values[0]) == sorted(values[1])


MOST_HEADS = 1000
"""The most files checked one by one; for more, the folders are listed again."""
MOST_BACK = 1000
"""The most versions read back to find which one added a file."""


class FsckFault(StrEnum):
    """What is wrong with a file."""

    MISSING = "missing"
    SIZE = "size_differs"
    VECTOR = "vector_missing"
    """Its deletion vector is gone, so which rows are deleted is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOrigin:
    """The origin of a data file, from a journal."""

    pipeline: str
    entry: int
    kind: Kind
    """The kind of that entry: `blizzard redo` reads only batches again."""
    journal: str
    unit: str
    sources: tuple[str, ...]
    """The source files with rows in it."""
    rows: int
    others: tuple[str, ...]
    """The other files of its work unit; they stand or fall together."""
    read: tuple[str, ...] = ()
    """What its work unit read: the source files, and the quarantine files of their bad lines."""
    dealt_with: int | None = None
    """The first later entry that dealt with any of `read`: it read, retracted or replayed it."""
    part_read: tuple[str, ...] = ()
    """Source files of its work unit that were read over several batches: no such read can be
    repeated alone."""
    replaced: bool = False
    """Whether another journal replaced its journal: `blizzard redo` uses only the current one."""

    @property
    def why_lost(self) -> str | None:
        """Say why `blizzard redo` cannot read its rows again; None if it can."""
        entry = f"entry {self.entry} of {self.pipeline}"
        if self.kind != "batch":
            return f"{self.kind}, {entry}: not written by a batch"
        if self.replaced:
            return f"{entry}: another journal has replaced that one"
        if self.part_read:
            more = f" and {len(self.part_read) - 1} more" if len(self.part_read) > 1 else ""
            return f"{entry}: {self.part_read[0]}{more} was read over several batches"
        if self.dealt_with is not None:
            return (
                f"{entry}: entry {self.dealt_with} has read or retracted source files of it since, "
                "or replayed or discarded bad lines of them"
            )
        return None


@dataclass(slots=True, kw_only=True)
class Damaged:
    """A file of the table that differs from what the log says."""

    trouble: FsckFault
    action: FileAction
    found: int | None = None
    """The size of the object; None without one."""
    added: int | None = None
    """The version that added it; None if unknown."""
    origin: FileOrigin | None = None
    """None if no entry names it: another program wrote it, or rewrote blizzard's files."""
    rewritten: tuple[TakenOut, ...] = ()
    """Blizzard's files whose rows another program moved into it, as far as known."""

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
        _find_versions(store, tail, damaged)
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


def _find_versions(store: Reader, tail: LogSegment, damaged: list[Damaged]) -> None:
    """Find the version that added each file, within MOST_BACK versions."""
    unknown = {file.action.key for file in damaged if file.action.version is None}
    found: dict[FileKey, int] = {}
    back = range(tail.first - 1, max(tail.first - 1 - MOST_BACK, -1), -1) if unknown else ()
    for actions in fetch_actions(store, back):
        if actions is None or len(found) == len(unknown):
            break
        for action in actions.adds:
            if action.key in unknown:
                found.setdefault(action.key, actions.version)
    for file in damaged:
        added = file.action.version
        file.added = found.get(file.action.key) if added is None else added


def _find_origins(store: Reader, damaged: list[Damaged]) -> None:
    """Find the origin of each file in the entries of all pipelines."""
    earlier = {one.path: rewritten_into(store, one.path, one.added) for one in damaged}
    wanted = {path for path in earlier if layout.file_id(path) is not None}
    wanted |= {path for each in earlier.values() for path in each}
    found: dict[str, FileOrigin] = {}
    readers: dict[tuple[str, str], set[str]] = defaultdict(set)
    """The files by journal and by what their work units read, until a later entry deals with it."""
    for entry, replaced in _entries(store) if wanted else ():
        for name in _dealt_with(entry):
            for path in readers.pop((entry.journal, name), ()):
                if found[path].dealt_with is None:
                    found[path] = replace(found[path], dealt_with=entry.sequence)
        new: dict[str, FileOrigin] = {
            file.filename: FileOrigin(
                pipeline=entry.pipeline,
                entry=entry.sequence,
                kind=entry.kind,
                journal=entry.journal,
                unit=file.unit,
                sources=file.source_files,
                rows=file.record_count,
                others=tuple(
                    other.filename
                    for other in entry.data_files
                    if other.unit == file.unit and other is not file
                ),
                read=tuple(_read(entry, file.unit)),
                part_read=tuple(_part_read(entry, file.unit)),
                replaced=replaced,
            )
            for file in entry.data_files
            if file.filename in wanted
        }
        found |= new
        for path, written in new.items():
            for name in written.read:
                readers[entry.journal, name].add(path)
    for one in damaged:
        one.origin = found.get(one.path)
        one.rewritten = tuple(
            TakenOut(
                path=one.path,
                pipeline=origin.pipeline,
                entry=origin.entry,
                written=path,
                whole=whole,
            )
            for path, whole in sorted(earlier[one.path].items())
            if (origin := found.get(path)) is not None
        )


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


def _part_read(entry: Entry, unit: str) -> Iterable[str]:
    return (
        record.key
        for record in entry.readings
        if record.unit == unit and record.failure is None
        if record.skipped or not record.complete
    )


def _entries(store: Reader) -> Iterator[tuple[Entry, bool]]:
    """Yield the entries of all journals, and whether another journal replaced theirs."""
    for journal, is_replaced in all_journals(store):
        numbers = journal.numbers()
        closed = bool(numbers) and journal.listed(numbers[-1]).entry.kind == "closed"
        for _, stored in ahead(journal.listed, numbers):
            yield stored.entry, closed or is_replaced
