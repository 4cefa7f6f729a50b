"""Find the rows of source files in data files, by all journals of a table.

A data file that replaces another one keeps its rows in order, or records their origins itself. No
journal names files that another writer rewrote: there, only a provenance column tells rows apart.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from blizzard.answers.entries import FileOrigins, RowOrigins
from blizzard.config.columns import columns_from
from blizzard.model.predicate import Combined, Comparison, Operator
from blizzard.model.rewriting import ActiveFile, RowRanges, RowsWhere
from blizzard.model.source.file import Recorded
from blizzard.worker.find_rows import Places, deleted_rows, rows_in
from lakebed.columns.schema import Schema
from lakebed.deltalog.snapshot import Snapshot
from lakebed.documents.entry import Entry
from lakebed.documents.records import FinishedFile
from lakebed.layout import file_name
from lakebed.storage.store import Reader
from lakebed.types import Provenance


def why_not(before: Recorded, committer: str) -> str | None:
    """Return why the rows of a file cannot be retracted, by the journal; None if they can."""
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


def has_rows(before: Recorded) -> bool:
    """Whether rows of a file may be in the table, by the journal."""
    left = before.unfinished
    return before.finished is not None or (left is not None and left.record.records_read > 0)


FILE = Provenance.FILE.column


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedSources:
    """The selected source files, by the names in journals and rows."""

    journal: str
    """The journal in use, whose keys have their present meaning."""
    keys: frozenset[str]
    uris: dict[str, str]
    """The key for each URI by which rows and other journals may name a source file."""

    def learn(self, entry: Entry) -> None:
        """Record the locations of the sources in an entry, as they may have moved."""
        if entry.journal == self.journal:
            for key in self.keys:
                source, _, path = key.partition(":")
                root = entry.source_uris.get(source)
                if root is not None:
                    self.uris[f"{root.rstrip('/')}/{path}"] = key

    def key_of(self, entry: Entry, name: str) -> str | None:
        """Return the key of a source file named in an entry; None if not selected."""
        if entry.journal == self.journal:
            return name if name in self.keys else None
        source, _, path = name.partition(":")
        return self.uris.get(f"{entry.source_uris.get(source, '').rstrip('/')}/{path}")

    def condition(self) -> RowsWhere:
        """Return the condition on provenance columns that selects their rows."""
        parts = tuple(Comparison((FILE,), Operator.EQUAL, uri) for uri in sorted(self.uris))
        return RowsWhere(Combined("or", parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile(FileOrigins):
    """A data file with rows of the selected source files, as a journal has it."""

    meant: tuple[str | None, ...]
    """The key of each of its source files; None for unselected ones."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the selected source files with rows in it."""
        return tuple(key for key in self.meant if key is not None)

    @property
    def tells(self) -> bool:
        """Whether each of its rows says which source file it came from."""
        known = self.file.statistics.get(FILE)
        return known is not None and known.null_count == 0


@dataclass(slots=True, kw_only=True)
class JournaledFiles:
    """The data files of some source files, from the entries of all journals."""

    meant: SelectedSources
    origins: RowOrigins = field(init=False)
    """The origins of files of batches, replays and compactions with their rows."""
    replaced: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """The files that entries took out, each with its replacements."""
    out: set[str] = field(default_factory=set)
    """The names of files that entries took out, or superseded as a whole."""
    out_of: dict[str, set[str]] = field(default_factory=dict)
    """The names of files of which entries superseded the rows of some source files."""

    def __post_init__(self) -> None:
        """Keep the files with rows of the source files."""
        self.origins = RowOrigins(keeps=lambda entry, file: any(self._meant(entry, file)))

    def take(self, entry: Entry, *, in_effect: bool) -> None:
        """Add one entry; those of the journal in use come first."""
        self.meant.learn(entry)
        self.origins.take(entry, in_effect=in_effect)
        if in_effect:
            for one in entry.rewrites:
                new = tuple(file.filename for file in one.new)
                self.replaced += [(old.path, new) for old in one.old]
            self.out |= {file_name(one.filename) for one in entry.outgoing}
            for name, source in entry.superseded_rows():
                if source is None:
                    self.out.add(name)
                elif (key := self.meant.key_of(entry, source)) is not None:
                    self.out_of.setdefault(name, set()).add(key)

    def _meant(self, entry: Entry, file: FinishedFile) -> tuple[str | None, ...]:
        return tuple(self.meant.key_of(entry, name) for name in file.source_files)

    def written(self) -> Iterator[tuple[str, WrittenFile]]:
        """Yield the files that batches, replays and compactions wrote with such rows."""
        for path in self.origins.written:
            found = self.find(path)
            if found is not None:
                yield path, found

    def find(self, path: str) -> WrittenFile | None:
        """Return a data file with rows of the source files; None if it has none."""
        found = self.origins.find(path)
        meant = () if found is None else self._meant(found.entry, found.file)
        if found is None or not any(meant):
            return None
        return WrittenFile(file=found.file, entry=found.entry, meant=meant)

    def all(self) -> Iterator[tuple[str, WrittenFile]]:
        """Yield every data file with rows of the source files, in the table or not."""
        for path in sorted(self.origins.written.keys() | self.origins.steps.keys()):
            found = self.find(path)
            if found is not None:
                yield path, found

    def superseded(self, active: Collection[str]) -> Iterator[tuple[str, WrittenFile]]:
        """Yield the data files that new content of the source files supersedes.

        What earlier entries took out or superseded stays out, or is reported by audits.
        """
        for path, one in self.all():
            name = file_name(path)
            is_out = name in self.out or self.out_of.get(name, set()).issuperset(one.keys)
            if path in active or not is_out:
                yield path, one


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsFound:
    """The rows of source files in a table: the files, and how to identify the rows."""

    whole: tuple[ActiveFile, ...] = ()
    """Files with no other rows."""
    mixed: tuple[ActiveFile, ...] = ()
    """Files that also have other rows, each with the selected ones."""
    unnamed: tuple[ActiveFile, ...] = ()
    """Files of other writers whose rows have provenance columns."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """The rows of each source file, as far as journals tell."""
    counted: Mapping[str, int] = field(default_factory=dict)
    """Its rows in `unnamed` files."""
    untold: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Files with indistinguishable rows, and the source files concerned."""

    @property
    def files(self) -> tuple[ActiveFile, ...]:
        """Return all files."""
        return (*self.whole, *self.mixed, *self.unnamed)


Holders = Callable[[str], Collection[str] | None]
"""Returns the files of the table that hold rows of one that is not in it; None if unknown."""


class RowSearch:
    """Finds the rows of source files, reading each data file once per deletion vector."""

    def __init__(self, store: Reader) -> None:
        self._store = store
        self._said: dict[tuple[str, str | None], Mapping[str, int]] = {}
        self._deleted: dict[tuple[str, str | None], Places] = {}

    def find(
        self,
        journals: JournaledFiles,
        active: Mapping[str, ActiveFile],
        table: Snapshot,
        holders: Holders,
    ) -> RowsFound:
        """Find the rows of source files in the active files of the table."""
        meant = journals.meant
        whole: list[ActiveFile] = []
        mixed: list[ActiveFile] = []
        rows: Counter[str] = Counter()
        untold: dict[str, tuple[str, ...]] = {}
        for path, one in journals.all():
            if path not in active:
                continue
            file = replace(
                active[path].with_origins(one.file),
                rows=one.file.record_count,
                partition_values=one.file.partition_values,
            )
            is_whole = None not in one.meant
            if is_whole or one.file.runs:
                here = _counted(one, self._deleted_of(file))
                rows.update(here)
                if is_whole and file.live_rows:
                    whole.append(file)
                elif not is_whole and here.total():
                    mixed.append(replace(file, without=_ranges(one)))
            elif one.tells:
                mixed.append(replace(file, without=meant.condition()))
            else:
                untold[path] = one.keys
        theirs = self._of_others(journals, active, holders, untold)
        said = {
            file.path: self._rows_in(file, file.without, table)
            for file in (*mixed, *theirs)
            if isinstance(file.without, RowsWhere) and not untold
        }
        by_column = sum(map(Counter[str], said.values()), Counter[str]())
        counted = Counter[str]()
        for uri, count in by_column.items():
            counted[meant.uris[uri]] += count
        return RowsFound(
            whole=tuple(whole),
            mixed=tuple(file for file in mixed if said.get(file.path, True)),
            unnamed=tuple(file for file in theirs if said.get(file.path)),
            rows=dict(rows),
            counted=dict(counted),
            untold=untold,
        )

    def _of_others(
        self,
        journals: JournaledFiles,
        active: Mapping[str, ActiveFile],
        holders: Holders,
        untold: dict[str, tuple[str, ...]],
    ) -> list[ActiveFile]:
        """Return the files of other writers that may hold rows; add to `untold` without origins.

        They may be in any partition, since an UPDATE moves rows.
        """
        condition = journals.meant.condition()
        unnamed = {
            path: replace(file, without=condition)
            for path, file in sorted(active.items())
            if not journals.origins.is_traced(path)
        }
        around = {_partition(file.partition_values) for file in unnamed.values()}
        is_there = False
        for path, one in journals.written() if unnamed else ():
            is_whole = path in active and active[path].vector is None
            holding = () if is_whole else holders(path)
            if holding is None or not unnamed.keys().isdisjoint(holding):
                is_there = True
                if not one.tells and _partition(one.file.partition_values) in around:
                    untold[path] = one.keys
        return list(unnamed.values()) if is_there else []

    def _deleted_of(self, file: ActiveFile) -> Places:
        key = file.path, file.vector_key
        if key not in self._deleted:
            self._deleted[key] = deleted_rows(self._store, file.vector)
        return self._deleted[key]

    def _rows_in(self, file: ActiveFile, where: RowsWhere, table: Snapshot) -> Mapping[str, int]:
        key = file.path, file.vector_key
        if key not in self._said:
            columns = columns_from(table.facts.schema) or Schema(())
            found = rows_in(self._store, file, where.predicate, columns, table.mapping)
            self._said[key] = {} if found is None else found.by_column
        return self._said[key]


def _counted(one: WrittenFile, deleted: Places) -> Counter[str]:
    """Count the rows of each selected source file, without deleted ones."""
    if not one.file.runs:
        # Sorted rows are not attributed individually: these sources share them.
        return Counter({one.keys[0]: one.file.record_count - len(deleted)})
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


def _partition(values: Mapping[str, str | None]) -> frozenset[tuple[str, str | None]]:
    return frozenset((name, value or None) for name, value in values.items())
