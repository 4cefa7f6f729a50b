"""Replay or discard quarantined lines.

A `replay` entry names the data files with the new rows, a `discard` entry has none. Both name the
quarantine files that are resolved, and the files with the lines that still wait. Until the entry is
appended nothing has happened, and files written for it are garbage. A quarantine file is resolved
once: a second replay finds that it no longer waits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from blizzard.config.columns import columns_from
from blizzard.discover.finding import partition_of
from blizzard.execute.merge import SettledBatch
from blizzard.execute.runner import Runner
from blizzard.handoff.held_rows import rejection_lookup
from blizzard.ingest import Ingest
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.checks import last_entry
from blizzard.journal.fence import append_planned, refuse_collected_since
from blizzard.journal.ledger import Ledger
from blizzard.journal.standings import RejectionLookup, nothing_decided
from blizzard.model.bad_lines import LineReplay, SelectedLines, WaitingFile, selected_by
from blizzard.model.event_time import from_path
from blizzard.model.settings import PipelineSettings
from blizzard.model.work import WorkUnit
from blizzard.worker.quarantine.reader import lines_in
from blizzard.worker.quarantine.writer import without_selected
from lakebed import layout
from lakebed.clock import Clock
from lakebed.deltalog import tables
from lakebed.deltalog.snapshot import Snapshot
from lakebed.documents.entry import Entry
from lakebed.errors import JournalConflict, LakeError, Whose
from lakebed.journal import StoredEntry
from lakebed.layout import PartitionValues
from lakebed.partition import table_schema
from lakebed.storage.store import Reader, Store
from lakebed.telemetry.events import Emit
from lakebed.types import Handoff


class NotReplayed(LakeError, code="lines_not_replayed", whose=Whose.EXTERNAL, retryable=True):
    """Readable lines could not be written, so nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """The quarantine files that may contain selected lines, and the state of the journal."""

    selected: SelectedLines
    files: tuple[WaitingFile, ...]
    history: Ledger
    last: StoredEntry | None
    """The last entry; None if there is no journal yet."""
    counts: Mapping[str, int]
    """The number of selected lines by quarantine file."""
    unknown: frozenset[str]
    """Named groups without waiting lines."""
    rejected: frozenset[str]
    """Quarantine files of rejected replacement content."""

    @property
    def lines(self) -> int:
        """Count the selected lines."""
        return sum(self.counts.values())

    @property
    def not_in_place(self) -> int:
        """Count the selected lines of rejected content."""
        return sum(self.counts[name] for name in self.rejected)

    @property
    def in_place(self) -> tuple[WaitingFile, ...]:
        """Return the quarantine files whose lines may become rows."""
        return tuple(one for one in self.files if one.file.filename not in self.rejected)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOutcome:
    """The result of a replay or discard."""

    entry: int | None = None
    """The appended entry; None if there was nothing to do."""
    lines: int = 0
    """Lines that became rows or were discarded."""
    filtered: int = 0
    """Lines that `source.skip_records` filtered, which no longer wait and gave no row."""
    left: int = 0
    """Selected lines that still cannot be read and keep waiting."""
    unknown: frozenset[str] = frozenset()
    """Names without waiting lines."""
    not_in_place: int = 0
    """Of the lines that keep waiting, those of rejected content."""
    sources: frozenset[str] = frozenset()
    """The keys of named source files with selected lines."""


def plan_replay(
    store: Reader, pipeline: str, names: list[str] | None, snapshot: Snapshot | None = None
) -> ReplayPlan:
    """Find the quarantine files that may contain selected lines; without names, all lines.

    `snapshot` is the table's newest version, which tells what penguin rejected.
    """
    rejections: RejectionLookup = nothing_decided
    if snapshot is not None:
        rejections = rejection_lookup(snapshot.fates, partial(snapshot.committed, pipeline))
    history = read_ledger(store, pipeline, rejections=rejections)
    last = None if history.sequence < 0 else last_entry(history)
    waiting = history.books.waiting_files()
    selected = selected_by(names, waiting)
    files = tuple(one for one in waiting if selected.may_be_in(one))
    groups = {one.file.filename: _groups(store, one, selected) for one in files}
    marks = {
        one.entry: found.mark
        for one in files
        if (found := history.books.retractions.get(str(one.entry))) is not None
    }
    vain = rejections(history.journal, marks) if marks and history.journal is not None else {}
    return ReplayPlan(
        selected=selected,
        files=files,
        history=history,
        last=last,
        counts={name: len(found) for name, found in groups.items()},
        unknown=selected.groups.difference(*groups.values()),
        rejected=frozenset(one.file.filename for one in files if vain.get(one.entry)),
    )


def _groups(store: Reader, waiting: WaitingFile, selected: SelectedLines) -> list[str]:
    """Return the group of each selected line."""
    lines = lines_in(store, waiting.file)
    return [line.fault.group for line in lines if selected.includes(line.fault.group, line.key)]


def table_of(settings: PipelineSettings) -> Snapshot | None:
    """Open the newest version of a pipeline's table; None if there is none."""
    return tables.newest_snapshot(settings.sink.table_uri, settings.sink.storage_options)


def discard(
    store: Store, settings: PipelineSettings, names: list[str] | None, *, clock: Clock
) -> ReplayOutcome:
    """Discard lines, which then never become rows."""
    found = plan_replay(store, settings.name, names)
    if found.last is None or not found.lines:
        return ReplayOutcome(unknown=found.unknown)
    last = found.last.entry
    resolved = without_selected(store, settings, found.files, found.selected, last, clock=clock)

    def entry(last: StoredEntry) -> Entry:
        return replace(last.successor("discard", clock), resolved=resolved)

    number = _append(store, settings.name, found, entry)
    return ReplayOutcome(
        entry=number, lines=found.lines, unknown=found.unknown, sources=found.selected.sources
    )


def replay(
    store: Store,
    settings: PipelineSettings,
    names: list[str] | None,
    runner: Runner,
    *,
    clock: Clock,
    emit: Emit = lambda _event: None,
) -> ReplayOutcome:
    """Read lines again as a batch would; readable lines become rows.

    Lines that `source.skip_records` filters no longer wait and give no row. New columns are added
    if a batch would add them. Lines of rejected replacement content keep waiting, since the rows to
    be replaced are in the table.
    """
    table = table_of(settings)
    found = plan_replay(store, settings.name, names, table)
    in_vain = found.not_in_place
    nothing = ReplayOutcome(unknown=found.unknown, left=found.lines, not_in_place=in_vain)
    if (stored := found.last) is None or found.lines == in_vain:
        return nothing
    ingest = Ingest(
        settings=settings,
        runner=runner,
        clock=clock,
        of_table=lambda: None if table is None else columns_from(table.facts.schema),
        emit=emit,
    )
    ingested = ingest(
        _units(settings, found),
        known=found.history.columns,
        journal=stored.entry.journal,
        entry=stored.entry.sequence + 1,
        mapping=None if table is None else table.mapping,
    )
    settled = ingested.settled
    _refuse_failed(settled)
    files, resolved = settled.files, settled.resolved
    if not resolved:
        return nothing
    written = ingested.columns.entry(files)

    def entry(last: StoredEntry) -> Entry:
        return replace(
            last.successor("replay", clock),
            files=files,
            resolved=resolved,
            table_schema=written.table_schema,
            columns=written.found,
            handoff=Handoff.JOURNAL,
        )

    number = _append(store, settings.name, found, entry)
    return ReplayOutcome(
        entry=number,
        lines=sum(one.rows for one in resolved),
        filtered=sum(one.filtered_lines for one in resolved),
        left=found.lines - sum(one.lines for one in resolved),
        unknown=found.unknown,
        not_in_place=in_vain,
        sources=found.selected.sources,
    )


def _units(settings: PipelineSettings, found: ReplayPlan) -> list[WorkUnit]:
    rules = {one.name: one.form.skip for one in settings.sources}
    skips = {name: rule for name, rule in rules.items() if rule is not None}
    return [
        WorkUnit(
            name=str(number),
            partition_values=_partition(settings, waiting),
            files=(),
            replay=LineReplay(file=waiting.file, selected=found.selected, skips=skips),
        )
        for number, waiting in enumerate(found.in_place)
    ]


def _partition(settings: PipelineSettings, waiting: WaitingFile) -> PartitionValues:
    """Return the partition in the source paths, which all files of one unit share."""
    sink = settings.sink
    fields = {one.name: one for one in table_schema(settings.schema, sink.template).fields}
    template = from_path(sink.template, settings.schema, sink.timestamp_field)
    path = waiting.file.sources[0].source.partition(":")[2]
    return partition_of(path, template, fields)


def _refuse_failed(settled: SettledBatch) -> None:
    for record in settled.sources:
        if record.failure is not None:
            raise NotReplayed(
                f"{record.failure.message} [{record.failure.code}]; nothing was changed, try again",
                file=record.path,
            )


def _append(
    store: Store, pipeline: str, before: ReplayPlan, entry: Callable[[StoredEntry], Entry]
) -> int | None:
    """Append the entry; raise if lines no longer wait or the columns have changed."""
    path = store.describe(layout.journal_folder(pipeline))

    def validated() -> tuple[None, Entry]:
        now, old = read_ledger(store, pipeline), before.history
        following = entry(last_entry(now))
        why = ""
        if any(one.old not in now.books.waiting for one in following.resolved):
            why = "another command has replayed or discarded some of these lines meanwhile"
        elif (old.journal, old.columns) != (now.journal, now.columns):
            why = "the columns changed while lines were read again"
        if why:
            raise JournalConflict(f"{why}; nothing was done, try again", path=path)
        refuse_collected_since(store, old.sequence, following)
        return None, following

    _found, appended = append_planned(store, pipeline, validated)
    return None if appended is None else appended.sequence
