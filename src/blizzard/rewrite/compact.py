"""Compact: merge small data files into fewer ones; no row changes.

One `compact` entry supersedes the small files. Any other command that changes them takes
precedence: the new files are dropped, and the next compaction tries again.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from blizzard.answers.entries import RowOrigins
from blizzard.events import (
    CompactionConflicted,
    CompactionFailed,
    CompactionStarted,
    FilesCompacted,
)
from blizzard.execute.runner import Rewriter
from blizzard.ingest import Ingest
from blizzard.model.rewriting import ActiveFile, Concatenate, FileGroup, RewriteFailed, Rewritten
from blizzard.model.settings import PipelineSettings
from blizzard.plan.trigger import MergeGroup, Policy, SmallFile, groups_of, is_small
from blizzard.rewrite.transaction import (
    PromotionPending,
    RewriteDone,
    RewritePlan,
    commit,
    old_file,
    table_state,
)
from blizzard.worker.find_rows import deleted_rows, ranges_of
from blizzard.worker.output.origins import runs_without
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.documents.records import FinishedFile, Rewrite, Run
from lakebed.errors import JournalConflict, LakeError, ObjectMissing
from lakebed.journal import JournalReader
from lakebed.listing.watermark import named_at
from lakebed.storage.store import Reader, Store
from lakebed.telemetry.events import Emit, code_of

CONCURRENT = 16
CLOCKS_DIFFER = timedelta(hours=1)
"""Upper bound on clock differences: an entry is written after the files that it names."""


@dataclass(slots=True)
class KnownOrigins:
    """A cache of what the journal says about data files."""

    journal: str | None = None
    files: dict[str, FinishedFile | None] = field(default_factory=dict)
    """Each file as written, with the origins of its rows; None if it is not ours."""

    def keep(self, journal: str, active: Collection[str]) -> None:
        """Forget files that are no longer in the table, and everything of another journal."""
        if journal != self.journal:
            self.journal, self.files = journal, {}
        self.files = {path: file for path, file in self.files.items() if path in active}

    def ask(self, journal: JournalReader, last: int, names: Collection[str]) -> None:
        """Look up files in the entries up to `last`.

        Entries are read backwards to the time when the oldest file was written.
        """
        unknown = [name for name in names if name not in self.files]
        wanted = set(unknown)
        origins = RowOrigins(keeps=lambda _entry, file: file.filename in wanted)
        for entry in _backwards(journal, last) if unknown else ():
            begun = min((named_at(name) or 0 for name in wanted), default=None)
            written = datetime.fromisoformat(entry.created) + CLOCKS_DIFFER
            if begun is None or written.timestamp() * 1000 < begun:
                break
            origins.take(entry)
            wanted -= origins.written.keys() | origins.steps.keys()
        self.files |= {name: origins.file(name) for name in unknown}


def _backwards(journal: JournalReader, last: int) -> Iterator[Entry]:
    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="origins") as pool:
        for end in range(last, -1, -CONCURRENT):
            numbers = range(end, max(-1, end - CONCURRENT), -1)
            yield from filter(None, pool.map(journal.entry, numbers))


def joined(files: Collection[FinishedFile]) -> tuple[tuple[str, ...], tuple[Run, ...]]:
    """Merge the source files and runs of several concatenated files. Pure."""
    places: dict[str, int] = {}
    runs: list[Run] = []
    for file in files:
        here = [places.setdefault(name, len(places)) for name in file.source_files]
        runs += [run._replace(source=here[run.source]) for run in file.runs]
    return tuple(places), tuple(runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan(RewritePlan):
    """The groups of small files that are worth compacting."""

    groups: tuple[MergeGroup, ...]
    files: Mapping[str, FinishedFile]
    """The files of the groups as the journal has them."""
    small: int
    """The number of small files, of all writers."""
    young: int
    """The number of those that are younger than `quiet_secs`."""


def plan_compaction(
    store: Reader,
    settings: PipelineSettings,
    *,
    now: datetime,
    known: KnownOrigins | None = None,
) -> CompactionPlan:
    """Find the small files of this journal that are worth compacting."""
    state = table_state(store, settings)
    state.require_columns()
    origins = known if known is not None else KnownOrigins()
    active = state.files
    origins.keep(state.last.journal, active.keys())
    policy = policy_of(settings)
    at = round(now.timestamp() * 1000)
    taken = {old.filename for entry in state.waiting_entries() for old in entry.outgoing}
    small = [
        file
        for path, file in active.items()
        if path not in taken and is_small(_small(file), policy)
    ]
    journal = JournalReader(store, settings.name)
    while True:
        groups = groups_of(_candidates(small, origins), policy, at)
        unknown = {
            file.path for group in groups for file in group.files if file.path not in origins.files
        }
        if not unknown:
            break
        origins.ask(journal, state.last.sequence, unknown)
    ours = {path: file for path, file in origins.files.items() if file is not None}
    return CompactionPlan(
        state=state,
        groups=groups,
        files={one.path: ours[one.path] for group in groups for one in group.files},
        small=len(small),
        young=sum(at - _small(file).written < policy.quiet_ms for file in small),
    )


def compact(
    store: Store,
    settings: PipelineSettings,
    rewriter: Rewriter,
    *,
    clock: Clock,
    known: KnownOrigins | None = None,
    progress: Callable[[int, int], None] = lambda _done, _groups: None,
) -> RewriteDone[CompactionPlan]:
    """Merge small files, and append the entry that supersedes them.

    `progress` gets the number of finished groups, and of all groups.
    """
    plan = plan_compaction(store, settings, now=clock.now(), known=known)
    if not plan.groups:
        return RewriteDone(found=plan)
    size = settings.sink.rolling.row_group_size
    work = plan.state.rewriting(Concatenate(size), clock)
    groups = [_group(one, plan.state.files) for one in plan.groups]
    progress(0, len(groups))
    outcomes = rewriter.rewrite(groups, work, ended=lambda done: progress(done, len(groups)))
    failed = tuple(one for one in outcomes if isinstance(one, RewriteFailed))
    rewritten = [one for one in outcomes if isinstance(one, Rewritten)]
    merges = tuple(_merge(one, plan.files, store) for one in rewritten)
    if not merges:
        return RewriteDone(found=plan, failed=failed)

    def entry(now: CompactionPlan) -> Entry:
        old = (one.path for merge in merges for one in merge.old)
        now.state.refuse_contested(now.state.files[path] for path in old if path in now.state.files)
        return replace(now.state.next_entry("compact", clock), rewrites=merges)

    try:
        _now, number = commit(store, plan, rewritten, entry)
    except JournalConflict as conflict:
        return RewriteDone(found=plan, failed=failed, conflict=conflict.message)
    return RewriteDone(found=plan, replaced=merges, entry=number, failed=failed)


def policy_of(settings: PipelineSettings) -> Policy:
    """Return the policy that decides what is worth merging."""
    compact, file_size = settings.sink.compact, settings.sink.rolling.file_size
    return Policy(
        file_size=file_size,
        min_files=compact.min_files,
        quiet_ms=round(compact.quiet * 1000),
        # A lower limit would never make a full-size file.
        max_bytes=max(compact.max_bytes, 2 * file_size),
    )


def _candidates(files: Sequence[ActiveFile], origins: KnownOrigins) -> list[SmallFile]:
    """Return the files that may belong to this journal; of those looked up, only its own."""
    found = []
    for file in files:
        known = origins.files.get(file.path)
        is_ours = known is not None and (
            known.record_count == sum(run.rows for run in known.runs) == file.rows
        )
        if is_ours or file.path not in origins.files:
            found.append(_small(file))
    return found


def _small(file: ActiveFile) -> SmallFile:
    values = sorted((name, value or None) for name, value in file.partition_values.items())
    begun = named_at(file.path) if layout.file_id(file.path) is not None else None
    return SmallFile(
        path=file.path,
        size=file.size,
        # A file without a row count in the log or a time in its name is left alone.
        rows=0 if begun is None else file.live_rows or 0,
        partition=tuple(values),
        written=begun or 0,
    )


def _group(group: MergeGroup, active: Mapping[str, ActiveFile]) -> FileGroup:
    return FileGroup(files=tuple(active[file.path] for file in group.files))


def _merge(done: Rewritten, known: Mapping[str, FinishedFile], store: Reader) -> Rewrite:
    """Return the rewrite of a group, with the origins of its rows."""
    group = done.group
    names, runs = joined([_live(known[file.path], file, store) for file in group.files])
    return Rewrite(
        old=tuple(old_file(file, rows=file.live_rows or 0) for file in group.files),
        new=tuple(replace(file, source_files=names, runs=runs) for file in done.new),
    )


def _live(known: FinishedFile, file: ActiveFile, store: Reader) -> FinishedFile:
    """Return a file with the origins of its live rows."""
    if file.vector is None:
        return known
    gone = ranges_of(deleted_rows(store, file.vector))
    names, runs = runs_without(known.source_files, known.runs, gone)
    return replace(known, source_files=names, runs=runs)


@dataclass(slots=True)
class Compactor:
    """Compacts the table of one pipeline between the batches of a run."""

    next_at: float
    _known: KnownOrigins = field(default_factory=KnownOrigins)

    def compact(self, store: Store, ingest: Ingest, *, at_end: bool) -> int | None:
        """Merge small data files if that is due, or at the end of a run; return the entry.

        Errors are reported and fail no batch.
        """
        clock, settings, emit = ingest.clock, ingest.settings, ingest.emit
        name, now = settings.name, clock.seconds()
        if now < self.next_at and not at_end:
            return None
        self.next_at = now + settings.sink.compact.every
        emit(CompactionStarted(pipeline=name))
        try:
            done = compact(store, settings, ingest.runner, clock=clock, known=self._known)
        except PromotionPending as waits:
            emit(CompactionConflicted(pipeline=name, reason=waits.message))
        except ObjectMissing:
            pass  # There is no table yet.
        except LakeError as error:
            emit(CompactionFailed(pipeline=name, code=code_of(error), error=str(error)))
        else:
            _report(done, name, emit)
            return done.entry
        return None


def _report(done: RewriteDone[CompactionPlan], name: str, emit: Emit) -> None:
    if done.conflict is not None:
        emit(CompactionConflicted(pipeline=name, reason=done.conflict))
    for one in done.failed:
        emit(CompactionFailed(pipeline=name, code=one.code, error=one.message))
    if done.entry is not None:
        new = [file for one in done.replaced for file in one.new]
        emit(
            FilesCompacted(
                pipeline=name,
                entry=done.entry,
                files=sum(len(one.old) for one in done.replaced),
                into=len(new),
                bytes=sum(file.size for file in new),
            )
        )
