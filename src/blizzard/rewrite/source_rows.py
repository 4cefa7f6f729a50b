"""Which rows of which data files came from source files, by all journals of a table. Pure.

A data file that takes the place of another has the rows of that one in their order, or says itself
where its rows came from. What another writer has rewritten no journal names: where rows of the
source files were in such a file, only a column of the rows themselves tells them apart.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from blizzard.journal.ledger import Before
from blizzard.model.predicate import Combined, Comparison, Operator
from blizzard.model.rewriting import ActiveFile, RowRanges, RowsWhere
from blizzard.worker.deleted_rows import NONE, Places
from lakebed.deltalog.lineage import Lineage
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.entry import Entry
from lakebed.layout import file_name
from lakebed.types import Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractedSource:
    """A source file whose rows are to be taken back, as the object that it was."""

    key: str
    size: int
    etag: str | None

    @property
    def source(self) -> str:
        """Return the name of its source."""
        return self.key.partition(":")[0]

    @property
    def path(self) -> str:
        """Return its path below the source."""
        return self.key.partition(":")[2]

    @classmethod
    def of(cls, key: str, before: Before) -> "RetractedSource | None":
        """Return a file as the journal knows it; None where it does not."""
        done = before.finished
        if done is not None:
            return cls(key=key, size=done.size, etag=done.etag)
        left = before.unfinished
        return None if left is None else cls(key=key, size=left.record.size, etag=left.record.etag)


def why_not(before: Before, committer: str) -> str | None:
    """Return why the rows of a file cannot be taken back, by what the journal knows of it."""
    and_commit = "" if committer == "blizzard" else f" and {committer}"
    left = before.unfinished
    if left is None:
        return None
    record = left.record
    if record.redo:
        return f"is to be read again, as blizzard redo asked; run blizzard{and_commit} first"
    if record.failure is None:
        return (
            f"is read up to line {record.records_read} only; run blizzard{and_commit} first, until "
            "it is read to its end"
        )
    if not record.records_read and before.finished is None:
        return "failed, and no row of it is in the table"
    return None


def has_rows(before: Before) -> bool:
    """Whether rows of a file may be in the table, by what the journal knows of it."""
    left = before.unfinished
    return before.finished is not None or (left is not None and left.record.records_read > 0)


FILE = Provenance.FILE.column


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedSources:
    """The source files that are meant, by how journals and rows name them."""

    journal: str
    """The journal in use, whose keys mean what they mean now."""
    keys: frozenset[str]
    uris: dict[str, str]
    """The key of each URI by which rows, and entries of other journals, may name one of them."""

    def learn(self, entry: Entry) -> None:
        """Note where an entry of the journal in use says that they are: a source may have moved."""
        if entry.journal == self.journal:
            for key in self.keys:
                source, _, path = key.partition(":")
                root = entry.source_uris.get(source)
                if root is not None:
                    self.uris[f"{root.rstrip('/')}/{path}"] = key

    def key_of(self, entry: Entry, name: str) -> str | None:
        """Return the key of a source file that a data file of an entry names; None if another."""
        if entry.journal == self.journal:
            return name if name in self.keys else None
        source, _, path = name.partition(":")
        return self.uris.get(f"{entry.source_uris.get(source, '').rstrip('/')}/{path}")

    def condition(self) -> RowsWhere:
        """Return the rows that say themselves that they came from one of them."""
        parts = tuple(Comparison((FILE,), Operator.EQUAL, uri) for uri in sorted(self.uris))
        return RowsWhere(Combined("or", parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A data file with rows of source files that are meant, as a journal has it."""

    file: FinishedFile
    meant: tuple[str | None, ...]
    """The key of each of its source files, None where that one is not meant."""
    pipeline: str
    journal: str
    sequence: int

    def has(self, key: str) -> bool:
        """Whether rows of a source file are in it."""
        return key in self.meant

    @property
    def tells(self) -> bool:
        """Whether each of its rows says which source file it came from."""
        known = self.file.statistics.get(FILE)
        return known is not None and known.null_count == 0


@dataclass(slots=True, kw_only=True)
class JournaledFiles:
    """What all journals say of the data files of some source files; taken entry by entry."""

    meant: SelectedSources
    written: dict[str, WrittenFile] = field(default_factory=dict)
    """The files of batches and replays."""
    known: set[str] = field(default_factory=set)
    """Every data file of which an entry says where its rows came from."""
    merged: list[tuple[Entry, WrittenFile]] = field(default_factory=list)
    """The files that compactions wrote, with their entries."""
    replacing: list[Entry] = field(default_factory=list)
    """The entries that put files in the place of others."""
    superseding: list[Entry] = field(default_factory=list)
    """The entries that supersede files."""

    def take(self, entry: Entry) -> None:
        """Go on by one entry; those of the journal in use come first."""
        self.meant.learn(entry)
        self.known |= {file.filename for file in entry.files}
        self.known |= {file.filename for file in entry.data_files if file.source_files}
        for file in entry.files:
            found = self._written(file, entry)
            if found is not None:
                self.written[file.filename] = found
        for merge in entry.merged:
            for file in merge.new:
                found = self._written(file, entry)
                if found is not None:
                    self.merged.append((entry, found))
        if entry.replaces:
            self.replacing.append(entry)
        if entry.supersedes:
            self.superseding.append(entry)

    def _written(self, file: FinishedFile, entry: Entry) -> WrittenFile | None:
        meant = tuple(self.meant.key_of(entry, name) for name in file.source_files)
        if not any(meant):
            return None
        return WrittenFile(
            file=file,
            meant=meant,
            pipeline=entry.pipeline,
            journal=entry.journal,
            sequence=entry.sequence,
        )

    def finish(self) -> None:
        """Know of files in the place of others what is known of those, once all entries are in.

        What took the place of another writer's file is as unknown as that.
        """
        pairs = [one for entry in self.replacing for one in entry.replaced if one.new is not None]
        before = -1
        while len(self.known) > before:
            before = len(self.known)
            self.known |= {one.new.filename for one in pairs if one.new and one.old in self.known}

    def with_heirs(self) -> dict[str, WrittenFile]:
        """Return the files, those that took the place of others included."""
        found = self.written | {one.file.filename: one for _entry, one in self.merged}
        left = [one for entry in self.replacing for one in entry.replaced]
        while left:
            later = []
            for one in left:
                if one.new is None or one.new.filename in found:
                    continue
                before = found.get(one.old)
                new = None if before is None else _in_place_of(before, one.new)
                if new is None:
                    later.append(one)
                else:
                    found[one.new.filename] = new
            if len(later) == len(left):
                break
            left = later
        return found


def _in_place_of(before: WrittenFile, new: FinishedFile) -> WrittenFile | None:
    """Return a file that has the rows of another in their order, or what is left of them.

    It names source files as that one does: the entry that replaces it may be of another journal.
    """
    if new.source_files:
        known = dict(zip(before.file.source_files, before.meant, strict=True))
        meant = tuple(known.get(name) for name in new.source_files)
        return replace(before, file=new, meant=meant) if any(meant) else None
    file = replace(new, source_files=before.file.source_files, runs=before.file.runs)
    return replace(before, file=file)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsFound:
    """The rows of source files in a table: in which files, and how they are told apart."""

    whole: tuple[ActiveFile, ...] = ()
    """Files with no other rows."""
    mixed: tuple[ActiveFile, ...] = ()
    """Files with others, too, each with the rows that are meant."""
    unnamed: tuple[ActiveFile, ...] = ()
    """Files of other writers, in which the rows say themselves where they came from."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows each source file has in files of which journals tell it."""
    counted: Mapping[str, int] = field(default_factory=dict)
    """How many it has in the others, once these were looked into."""
    untold: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Files in which rows of source files cannot be told apart from others, with those."""

    @property
    def files(self) -> tuple[ActiveFile, ...]:
        """Return all files."""
        return (*self.whole, *self.mixed, *self.unnamed)


def follow_journals(
    lineage: Lineage, journals: JournaledFiles, in_effect: Callable[[Entry], bool]
) -> Lineage:
    """Let a lineage know what the entries that are in effect put in the place of what."""
    for entry in filter(in_effect, journals.replacing):
        for one in entry.replaced:
            lineage.journaled(one.old, () if one.new is None else (one.new.filename,))
        for merge in entry.merged:
            for old in merge.old:
                lineage.journaled(old.path, [file.filename for file in merge.new])
    return lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersededFile:
    """A data file whose rows of a source file are replaced by what is read of it again."""

    path: str
    keys: tuple[str, ...]
    """The source files that are meant with rows in it."""
    is_mixed: bool
    """Whether rows of other source files are in it."""

    @property
    def name(self) -> str:
        """Return its name, as entries supersede it."""
        return file_name(self.path)


def superseded_files(
    journals: JournaledFiles, active: Mapping[str, ActiveFile], in_effect: Callable[[Entry], bool]
) -> tuple[SupersededFile, ...]:
    """Return every data file with rows of the source files, whether it is in the table or not.

    One that is not, and that an earlier entry has taken out or superseded, is out for good.
    """
    effective = {id(one): one for one in (*journals.replacing, *journals.superseding)}.values()
    out: set[str] = set()
    for entry in filter(in_effect, effective):
        out |= entry.supersedes
        out |= {file_name(one.filename) for one in entry.outgoing}
    return tuple(
        SupersededFile(
            path=path,
            keys=tuple(dict.fromkeys(filter(None, one.meant))),
            is_mixed=None in one.meant,
        )
        for path, one in sorted(journals.with_heirs().items())
        if path in active or file_name(path) not in out
    )


def find_rows(
    journals: JournaledFiles,
    active: Mapping[str, ActiveFile],
    *,
    holders: Callable[[str], Collection[str] | None],
    aside: Collection[str] = (),
    deleted: Callable[[ActiveFile], Places] = lambda _file: NONE,
) -> RowsFound:
    """Find the rows of source files in the files that are in the table.

    `deleted` returns the places of rows that are deleted, though the file has them. `aside` are
    the names of files that were never added; `holders` returns the files of the table that hold
    rows of one that is not in it, or None where the log no longer shows that.
    """
    written = journals.with_heirs()
    whole: list[ActiveFile] = []
    mixed: list[ActiveFile] = []
    rows: Counter[str] = Counter()
    untold: dict[str, frozenset[str]] = {}
    for path, one in sorted(written.items()):
        if path not in active:
            continue
        names = one.file.source_files
        file = replace(
            active[path],
            rows=one.file.record_count,
            partition_values=one.file.partition_values,
            source_files=names,
            runs=one.file.runs,
        )
        keys = [key for key in one.meant if key is not None]
        is_whole = len(keys) == len(names)
        if is_whole or one.file.runs:
            counted = _counted(one, keys, deleted(file))
            rows.update(counted)
            if is_whole and file.live_rows:
                whole.append(file)
            elif not is_whole and counted.total():
                mixed.append(replace(file, without=_ranges(one)))
        elif one.tells:
            mixed.append(replace(file, without=journals.meant.condition()))
        else:
            untold[path] = frozenset(keys)
    unnamed = _unnamed(journals, active)
    lost = _rewritten_by_others(journals, active, unnamed, holders, aside) if unnamed else {}
    unnamed = unnamed if lost else []
    around = {_partition(file.partition_values) for file in unnamed}
    untold |= {
        path: frozenset(filter(None, one.meant))
        for path, one in lost.items()
        if not one.tells and _partition(one.file.partition_values) in around
    }
    condition = journals.meant.condition()
    return RowsFound(
        whole=tuple(whole),
        mixed=tuple(mixed),
        unnamed=tuple(replace(file, without=condition) for file in unnamed),
        rows=dict(rows),
        untold=untold,
    )


def _counted(one: WrittenFile, keys: list[str], deleted: Places) -> Counter[str]:
    """Count the rows of each source file that is meant, without deleted ones."""
    if not one.file.runs:
        # Sorted rows are not told apart: together these sources have all of them.
        return Counter({keys[0]: one.file.record_count - len(deleted)})
    found: Counter[str] = Counter()
    start = 0
    for run in one.file.runs:
        first, last = np.searchsorted(deleted, [start, start + run.rows]).tolist()
        key = one.meant[run.source]
        if key is not None:
            found[key] += run.rows - (last - first)
        start += run.rows
    return found


def _ranges(one: WrittenFile) -> RowRanges:
    found: list[tuple[int, int]] = []
    start = 0
    for run in one.file.runs:
        end = start + run.rows
        if one.meant[run.source] is not None:
            goes_on = found and found[-1][1] == start
            found.append((found.pop()[0] if goes_on else start, end))
        start = end
    return RowRanges(tuple(found))


def _rewritten_by_others(
    journals: JournaledFiles,
    active: Mapping[str, ActiveFile],
    unnamed: Sequence[ActiveFile],
    holders: Callable[[str], Collection[str] | None],
    aside: Collection[str],
) -> dict[str, WrittenFile]:
    """Return the files whose rows are, or may be, in files of other writers."""
    theirs = {file.path for file in unnamed}

    def may_be_there(path: str) -> bool:
        found = holders(path)
        return found is None or not theirs.isdisjoint(found)

    written = {path: one for path, one in journals.written.items() if file_name(path) not in aside}
    written |= {one.file.filename: one for _entry, one in journals.merged}
    return {path: one for path, one in written.items() if path not in active and may_be_there(path)}


def _unnamed(journals: JournaledFiles, active: Mapping[str, ActiveFile]) -> list[ActiveFile]:
    """Return the files of other writers, in every partition: an UPDATE moves rows to another."""
    return [file for path, file in sorted(active.items()) if path not in journals.known]


def _partition(values: Mapping[str, str | None]) -> frozenset[tuple[str, str | None]]:
    return frozenset((name, value or None) for name, value in values.items())
