"""Retract the rows of source objects, and discard their quarantined lines.

Data files without other rows are removed and the others rewritten; one `retract` entry supersedes
all of them. The source objects stay known, so blizzard does not read them again by itself.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from blizzard.execute.runner import Rewriter
from blizzard.journal.checks import uris_of
from blizzard.journal.fence import EntryColumns
from blizzard.journal.ledger import Ledger
from blizzard.journal.source_names import KnownSources
from blizzard.model.bad_lines import SelectedLines, WaitingFile
from blizzard.model.rewriting import DropRows, Rewritten
from blizzard.model.settings import PipelineSettings
from blizzard.rewrite.source_rows import (
    JournaledFiles,
    RowSearch,
    RowsFound,
    SelectedSources,
    WrittenFile,
    why_not,
)
from blizzard.rewrite.transaction import (
    RewriteDone,
    RewritePlan,
    TableState,
    commit,
    entries_of_table,
    superseded,
    table_state,
    tries_again,
)
from blizzard.worker.quarantine.writer import without_selected
from lakebed import layout
from lakebed.clock import Clock
from lakebed.columns.schema import Schema
from lakebed.deltalog import tables
from lakebed.deltalog.lineage import Lineage
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import HeldState
from lakebed.documents.records import FinishedFile, QuarantineFile, SourceRecord
from lakebed.errors import JournalConflict, LakeError, Whose
from lakebed.journal import accepted_losses
from lakebed.layout import file_name
from lakebed.storage.store import Reader, Store
from lakebed.types import Handoff


class SourceNotRetractable(LakeError, code="source_not_retractable", whose=Whose.USER):
    """The rows of a source file cannot be retracted now; nothing was changed."""


class RowOriginsUnknown(LakeError, code="row_origins_unknown", whose=Whose.USER):
    """Another program has rewritten rows, so their origins are no longer known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """New content of source objects for an entry to add."""

    records: tuple[SourceRecord, ...]
    files: tuple[FinishedFile, ...]
    quarantine: tuple[QuarantineFile, ...]
    columns: EntryColumns
    known: Schema | None
    """The columns in the journal when the content was read."""
    before: Mapping[str, SourceRecord | None]
    """The objects as the journal knew them then, by key."""
    failed: tuple[SourceRecord, ...] = ()
    """Objects that cannot be read or have no row, which the rest does not include."""

    def within(self, entry: Entry, plan: "RetractPlan", outgoing: Collection[str]) -> Entry:
        """Add this content to an entry that takes rows out.

        Each source object supersedes all data files with its earlier rows.
        """
        read = [one.key for one in self.records]
        records = (
            replace(one, supersedes=tuple(plan.supersedes(one.key, read, outgoing)))
            for one in self.records
        )
        return replace(
            entry,
            sources=(*entry.sources, *records),
            as_of=plan.state.snapshot.version,
            files=self.files,
            quarantine=self.quarantine,
            table_schema=self.columns.table_schema,
            columns=self.columns.found,
            # The entry itself is the hand-off of its files, under any hand-off of the table.
            handoff=Handoff.JOURNAL,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractPlan(RewritePlan):
    """The rows of source objects in the table."""

    sources: tuple[SourceRecord, ...]
    """The source objects as the journal knows them."""
    meant: SelectedSources
    rows: RowsFound
    bad_lines: tuple[WaitingFile, ...]
    """The quarantine files with waiting lines of them."""
    superseded: Mapping[str, WrittenFile]
    """All data files with rows of the source objects, in the table or not."""
    lineage: Callable[[], Lineage]
    """Returns which data files hold the rows of which earlier ones."""

    def supersedes(self, key: str, read: Collection[str], outgoing: Collection[str]) -> list[str]:
        """Name the data files that a source object supersedes, of those that an entry reads.

        The first of them supersedes the rows of source objects that are not read again.
        """
        others = self.meant.keys.difference(read) if key == next(iter(read), None) else ()
        return [
            file_name(path)
            for path, one in self.superseded.items()
            if (key in one.keys or not set(one.keys).isdisjoint(others))
            and (path not in self.state.files or path in outgoing)
        ]

    def removed_by(self) -> list[int]:
        """Return the versions of other writers that removed rows which no entry took out."""
        out = [path for path in self.superseded if path not in self.state.files]
        found = {self.lineage().removed_by(path) for path in out} if out else set()
        return sorted(version for version in found if version is not None)

    @property
    def waiting_lines(self) -> int:
        """Count the waiting lines of the source objects."""
        return sum(_bad_lines(self.bad_lines, self.meant.keys).values())

    @property
    def requires(self) -> object:
        """Return the objects, their rows and their lines."""
        return self.sources, self.state.snapshot.mapping, self.rows, self.bad_lines


def plan_retraction(
    store: Reader,
    settings: PipelineSettings,
    keys: Sequence[str],
    search: RowSearch | None = None,
    *,
    rows_deleted: bool = False,
) -> RetractPlan:
    """Find the rows of source objects in the table; raise if they cannot be taken out of it.

    `rows_deleted`: an operator confirms that indistinguishable rows were deleted.
    """
    state = table_state(store, settings)
    history = state.history
    sources = _named(settings, history, keys)
    meant = SelectedSources(
        journal=state.last.journal,
        keys=frozenset(one.key for one in sources),
        uris={uri: one.key for one in sources for uri in uris_of(one.key, settings, history)},
    )
    journals = _journals(store, state, meant)
    never_added = _never_added(journals, state, settings.sink.committer)
    lineage = cache(lambda: _lineage(settings, state, journals))

    def holders(path: str) -> Collection[str] | None:
        if file_name(path) in never_added:
            return ()
        trace = lineage().trace(path)
        return None if trace.is_unknown else trace.active

    rows = (search or RowSearch(store)).find(journals, state.files, state.snapshot, holders)
    if not rows_deleted:
        _refuse_indistinct(rows)
    state.refuse_contested(rows.files)
    lines = SelectedLines(sources=meant.keys)
    return RetractPlan(
        state=state,
        sources=sources,
        meant=meant,
        rows=rows,
        bad_lines=tuple(one for one in history.books.waiting_files() if lines.may_be_in(one)),
        superseded=dict(journals.superseded(state.files.keys())),
        lineage=lineage,
    )


def _lineage(settings: PipelineSettings, state: TableState, journals: JournaledFiles) -> Lineage:
    """Fold the log up to a state's version, including replacements by entries."""
    log = tables.whole_log(settings.sink.table_uri, settings.sink.storage_options)
    lineage = Lineage() if log is None else Lineage.fold(log, until=state.snapshot.version)
    for old, new in journals.replaced:
        lineage.journaled(old, new)
    return lineage


@tries_again
def retract(
    store: Store,
    settings: PipelineSettings,
    keys: Sequence[str],
    rewriter: Rewriter,
    *,
    clock: Clock,
    content: Content | None = None,
    rows_deleted: bool = False,
) -> RewriteDone[RetractPlan]:
    """Rewrite the files with other rows, and append the entry that takes the rows out.

    The same entry adds `content`, which supersedes the rows.
    """
    find = partial(
        plan_retraction, store, settings, keys, RowSearch(store), rows_deleted=rows_deleted
    )
    plan = find()
    if content is not None:
        refuse_rows_out(store, plan)
    mixed = (*plan.rows.mixed, *plan.rows.unnamed)
    rewritten = plan.state.rewrite_each(rewriter, mixed, DropRows(), clock)
    replaced = (
        *(superseded(one, left_out=one.live_rows or 0) for one in plan.rows.whole),
        *(superseded(one.old, one.new, left_out=one.removed) for one in rewritten if one.removed),
    )
    rows = rows_by_source(plan, rewritten)
    if not replaced and content is None:
        return RewriteDone(found=plan, rewritten=rewritten)
    lines, last = SelectedLines(sources=plan.meant.keys), plan.state.last
    read = None if content is None else {one.key for one in content.records}
    resolved = without_selected(store, settings, plan.bad_lines, lines, last, clock=clock)

    def entry(now: RetractPlan) -> Entry:
        following = replace(
            now.state.next_entry("retract", clock),
            sources=records(now, rows, read),
            rewrites=replaced,
            resolved=resolved,
        )
        if content is None:
            return following
        _refuse_read_since(store, settings.name, content, now.state.history)
        return content.within(following, now, {old.path for one in replaced for old in one.old})

    now, number = commit(store, plan, rewritten, entry, replan=find)
    return RewriteDone(
        found=now,
        rewritten=rewritten,
        replaced=replaced,
        rows=rows,
        entry=number,
        new=content.records if content else (),
    )


def refuse_rows_out(store: Reader, plan: RetractPlan) -> None:
    """Raise if a data file with expected rows of other sources is out of the table.

    Superseding it would lose those rows: they must first be restored, or accepted as lost.
    """
    state = plan.state
    out = {
        path: one.keys[0]
        for path, one in plan.superseded.items()
        if None in one.meant and path not in state.files
    }
    losses = accepted_losses(store).values() if out else ()
    accepted = {path for one in losses for path in one.files}
    for path, key in out.items():
        by, name = plan.lineage().removed_by(path), file_name(path)
        if path in accepted or by is None:
            continue
        way = f"run penguin replay first, or accept the loss with blizzard audit --accept {by}"
        if state.snapshot.fates([name])[name] == HeldState.GONE:
            way = f"run blizzard redo --held {name} first"
        elif store.head(path) is None:
            continue  # A deleted object cannot be put back.
        raise SourceNotRetractable(
            f"{path} holds rows of {key} and of other source files, and version {by} took it "
            f"out of the table; {way}, then this again; nothing was changed",
            file=key,
        )


def rows_by_source(found: RetractPlan, rewritten: Sequence[Rewritten]) -> Counter[str]:
    """Count the rows of each source file that leave the table. Pure."""
    rows = Counter(found.rows.rows)
    for one in rewritten:
        if one.old.runs:
            continue  # Its rows are counted by the journal.
        left = one.removed
        for uri, count in one.removed_from.items():
            rows[found.meant.uris[uri]] += count
            left -= count
        if left:
            raise AssertionError("rows without a source file were left out")
    return rows


def records(
    found: RetractPlan, rows: Mapping[str, int], read: Collection[str] | None = None
) -> tuple[SourceRecord, ...]:
    """Return the source files as the entry names them: those with rows, or bad lines. Pure.

    If others are `read` to replace them, also those whose rows had left the table before.
    """
    bad = _bad_lines(found.bad_lines, found.meant.keys)
    out = {key for one in found.superseded.values() for key in one.keys}
    out = set() if read is None else out.difference(read)
    return tuple(
        replace(
            one,
            lines=rows.get(one.key, 0) + bad[one.key],
            quarantined=bad[one.key],
            rows=rows.get(one.key, 0),
            retracted=True,
        )
        for one in found.sources
        if rows.get(one.key) or bad[one.key] or one.key in out
    )


def _named(
    settings: PipelineSettings, history: Ledger, keys: Sequence[str]
) -> tuple[SourceRecord, ...]:
    """Return source objects as the journal knows them; raise if one cannot be retracted."""
    known = KnownSources(history)
    found: dict[str, SourceRecord] = {}
    for key in keys:
        before = known(key)
        one = before.object_of(key)
        if one is None:
            raise SourceNotRetractable(
                f"the journal knows no source file {key}, so no row of it is in the table; "
                "blizzard why has the reason",
                file=key,
            )
        why = why_not(before, settings.sink.committer)
        if why is not None:
            raise SourceNotRetractable(f"{key} {why}; nothing was changed", file=key)
        found[key] = one
    return tuple(found.values())


def _journals(store: Reader, state: TableState, meant: SelectedSources) -> JournaledFiles:
    """Read what all journals say, without entries that penguin rejected."""
    journals = JournaledFiles(meant=meant)
    last = state.last
    for entry, in_use in entries_of_table(store, first=last.pipeline):
        ours = in_use and entry.pipeline == last.pipeline
        if ours and entry.sequence > last.sequence:
            continue  # It was appended since the ledger was read; a retry sees both.
        if not state.has_rejected(entry):
            journals.take(entry, in_effect=state.has(entry))
    return journals


def _never_added(journals: JournaledFiles, state: TableState, committer: str) -> frozenset[str]:
    """Return the names of files that were never in the table; raise if they may still arrive."""
    found: set[str] = set()
    fates = state.snapshot.fates(map(file_name, journals.origins.written))
    for path, one in journals.written():
        name, key, entry = file_name(path), one.keys[0], one.entry
        waits = not state.has(entry)
        if waits and entry.journal == state.last.journal:
            raise SourceNotRetractable(
                f"rows of {key} are in entry {entry.sequence}, which is not committed yet; run "
                f"{committer} first, then this again; nothing was changed",
                file=key,
            )
        if fates[name] == HeldState.HELD:
            raise SourceNotRetractable(
                f"penguin holds {path} with rows of {key}; run penguin release {name} or penguin "
                f"discard {name} first, then this again; nothing was changed",
                file=key,
            )
        if waits or fates[name] == HeldState.GONE:
            found.add(name)
    return frozenset(found)


def _refuse_indistinct(rows: RowsFound) -> None:
    if not rows.untold:
        return
    keys = sorted({key for some in rows.untold.values() for key in some})
    some = ", ".join(keys[:3]) + (", ..." if len(keys) > 3 else "")
    raise RowOriginsUnknown(
        f"rows of {some} can no longer be distinguished: {min(rows.untold)} was rewritten by "
        "another program, such as OPTIMIZE, and its rows do not name the files they came from. "
        "Nothing was changed. Restore the table to a version before that; or delete the rows by "
        "their values with the program that rewrote them, then run blizzard retract with "
        "--rows-deleted. Rows written with schema.provenance: [file] stay distinguishable",
        files=len(rows.untold),
    )


def _bad_lines(files: Sequence[WaitingFile], keys: frozenset[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for waiting in files:
        for one in waiting.file.sources:
            if one.source in keys:
                found[one.source] += one.lines
    return found


def _refuse_read_since(store: Reader, pipeline: str, content: Content, history: Ledger) -> None:
    """Raise if another run has read the new content or found columns meanwhile."""
    known = KnownSources(history)
    now = {key: known(key).object_of(key) for key in content.before}
    if now != content.before or history.columns != content.known:
        raise JournalConflict(
            "a batch read the new content meanwhile, or added columns; nothing was done, try again",
            path=store.describe(layout.journal_folder(pipeline)),
        )
