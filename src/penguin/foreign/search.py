"""Search for foreign files: list them, compare them with the log, read footers.

One search lasts for many steps. It remembers the log as far as it was read, a watermark for each
folder, and verdicts on footers; this only makes the next step cheaper. A new search starts with a
sweep and comes to the same result.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from lakebed.clock import Clock
from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.file_names import linked_name
from lakebed.deltalog.files import read_back, read_log
from lakebed.deltalog.log_contents import NOTHING, LogContents
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.documents.pending_meta import Meta
from lakebed.layout import TablePath, file_id, timed_id
from lakebed.listing.lookback import matcher
from lakebed.listing.watermark import Windows, advance, sweep_is_due
from lakebed.storage.lister import IncrementalLister
from lakebed.storage.objects import ahead
from lakebed.storage.store import Reader
from penguin.foreign import rules
from penguin.foreign.inspect import (
    Verdict,
    everything,
    find_claimed,
    list_files,
    verdict_on,
    what_may_be_new,
)
from penguin.model.backlog import Candidate, ForeignFile, IgnoredFiles, LeftOut
from penguin.model.settings import TableSettings

NOT_TAKEN = (
    "a scan takes files that are named {uuidv7}.parquet; set file_pattern, such as '*.parquet', "
    "to take these as well"
)
LEFTOVER = (
    "older than what the log remembers, and than the newest file that a scan committed: such a "
    "file was removed from the table, or never fitted it; VACUUM deletes it, and a new name "
    "commits it"
)
SAME_FILE = "a link makes it the same file as {}, and a file is committed once"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFiles:
    """The foreign files that one inspection found."""

    files: tuple[ForeignFile, ...] = ()
    """Files that may be committed, up to a commit's worth."""
    more: int = 0
    """The number of further files."""
    left_out: tuple[LeftOut, ...] = ()
    settled: tuple[str, ...] = ()
    """Metas of committed files."""
    scan: int | None = None
    """The number of commits of foreign files in the log; None before the first."""
    scanned: int | None = None
    """The highest time in the names of the files that scans committed."""
    fresh: frozenset[str] = frozenset()
    """Files whose footers were read in this inspection."""
    watermarks: Mapping[str, str] = field(default_factory=dict)
    sweep: bool | None = None
    """Whether all folders were listed; None if none was."""
    listed: int = 0
    """How many data files were listed."""
    ignored: IgnoredFiles = field(default_factory=IgnoredFiles)
    """Parquet files that are ignored because of their names."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit or to clean up."""
        return not (self.files or self.settled)


@dataclass(slots=True, kw_only=True)
class ForeignSearch:
    """The search of one table."""

    settings: TableSettings
    clock: Clock
    watermarks: dict[str, str] = field(default_factory=dict)
    _lister: IncrementalLister = field(default_factory=IncrementalLister)
    _known: LogContents | None = None
    _swept: datetime | None = None
    _listed: tuple[bool | None, int] = (None, 0)
    """Whether the last listing was a sweep, and how many files it had."""
    _pool: dict[str, Candidate] = field(default_factory=dict)
    """The listed files that are not settled."""
    _passed: set[str] = field(default_factory=set)
    """Parquet files whose names a scan does not take and the log does not know."""
    _odd: dict[str, LeftOut] = field(default_factory=dict)
    """Names that cannot be used, in printable form."""
    _unread: int = 0
    """Candidates left for later, because a commit was full."""
    _offered: bool = False
    _verdicts: dict[str, tuple[Candidate, Verdict]] = field(default_factory=dict)
    """Verdicts on unsettled files; a replaced file is read again."""
    _fresh: list[TablePath] = field(default_factory=list)
    _refused: dict[str, tuple[object, LeftOut]] = field(default_factory=dict)
    """Files that the table refused, each with the table's shape then."""

    def scan(self, store: Reader, log: LogReader) -> None:
        """List what may be new, unless an earlier listing left enough for the next commit.

        After files were offered, the log is asked first what became of them: that raises the
        watermarks, from which the next listing starts.
        """
        self._listed = (None, 0)
        offered, self._offered = self._offered, False
        if self._unread or offered:
            return
        now = self.clock.now()
        sweeping = self._sweep_is_due(now)
        horizon = self._horizon(store, log)

        def wanted(path: str) -> bool:
            return horizon.shows(path, now, sweeping=sweeping)

        plan = (
            everything(wanted, depth=horizon.depth)
            if sweeping
            else what_may_be_new(store, wanted, self.watermarks, self._windows())
        )
        listed = list_files(self._lister, store, plan, is_data=self._is_data())
        files = {path: Candidate(facts=facts) for path, facts in listed.files.items()}
        self._pool = files if sweeping else self._pool | files
        self._passed = listed.ignored if sweeping else self._passed | listed.ignored
        self._odd = listed.unusable if sweeping else self._odd | listed.unusable
        self._listed = (sweeping, len(files))
        if sweeping:
            self._swept = now

    def drop(self) -> None:
        """Forget the listing: the directory turned out to have another hand-off."""
        self._pool, self._listed, self._swept = {}, (None, 0), None
        self._unread, self._offered = 0, False
        self._passed, self._odd = set(), {}

    def find(
        self,
        store: Reader,
        table: Snapshot | None,
        asked: Mapping[str, Meta],
        *,
        named: frozenset[str] = frozenset(),
    ) -> ForeignFiles:
        """Compare listed and requested files with the log, and read footers of new ones.

        Files that entries name are left to them. Without a listing or a request the log is not
        read: that costs as much as the table has files.
        """
        if not asked and self._swept is None and self._listed[0] is None:
            return ForeignFiles()
        known = self._read(store, table)
        done = tuple(path for path, meta in asked.items() if rules.is_settled(meta.filename, known))
        waiting = {path: meta for path, meta in asked.items() if path not in set(done)}
        claimed, missing = find_claimed(store, waiting)
        self._passed = {
            path
            for path in self._passed
            if path not in claimed and path not in named and not rules.is_settled(path, known)
        }
        candidates = {
            path: one for path, one in (self._pool | claimed).items() if path not in named
        }
        found = rules.sort_out(candidates.values(), known)
        while found.forgotten and not known.is_exhausted:
            oldest = (known.oldest(file.path, file.modified) for file in found.forgotten)
            read_back(store, known, min(oldest))
            found = rules.sort_out(candidates.values(), known)
        found, leftover = rules.without_leftovers(found, known)
        found, linked = _split_links(store, found, known)
        shape = None if table is None else table.facts.shape()
        judged = self._judge(store, found.new, shape)
        self._advance(found)
        files = tuple(one for one in judged if isinstance(one, ForeignFile))
        self._offered = bool(files)
        return ForeignFiles(
            files=files,
            more=self._unread,
            left_out=(
                *self._odd.values(),
                *missing,
                *(rules.too_old(file, known) for file in found.forgotten),
                *linked,
                *(rules.name_taken(one, by) for one, by in found.taken),
                *(one for one in judged if isinstance(one, LeftOut)),
            ),
            settled=done,
            scan=known.scan,
            scanned=known.scanned,
            fresh=frozenset(self._fresh),
            watermarks=dict(self.watermarks),
            sweep=self._listed[0],
            listed=self._listed[1],
            ignored=_ignored(self._passed, leftover),
        )

    def _read(self, store: Reader, table: Snapshot | None) -> LogContents:
        """Read the log; start over if it was replaced."""
        before, known = (
            self._known,
            NOTHING if table is None else read_log(store, table, self._known),
        )
        self._known = None if table is None else known
        if before is not None and (known.table != before.table or _is_another(known, before)):
            self._start_over()
        return known

    def _start_over(self) -> None:
        """Forget positions: this is another log.

        The next listing is a sweep, as in a new process.
        """
        self._swept, self.watermarks = None, {}

    def refuse(self, refused: Iterable[LeftOut], table: TableFacts | None) -> None:
        """Remember files that the table refuses as it is, so that they do not block others."""
        shape = None if table is None else table.shape()
        self._refused |= {one.path: (shape, one) for one in refused}

    def _judge(
        self, store: Reader, new: tuple[Candidate, ...], shape: object
    ) -> list[ForeignFile | LeftOut]:
        """Return the verdicts on new files, reading footers up to a commit's worth."""
        limit = self.settings.max_files_per_commit
        refused = [
            verdict
            for one in new
            for then, verdict in [self._refused.get(one.path, (None, None))]
            if verdict is not None and then == shape and self._is_read(one)
        ]
        blocked = {one.path for one in refused}
        # Requested files come first, then all others in the order of their names.
        order = sorted(
            (one for one in new if one.path not in blocked),
            key=lambda one: (one.claim is None, one.path),
        )
        unread = [one for one in order if not self._is_read(one)]
        verdicts = (verdict for _, verdict in ahead(partial(verdict_on, store), unread[:limit]))
        self._fresh = [file.path for file in unread[:limit]]
        denied: list[LeftOut] = []
        for one, verdict in zip(unread, verdicts, strict=False):
            if isinstance(verdict, LeftOut) and verdict.code == rules.DENIED:
                denied.append(verdict)  # Permissions change without changing the file.
            elif verdict is not None:
                self._verdicts[one.path] = (one, verdict)
        self._unread = max(0, len(unread) - limit)
        known = (self._verdicts[one.path][1] for one in order if self._is_read(one))
        judged = [one for one in known if not rules.is_blizzards(one)]
        good = [one for one in judged if isinstance(one, ForeignFile)]
        self._unread += max(0, len(good) - limit)
        left_out = (one for one in judged if isinstance(one, LeftOut))
        return [*good[:limit], *refused, *denied, *left_out]

    def _is_read(self, one: Candidate) -> bool:
        known = self._verdicts.get(one.path)
        return known is not None and known[0].is_same(one)

    def _advance(self, found: rules.SortedCandidates) -> None:
        """Raise the watermarks over settled files, and forget these."""
        gone = {one.path for one in found.settled}
        waiting = self._pool.keys() - gone
        self.watermarks = advance(
            self.watermarks, gone & self._pool.keys(), waiting, self.clock.now()
        )
        self._pool = {path: one for path, one in self._pool.items() if path not in gone}
        left = {one.path for one in (*found.new, *found.forgotten)}
        self._verdicts = {path: verdict for path, verdict in self._verdicts.items() if path in left}
        self._refused = {path: verdict for path, verdict in self._refused.items() if path in left}

    def _sweep_is_due(self, now: datetime) -> bool:
        """Whether to sweep: at first, in intervals, after the clock went back, or without times."""
        swept_at = None if self._swept is None else self._swept.timestamp()
        return (
            not self.watermarks
            or self.settings.file_pattern is not None
            or sweep_is_due(swept_at, now.timestamp(), every=self.settings.sweep_interval)
        )

    def _windows(self) -> Windows:
        late = timedelta(seconds=self.settings.late_window)
        return Windows(late=late, quiet=max(late, timedelta(seconds=self.settings.sweep_interval)))

    def _horizon(self, store: Reader, log: LogReader) -> rules.Horizon:
        first, back = self.settings.partition_filter, self.settings.sweep_horizon
        if first is None and back is None:
            return rules.Horizon()
        if self._known is None:
            table = log.newest()
            self._known = None if table is None else read_log(store, table, None)
        return rules.Horizon.over(first, back, self._known.paths if self._known is not None else ())

    def _is_data(self) -> Callable[[str], bool]:
        pattern = self.settings.file_pattern
        also = (lambda _path: False) if pattern is None else matcher(pattern)
        return lambda path: timed_id(path) is not None or also(path)


def _split_links(
    store: Reader, found: rules.SortedCandidates, known: LogContents
) -> tuple[rules.SortedCandidates, list[LeftOut]]:
    """Leave out links to files of the table, and files that the log knows by a link to them."""
    real_name = linked_name(store)
    plain = store.local_root and any(file_id(one.path) is None for one in found.new)
    paths = (*(one.path for one in found.settled), *(known.paths if plain else ()))
    names = {real: path for path in paths if (real := real_name(path)) is not None}
    names |= {one.path: real for one in found.new if (real := real_name(one.path)) is not None}
    linked = [
        rules.leave_out(one, rules.TAKEN, SAME_FILE.format(names[one.path]))
        for one in found.new
        if one.path in names
    ]
    return replace(found, new=tuple(one for one in found.new if one.path not in names)), linked


def _ignored(not_taken: set[str], leftover: set[str]) -> IgnoredFiles:
    reasons = ((not_taken, NOT_TAKEN), (leftover, LEFTOVER))
    return IgnoredFiles.of(
        not_taken | leftover, "; ".join(reason for paths, reason in reasons if paths)
    )


def _is_another(known: LogContents, before: LogContents) -> bool:
    """Whether the log was read again because it was replaced, as far as e-tags show."""
    return known is not before and known.last is not None and known.last.etag is not None


def recheck(
    store: Reader, found: ForeignFiles
) -> tuple[tuple[ForeignFile, ...], tuple[LeftOut, ...]]:
    """Check files whose footers were read earlier; return those unchanged, and the others."""

    def trouble(one: ForeignFile) -> str | None:
        if one.found.path in found.fresh:
            return None
        facts = store.head(one.found.path)
        if facts is None:
            return "it is gone since it was inspected"
        same = (facts.size, facts.etag) == (one.found.facts.size, one.found.facts.etag)
        return None if same else "it was replaced since it was inspected"

    answers = list(ahead(trouble, found.files))
    return (
        tuple(one for one, why in answers if why is None),
        tuple(
            rules.leave_out(one.found, rules.MISSING, why)
            for one, why in answers
            if why is not None
        ),
    )
