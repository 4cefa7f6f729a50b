"""Find files of a table's newest version that are missing or have another size.

The folders are listed once and compared with the log while it is read. Suspects are checked again,
and so is the log: a file that came or went meanwhile is not missing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from lakebed import layout
from lakebed.deltalog.actions import FileAction, FileKey
from lakebed.deltalog.checkpoint import active_files
from lakebed.deltalog.file_names import is_elsewhere
from lakebed.deltalog.segment import LogSegment, fetch_actions, read_versions, whole_segment
from lakebed.documents.entry import Entry, Kind
from lakebed.documents.losses import TakenOut
from lakebed.storage.objects import ahead
from lakebed.storage.store import Reader
from penguin.backlog.journals import all_journals
from penguin.foreign.rules import may_be_entered
from penguin.upkeep.log_needs import SizedNames, ignore, list_data


def list_all(store: Reader) -> SizedNames:
    """List every object that may be a data file; hidden folders in the root are not entered."""
    return SizedNames(list_data(store, _may_hold_data, ignore))


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
    unit: str
    sources: tuple[str, ...]
    """The source files with rows in it."""
    rows: int
    others: tuple[str, ...]
    """The other files of its work unit; they stand or fall together."""
    part_read: tuple[str, ...] = ()
    """Source files of its work unit that were read over several batches: no such read can be
    repeated alone."""
    replaced: bool = False
    """Whether another journal replaced its journal: `blizzard redo` uses only the current one."""


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
        damaged = _named_still(store, tail, damaged)
        _find_versions(store, tail, damaged)
        _find_origins(store, damaged)
    return Checked(
        version=tail.version,
        files=files,
        elsewhere=elsewhere,
        damaged=tuple(sorted(damaged, key=lambda one: one.path)),
    )


def _trouble(action: FileAction, listed: SizedNames) -> FsckFault | None:
    size = listed.size(action.path)
    if size is None:
        return FsckFault.MISSING
    if action.size is not None and size != action.size:
        return FsckFault.SIZE
    others = [path for path in action.files if path != action.path and not is_elsewhere(path)]
    return FsckFault.VECTOR if any(listed.size(path) is None for path in others) else None


def _still_damaged(store: Reader, suspects: list[FileAction]) -> list[Damaged]:
    """Check suspects again: they may be behind a link, or have appeared since."""
    paths = sorted({path for suspect in suspects for path in suspect.files})
    if len(paths) > MOST_HEADS:
        again = list_all(store)
    else:
        again = SizedNames(found for _, found in ahead(store.head, paths) if found is not None)
    return [
        Damaged(trouble=trouble, action=suspect, found=again.size(suspect.path))
        for suspect in suspects
        if (trouble := _trouble(suspect, again)) is not None
    ]


def _named_still(store: Reader, tail: LogSegment, damaged: list[Damaged]) -> list[Damaged]:
    """Return the files still in the table: one removed meanwhile may well have been deleted."""
    newest = whole_segment(store).version
    gone = {
        action.key
        for version in read_versions(store, range(tail.version + 1, newest + 1))
        for action in version.removes
    }
    return [file for file in damaged if file.action.key not in gone]


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
    for entry, replaced in _entries(store) if wanted else ():
        found |= {
            file.filename: FileOrigin(
                pipeline=entry.pipeline,
                entry=entry.sequence,
                kind=entry.kind,
                unit=file.unit,
                sources=file.source_files,
                rows=file.record_count,
                others=tuple(
                    other.filename
                    for other in entry.data_files
                    if other.unit == file.unit and other is not file
                ),
                part_read=tuple(_part_read(entry, file.unit)),
                replaced=replaced,
            )
            for file in entry.data_files
            if file.filename in wanted
        }
        if len(found) == len(wanted):
            break
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


def _part_read(entry: Entry, unit: str) -> Iterable[str]:
    return (
        record.key
        for record in entry.readings
        if record.unit == unit and record.failure is None
        if record.skipped or not record.complete
    )


def _entries(store: Reader) -> Iterator[tuple[Entry, bool]]:
    """Yield the entries of all journals, and whether another journal replaced theirs."""
    for journal, is_aside in all_journals(store):
        numbers = journal.numbers()
        closed = bool(numbers) and journal.listed(numbers[-1]).entry.kind == "closed"
        for _, stored in ahead(journal.listed, numbers):
            yield stored.entry, closed or is_aside
