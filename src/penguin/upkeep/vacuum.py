"""Delete data files that no version within the retention refers to.

A file is deleted if it is old enough by the store's time, no version since the cutoff refers to it,
and no writer may still commit it. If in doubt, it stays. Files that attempts of blizzard left and
no entry names are left to `blizzard gc`: only a journal entry keeps a slow batch from naming them
after all.

The order of reading keeps this valid while others write: metas, log, journals, folders. Files that
later versions name are spared right before the deletion.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache, partial
from itertools import islice

from lakebed import errors, layout
from lakebed.clock import Clock
from lakebed.deltalog.log_contents import DELTA_DEFAULT, RETENTION_PROPERTY, parse_interval
from lakebed.deltalog.segment import fetch_actions
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.documents.deletion_vector import is_vector_file
from lakebed.listing.lookback import matcher
from lakebed.listing.sort import CONTROL, NameFault
from lakebed.storage.lister import objects
from lakebed.storage.objects import ahead
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader, Store
from penguin.backlog.journals import read_pipelines
from penguin.backlog.table_view import is_scanned
from penguin.foreign.footer import read_footer
from penguin.model.settings import FileUnfit, TableSettings
from penguin.upkeep import log_needs

AT_A_TIME = 1000
MOST_KNOWN = 10_000
"""The most folders of which is remembered whether they have a Delta log."""
CLOCK = layout.TablePath(".penguin-clock")
"""The hidden object that is written and removed again to read the store's clock."""
CHANGES = "_change_data"
"""The one hidden folder with data: that of the change data feed."""
ICEBERG = "metadata"
"""Where tables that Iceberg can read keep its metadata."""
CLOCKS_DIFFER = timedelta(hours=1)
FEW = 10


class KeptReason(StrEnum):
    """Why an unreferenced file stays."""

    YOUNG = "young"
    """Modified since the cutoff: a writer may be about to commit it."""
    WAITING = "waiting"
    """An uncommitted entry or a meta names it."""
    HELD = "held"
    LEFTOVER = "leftover"
    """blizzard wrote it and no entry names it: `blizzard gc` decides."""
    SCANNED = "scanned"
    """penguin scans this table's folders, and may still commit it."""
    NESTED = "nested"
    """It is below a folder with a Delta log of its own, so it belongs to another table."""
    OTHER = "other"
    """Neither a Parquet file nor a deletion vector, or a name that cannot be used."""


@dataclass(slots=True, kw_only=True)
class VacuumReport:
    """The files that a vacuum deletes or has deleted, and why the rest stays."""

    deleted: bool = False
    """Whether the files were deleted; if not, they may be."""
    version: int
    """The version of the table that was read."""
    cutoff: datetime
    retention: timedelta
    """The retention by the table's properties."""
    files: int = 0
    bytes: int = 0
    some: tuple[str, ...] = ()
    """The first deleted files."""
    kept: Mapping[KeptReason, int]
    failed: int = 0
    error: str | None = None
    """The message of the first failure."""
    spared: int = 0
    """Files named by a version that was committed meanwhile."""

    def count(self, files: list[ObjectFacts]) -> None:
        """Add files to the totals."""
        self.files += len(files)
        self.bytes += sum(file.size for file in files)
        self.some = (*self.some, *(file.path for file in files))[:FEW]


def store_time(store: Store, now: datetime) -> datetime:
    """Return the time by the store or by us, whichever is earlier.

    Files have the store's times. If our clock is ahead, no file gets older by it.
    """
    store.replace(CLOCK, b"{}\n")
    found = store.head(CLOCK)
    store.delete(CLOCK)
    # Another vacuum may have removed it in between.
    return now if found is None else min(now, found.modified)


class Vacuum:
    """One pass over a table directory: which files may be deleted, and why the rest stays."""

    def __init__(
        self, settings: TableSettings, store: Reader, cutoff: datetime, keeps: timedelta
    ) -> None:
        """Read which files are needed; raise if anything is unreadable."""
        self.settings, self.store = settings, store
        self.cutoff = cutoff
        metas = log_needs.named_by_metas(store)
        self.scanned = is_scanned(read_pipelines(store, settings.discovery), settings)
        self.needs = log_needs.read_needs(store, cutoff, whole=self.scanned)
        waiting = log_needs.named_by_entries(store, self.needs.transactions, committed=False)
        self.waiting = metas | frozenset(waiting)
        self.held = log_needs.held_names(self.needs.transactions)
        self.kept: Counter[KeptReason] = Counter()
        self.report = VacuumReport(
            version=self.needs.version,
            cutoff=cutoff,
            retention=keeps,
            kept=self.kept,
        )
        self._settled: set[str] | None = None
        self._has_log = lru_cache(MOST_KNOWN)(partial(_has_log, store))

    def batches(self) -> Iterator[list[ObjectFacts]]:
        """Yield files that may be deleted, in batches, while the folders are listed."""
        listed = self._listed()
        while files := list(islice(listed, AT_A_TIME)):
            chosen = [facts for facts in files if self._may_go(facts)]
            chosen = self._without(KeptReason.NESTED, self._is_nested, chosen)
            doubtful = {file.path for file in chosen if self._may_be_a_leftover(file.path)}
            is_leftover = partial(_is_blizzards, self.store, doubtful)
            if chosen := self._without(KeptReason.LEFTOVER, is_leftover, chosen):
                yield chosen

    def plan(self) -> VacuumReport:
        """Return the totals of the files that may be deleted."""
        for files in self.batches():
            self.report.count(files)
        return self.report

    def delete(self, store: Store) -> VacuumReport:
        """Delete the files; one that cannot be deleted is counted and left to the next vacuum."""
        report = self.report
        report.deleted = True
        version, named = self.needs.version, set[str]()
        for files in self.batches():
            while (actions := next(fetch_actions(store, (version + 1,)))) is not None:
                version += 1
                named.update(actions.changes, *(action.files for action in actions.files))
            doomed = [file for file in files if file.path not in named]
            report.spared += len(files) - len(doomed)
            for one, why in ahead(partial(_delete, store), doomed):
                if why is None:
                    report.count([one])
                else:
                    report.failed += 1
                    report.error = report.error or why
        return report

    def _listed(self) -> Iterator[ObjectFacts]:
        """List the folders with data; ignore unusable names."""
        for facts in log_needs.list_data(self.store, _may_hold_data, self._odd):
            if CONTROL.search(facts.path):
                self.kept[KeptReason.OTHER] += 1
            elif _may_hold_data(facts.path):
                yield facts

    def _odd(self, name: str, fault: NameFault) -> None:
        if _may_hold_data(name.rstrip("/")) and fault is not NameFault.MARKER:
            self.kept[KeptReason.OTHER] += 1

    def _may_go(self, facts: ObjectFacts) -> bool:
        """Whether a file may be deleted, judged by its name and age."""
        if facts.path in self.needs.kept:
            return False
        why = self._why_kept(facts)
        if why is not None:
            self.kept[why] += 1
        return why is None

    def _why_kept(self, facts: ObjectFacts) -> KeptReason | None:
        path = facts.path
        if not (layout.is_parquet(path) or is_vector_file(path) or path.startswith(f"{CHANGES}/")):
            return KeptReason.OTHER
        if facts.modified >= self.cutoff:
            return KeptReason.YOUNG
        if path in self.waiting:
            return KeptReason.WAITING
        if layout.file_name(path) in self.held:
            return KeptReason.HELD
        if not self.store.holds(path):
            return KeptReason.OTHER  # Behind a link that leads out of the table.
        return KeptReason.SCANNED if self._may_be_scanned(facts) else None

    def _may_be_scanned(self, facts: ObjectFacts) -> bool:
        """Whether penguin may still commit a file that a scan finds.

        One older than the log is never committed.
        """
        if not self.scanned or facts.path in self.needs.removed:
            return False
        pattern = self.settings.file_pattern
        taken = layout.file_id(facts.path) is not None or (
            pattern is not None and matcher(pattern)(facts.path)
        )
        begins = self.needs.begins
        return taken and (begins is None or facts.modified >= begins - CLOCKS_DIFFER)

    def _without(
        self,
        why: KeptReason,
        stays: Callable[[ObjectFacts], bool],
        files: list[ObjectFacts],
    ) -> list[ObjectFacts]:
        """Leave out files that stay, and count them."""
        gone = [file for file, kept in ahead(stays, files) if not kept]
        if len(gone) < len(files):
            self.kept[why] += len(files) - len(gone)
        return gone

    def _is_nested(self, facts: ObjectFacts) -> bool:
        """Whether a file belongs to another Delta table, which this log does not know."""
        parts = facts.path.split("/")[:-1]
        return any(self._has_log("/".join(parts[:deep])) for deep in range(len(parts), 0, -1))

    def _may_be_a_leftover(self, path: str) -> bool:
        if layout.file_id(path) is None or path in self.needs.removed:
            return False
        if self._settled is None:
            transactions = self.needs.transactions
            settled = log_needs.named_by_entries(self.store, transactions, committed=True)
            self._settled = set(settled)
        return path not in self._settled


def _may_hold_data(path: str) -> bool:
    """Whether a path may be that of a data file, judged by its names."""
    first, *rest = path.split("/")
    if first == ICEBERG or (first != CHANGES and layout.is_hidden(first)):
        return False
    return not any(map(layout.is_hidden, rest))


def _has_log(store: Reader, folder: str) -> bool:
    odd: list[str] = []
    # An unusable name in there shows that the folder is not empty, too.
    log = f"{folder}/{layout.DELTA_LOG}"
    found = objects(store, log, odd=lambda name, _fault: odd.append(name))
    return next(iter(found), None) is not None or bool(odd)


def _is_blizzards(store: Reader, doubtful: set[str], facts: ObjectFacts) -> bool:
    """Whether blizzard wrote one of the doubtful files; True also if it is unreadable or gone."""
    if facts.path not in doubtful:
        return False
    try:
        return read_footer(store, facts).ours
    except (FileUnfit, errors.ObjectMissing, errors.ObjectChanged):
        return True


def _delete(store: Store, facts: ObjectFacts) -> str | None:
    """Delete a file; return the error, if any."""
    try:
        store.delete(facts.path)
    except errors.LakeError as error:
        return str(error)
    return None


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class VacuumRefused(errors.LakeError, code="vacuum_refused", whose=errors.Whose.USER):
    """Files would be deleted that the table promises to keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumOrder:
    """An order to vacuum one table."""

    settings: TableSettings
    clock: Clock = field(default_factory=Clock)
    older_than: timedelta | None = None
    """The minimum age of files; None for the table's retention."""
    ignore_retention: bool = False
    """Whether that may be less than the table's retention."""

    def plan(self, store: Reader) -> VacuumReport | None:
        """Return what would be deleted; None without a table. Write nothing."""
        table = LogReader(store).newest()
        return None if table is None else self._vacuum(table, store, self.clock.now()).plan()

    def carry_out(self, store: Store) -> VacuumReport | None:
        """Delete the files and return what was deleted; None without a table.

        If it is killed, the next vacuum finishes the work.
        """
        table = LogReader(store).newest()
        if table is None:
            return None
        self._age(table)  # A refused order writes nothing.
        return self._vacuum(table, store, store_time(store, self.clock.now())).delete(store)

    def _vacuum(self, table: Snapshot, store: Reader, now: datetime) -> Vacuum:
        log_needs.refuse_unknown(table)
        keeps, older_than = self._age(table)
        return Vacuum(self.settings, store, before(now, older_than), keeps)

    def _age(self, table: Snapshot) -> tuple[timedelta, timedelta]:
        """Return the table's retention, and the minimum age for this order."""
        keeps = retention(table.facts.configuration, table.store.uri)
        older_than = keeps if self.older_than is None else self.older_than
        if older_than < keeps and not self.ignore_retention:
            raise VacuumRefused(
                f"the table keeps files for {_days(keeps)} ({RETENTION_PROPERTY}), and files that "
                f"are {_days(older_than)} old may still be read by a running query, by time "
                "travel, or be committed by a writer; add --ignore-retention if you are sure "
                "that nothing reads or writes these files",
                table=table.store.uri,
            )
        return keeps, older_than


def retention(configuration: Mapping[str, str], table: str) -> timedelta:
    """Return a table's retention of removed files; raise if it cannot be parsed."""
    text = configuration.get(RETENTION_PROPERTY)
    keeps = DELTA_DEFAULT if text is None else parse_interval(text)
    if keeps is None:
        raise VacuumRefused(
            f"{RETENTION_PROPERTY} is {text!r}, which Delta cannot read; write it as "
            "`interval 7 days`",
            table=table,
        )
    return keeps


def before(now: datetime, span: timedelta) -> datetime:
    """Return the time `span` ago, but not before the epoch."""
    return EPOCH if span > now - EPOCH else now - span


def _days(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    if hours == 1:
        return "1 hour"
    return f"{hours:g} hours" if hours < 48 else f"{hours / 24:g} days"
