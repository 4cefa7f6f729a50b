"""Deleting data files that no version within the retention refers to, and nobody still needs.

A file goes if it is old enough by the store's time, if no version since the cutoff refers to it,
and if nobody who has not committed it yet may still do so. Whatever is not sure stays. Files that
attempts of blizzard have left, and that no entry names, are left to `blizzard gc`: only an entry in
the journal keeps a slow batch from naming them after all.

The order of reading keeps this true while others write: the metas, the log, the journals, the
folders. What versions since then name is taken out again right before it would be deleted.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain, islice

from lakebed import layout
from lakebed.deltalog.actions import read_actions
from lakebed.deltalog.file_names import naming
from lakebed.documents.deletion_vector import is_vector_file
from lakebed.documents.pending_meta import decode_meta
from lakebed.errors import DocumentUnreadable, LakeError, ObjectChanged, ObjectMissing
from lakebed.journal import JournalReader, journals_aside
from lakebed.layout import (
    DELTA_LOG,
    TablePath,
    file_id,
    file_name,
    is_hidden,
    is_parquet,
    log_version,
)
from lakebed.listing.glob import matcher
from lakebed.listing.sort import CONTROL, Oddity
from lakebed.storage.ahead import ahead
from lakebed.storage.lister import level, objects
from lakebed.storage.store import ObjectFacts, Reader, Store
from penguin.backlog.journals import read_pipelines
from penguin.backlog.look import is_scanned
from penguin.foreign.footer import read_footer
from penguin.model.commit import HeldState
from penguin.model.errors import FileUnfit
from penguin.model.settings import TableSettings
from penguin.upkeep.log_needs import LogNeeds, read_needs
from penguin.upkeep.names import Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """One journal of a table directory, in use or kept aside."""

    reader: JournalReader
    numbers: tuple[int, ...]
    committed: int
    """The last entry that the log has; -1 where it has none."""


def named_by_metas(store: Reader) -> frozenset[str]:
    """Name the files that metas name, waiting or held. They are read before the log is."""
    names = set()
    for folder in (layout.PENDING, layout.HELD):
        for facts in objects(store, folder, odd=_ignore):
            body = store.get(facts.path) if layout.is_meta(facts.path, folder) else None
            # One that is gone was committed meanwhile; its file is in the log, which is read later.
            if body is not None:
                names.add(decode_meta(body, store.describe(facts.path)).filename)
    return frozenset(names)


def read_journals(store: Reader, transactions: Mapping[str, int]) -> tuple[Journal, ...]:
    """Find every journal of a table, and how far the log has it."""
    found = []
    for pipeline in layout.pipelines(store.folders(layout.OURS)):
        for folder in (*journals_aside(store, pipeline), layout.journal_folder(pipeline)):
            reader = JournalReader(store, pipeline, folder=folder, full_paths=True)
            numbers = tuple(reader.numbers())
            if not numbers:
                continue
            if numbers != tuple(range(len(numbers))):
                gap = next(place for place, number in enumerate(numbers) if place != number)
                raise DocumentUnreadable(
                    f"entry {gap} of a journal is missing, so it is not known which files it "
                    "references",
                    path=reader.where(gap),
                )
            app_id = layout.journal_transaction(pipeline, reader.listed(0).entry.journal)
            found.append(
                Journal(reader=reader, numbers=numbers, committed=transactions.get(app_id, -1))
            )
    return tuple(found)


def waiting_files(journals: tuple[Journal, ...]) -> frozenset[str]:
    """Name the files of all entries that the log does not have."""
    return frozenset(
        name
        for journal in journals
        for name in _files(journal, (n for n in journal.numbers if n > journal.committed))
    )


def settled_files(journals: tuple[Journal, ...]) -> Names:
    """Return the files of all entries that the log has: in the table once, held or given up."""
    names = Names()
    for journal in journals:
        names.add(_files(journal, (n for n in journal.numbers if n <= journal.committed)))
    return names


def held_names(transactions: Mapping[str, int]) -> frozenset[str]:
    """Return the names, without folders, of the files that the log says are held."""
    return frozenset(
        app_id.removeprefix(layout.HELD_TRANSACTIONS)
        for app_id, state in transactions.items()
        if app_id.startswith(layout.HELD_TRANSACTIONS) and state == HeldState.HELD
    )


def _files(journal: Journal, numbers: Iterator[int]) -> Iterator[str]:
    for _number, stored in ahead(journal.reader.listed, numbers):
        yield from (file.filename for file in stored.entry.data_files)


def _ignore(_name: str, _oddity: Oddity) -> None:
    """Pass over a name that cannot be used: no program has given it to a meta."""


MOST_KNOWN = 10_000
"""Folders that are remembered; of a table with more, some are looked at again."""


@dataclass(slots=True, kw_only=True)
class NestedTables:
    """Answers which files lie below a folder with a log of its own.

    Only folders above the files that are asked for are looked at, each once, so that it costs
    little where there is little to delete.
    """

    store: Reader
    _known: dict[str, bool] = field(default_factory=dict)

    def below(self, paths: Iterable[str]) -> frozenset[str]:
        """Return those of some files that are below such a folder."""
        above = {path: tuple(_folders(path)) for path in paths}
        wanted = {folder for folders in above.values() for folder in folders}
        if len(self._known) + len(wanted) > MOST_KNOWN:
            self._known.clear()
        unknown = sorted(wanted - self._known.keys())
        self._known |= dict(ahead(self._has_log, unknown))
        return frozenset(
            path for path, folders in above.items() if any(self._known[one] for one in folders)
        )

    def _has_log(self, folder: str) -> bool:
        log = f"{folder}/{DELTA_LOG}"
        odd: list[str] = []
        # A name in there that cannot be used tells that there is something as well.
        found = objects(self.store, log, odd=lambda name, _oddity: odd.append(name))
        return next(iter(found), None) is not None or bool(odd)


def _folders(path: str) -> Iterator[str]:
    """Yield the folders that a file is in, but not the root."""
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


AT_A_TIME = 1000
CONCURRENT = 16
CLOCK = TablePath(".penguin-clock")
"""What is written and removed again to ask a store for its time. Hidden."""
CHANGES = "_change_data"
"""The one hidden folder with data: changes that a change data feed shows."""
ICEBERG = "metadata"
"""Where tables that Iceberg reads, too, keep what Iceberg needs."""
CLOCKS_DIFFER = timedelta(hours=1)
FEW = 10


class Kept(StrEnum):
    """Why a file stays that no needed version refers to."""

    YOUNG = "young"
    """Modified since the cutoff: a writer may be about to commit it."""
    WAITING = "waiting"
    """An entry that is not committed names it, or a meta."""
    HELD = "held"
    LEFTOVER = "leftover"
    """blizzard wrote it and no entry names it: `blizzard gc` decides."""
    SCANNED = "scanned"
    """penguin finds files in this table by looking into its folders, and may still commit it."""
    NESTED = "nested"
    """It is below a folder with a Delta log of its own: a file of another table."""
    OTHER = "other"
    """Neither a Parquet file nor a deletion vector, or a name that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a vacuum deletes, added up."""

    files: int = 0
    bytes: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    some: tuple[str, ...] = ()
    """The first of them."""

    def with_files(self, files: list[ObjectFacts]) -> "Found":
        """Add files."""
        times = [one.modified for one in files]
        return Found(
            files=self.files + len(files),
            bytes=self.bytes + sum(one.size for one in files),
            oldest=min(chain(times, (self.oldest,) if self.oldest else ()), default=None),
            newest=max(chain(times, (self.newest,) if self.newest else ()), default=None),
            some=(*self.some, *(one.path for one in files))[:FEW],
        )


@dataclass(slots=True, kw_only=True)
class Deleted:
    """What was deleted, and what could not be."""

    found: Found = field(default_factory=Found)
    failed: int = 0
    error: str | None = None
    """What the first failure says."""
    spared: int = 0
    """Files that a version names which was committed meanwhile."""


def store_time(store: Store, now: datetime) -> datetime:
    """Return what time it is, by the store or by us, whichever is earlier.

    Files are dated by the store. A clock of ours that is ahead of it makes none of them older.
    """
    for _ in range(5):
        store.replace(CLOCK, b"{}\n")
        found = store.head(CLOCK)
        store.delete(CLOCK)
        # Another vacuum may have removed it in between.
        if found is not None:
            return min(now, found.modified)
    return now


@dataclass(slots=True, kw_only=True)
class Vacuum:
    """One look at a table directory: what may go, and why the rest stays."""

    settings: TableSettings
    store: Reader
    cutoff: datetime
    needs: LogNeeds
    waiting: frozenset[str]
    held: frozenset[str]
    journals: tuple[Journal, ...]
    scanned: bool
    kept: Counter[Kept] = field(default_factory=Counter)
    _settled: Names | None = None

    @classmethod
    def of(cls, settings: TableSettings, store: Reader, cutoff: datetime) -> "Vacuum":
        """Read what is needed; whatever cannot be read is an error."""
        metas = named_by_metas(store)
        scanned = is_scanned(read_pipelines(store, settings.discovery), settings)
        needs = read_needs(store, cutoff, whole=scanned)
        journals = read_journals(store, needs.transactions)
        return cls(
            settings=settings,
            store=store,
            cutoff=cutoff,
            needs=needs,
            waiting=metas | waiting_files(journals),
            held=held_names(needs.transactions),
            journals=journals,
            scanned=scanned,
        )

    def batches(self) -> Iterator[list[ObjectFacts]]:
        """Yield what may go, some files at a time, while the folders are being listed."""
        self.kept = Counter()
        listed, nested = self._listed(), NestedTables(store=self.store)
        while files := list(islice(listed, AT_A_TIME)):
            chosen = [facts for facts in files if self._may_go(facts)]
            chosen = self._without_nested(nested, chosen)
            yield from filter(None, [self._without_leftovers(chosen)])

    def look(self) -> Found:
        """Add up what may go."""
        found = Found()
        for files in self.batches():
            found = found.with_files(files)
        return found

    def delete(self, store: Store) -> Deleted:
        """Delete what may go. What cannot be deleted is counted, and left to the next vacuum."""
        done = Deleted()
        since = _Since(store=store, version=self.needs.version)
        with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="vacuum") as pool:
            for files in self.batches():
                named = since.named()
                doomed = [one for one in files if one.path not in named]
                done.spared += len(files) - len(doomed)
                errors = list(pool.map(_deleting(store), doomed))
                gone = [one for one, why in zip(doomed, errors, strict=True) if why is None]
                failures = [why for why in errors if why is not None]
                done.found = done.found.with_files(gone)
                done.failed += len(failures)
                done.error = done.error or next(iter(failures), None)
        return done

    def _listed(self) -> Iterator[ObjectFacts]:
        """List the folders with data; names that cannot be used are passed over."""
        folders, files = level(self.store, "", odd=self._odd)
        names = (folder.rstrip("/") for folder in folders)
        below = (
            objects(self.store, name, odd=self._odd, enters=_may_hold_data, into_links=False)
            for name in names
            if _may_hold_data(name)
        )
        for facts in chain(files, chain.from_iterable(below)):
            if CONTROL.search(facts.path):
                self.kept[Kept.OTHER] += 1
            elif _may_hold_data(facts.path):
                yield facts

    def _odd(self, name: str, oddity: Oddity) -> None:
        if _may_hold_data(name.rstrip("/")) and oddity is not Oddity.MARKER:
            self.kept[Kept.OTHER] += 1

    def _may_go(self, facts: ObjectFacts) -> bool:
        """Whether a file may go, as far as that can be told without opening it."""
        path = facts.path
        if path in self.needs.kept:
            return False
        why = self._why_kept(facts)
        if why is not None:
            self.kept[why] += 1
        return why is None

    def _why_kept(self, facts: ObjectFacts) -> Kept | None:
        path = facts.path
        if not (is_parquet(path) or is_vector_file(path) or path.startswith(f"{CHANGES}/")):
            return Kept.OTHER
        if facts.modified >= self.cutoff:
            return Kept.YOUNG
        if path in self.waiting:
            return Kept.WAITING
        if file_name(path) in self.held:
            return Kept.HELD
        if not self.store.holds(path):
            return Kept.OTHER  # Behind a link that leads out of the table.
        return Kept.SCANNED if self._may_be_scanned(facts) else None

    def _may_be_scanned(self, facts: ObjectFacts) -> bool:
        """Whether penguin may still commit a file that it finds by looking into the folders.

        One that is older than the log reaches back is never committed.
        """
        if not self.scanned or facts.path in self.needs.removed:
            return False
        pattern = self.settings.file_pattern
        taken = file_id(facts.path) is not None or (
            pattern is not None and matcher(pattern)(facts.path)
        )
        begins = self.needs.begins
        return taken and (begins is None or facts.modified >= begins - CLOCKS_DIFFER)

    def _without_nested(self, nested: NestedTables, files: list[ObjectFacts]) -> list[ObjectFacts]:
        """Leave out the files of other Delta tables, which this log knows nothing of."""
        theirs = nested.below(one.path for one in files)
        if theirs:
            self.kept[Kept.NESTED] += len(theirs)
        return [one for one in files if one.path not in theirs]

    def _without_leftovers(self, files: list[ObjectFacts]) -> list[ObjectFacts]:
        """Leave out what blizzard wrote and no entry names, which the footers tell."""
        doubtful = [one for one in files if self._may_be_a_leftover(one.path)]
        if not doubtful:
            return files
        with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="footer") as pool:
            ours = pool.map(lambda one: _is_blizzards(self.store, one), doubtful)
            left = {one.path for one, is_ours in zip(doubtful, ours, strict=True) if is_ours}
        if left:
            self.kept[Kept.LEFTOVER] += len(left)
        return [one for one in files if one.path not in left]

    def _may_be_a_leftover(self, path: str) -> bool:
        if file_id(path) is None or path in self.needs.removed:
            return False
        if self._settled is None:
            self._settled = settled_files(self.journals)
        return path not in self._settled


@dataclass(slots=True, kw_only=True)
class _Since:
    """The files that versions name which were committed since the log was read."""

    store: Reader
    version: int
    _named: set[str] = field(default_factory=set)

    def named(self) -> set[str]:
        while (body := self.store.get(log_version(self.version + 1))) is not None:
            self.version += 1
            where = self.store.describe(log_version(self.version))
            told = read_actions(self.version, body, where, naming(self.store))
            self._named |= {path for action in told.files for path in action.files}
            self._named.update(told.changes)
        return self._named


def _may_hold_data(path: str) -> bool:
    """Whether a path may be one of data, by the names of its folders and its own."""
    first, *rest = path.split("/")
    if first == ICEBERG or (first != CHANGES and is_hidden(first)):
        return False
    return not any(map(is_hidden, rest))


def _is_blizzards(store: Reader, facts: ObjectFacts) -> bool:
    """Whether blizzard wrote a file; one that cannot be read, or is gone by now, may be its."""
    try:
        return read_footer(store, facts.path, size=facts.size, etag=facts.etag).ours
    except (FileUnfit, ObjectMissing, ObjectChanged):
        return True


def _deleting(store: Store) -> Callable[[ObjectFacts], str | None]:
    def delete(facts: ObjectFacts) -> str | None:
        try:
            store.delete(facts.path)
        except LakeError as error:
            return str(error)
        return None

    return delete
