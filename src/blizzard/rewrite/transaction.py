"""What the commands share that put data files in the place of others, or take them out.

Files are written anew first, under fresh names; one entry then says which of them come in the place
of which. Until it is appended nothing has happened, and what was written is garbage like that of
any attempt that died; from then on penguin does all of it in one version or, where a file is not in
the table any more, nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

from blizzard.config.columns import columns_from
from blizzard.execute.runner import Rewriter
from blizzard.handoff.held_rows import Fates, passed_over
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.checks import refuse_closed, refuse_half_begun
from blizzard.journal.fence import append_what_is_found, refuse_collected
from blizzard.journal.ledger import Ledger
from blizzard.journal.standings import PassedOver, nothing_decided
from blizzard.model.rewriting import ActiveFile, RewriteFailed, Rewriting, Rewritten
from blizzard.model.settings import PipelineSettings
from lakebed import layout
from lakebed.clock import Clock
from lakebed.columns.column_mapping import ColumnMapping
from lakebed.columns.row_tracking import RowColumns
from lakebed.columns.schema import Schema
from lakebed.documents.data_file import Run
from lakebed.documents.entry import Entry
from lakebed.documents.replacement import Replacement
from lakebed.errors import FilesCollected, JournalConflict, LakeError, ObjectMissing, Whose
from lakebed.journal import JournalReader, entries_in, journals_aside
from lakebed.storage.store import Reader, Store

P = ParamSpec("P")
Done = TypeVar("Done")
Found = TypeVar("Found")

TRIES = 3
"""How often a command begins that others overtake."""
WAIT_SECS = 2.0
MOST_WAITS = 30
NOUNS = {
    "promote": "promotion",
    "retract": "retraction",
    "erase": "erasure",
    "compact": "compaction",
}


class PromotionWaits(LakeError):
    """An earlier promotion, retraction or erasure is not committed yet."""

    code = "promotion_waits"
    whose = Whose.USER
    retryable = True


class NothingCommitted(ObjectMissing):
    """There is no table in which something could be replaced."""


class Overtaken(JournalConflict):
    """Others have changed, or are about to change, what was rewritten; nothing was done."""


class NotRewritten(LakeError):
    """A data file could not be rewritten, so nothing was changed."""

    code = "file_not_rewritten"
    whose = Whose.EXTERNAL
    retryable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNow:
    """One version of the table, as its log has it."""

    schema: Mapping[str, Any]
    """As Delta writes it."""
    files: Mapping[str, ActiveFile]
    """Its data files by their names."""
    committed: Callable[[str, str], int]
    """Returns the last entry of a pipeline's journal that this version has; 0 where it has none.
    A later version may have more: asked for it, an entry would neither wait nor be in the files."""
    fates: Fates
    """Returns what it has decided of files that were held, and of entries without effect."""
    mapping: ColumnMapping | None = None
    """How files hold its columns; None where it maps none."""
    row_columns: RowColumns | None = None
    """The columns of files in which rows keep their ids; None where it tracks no rows."""

    def passed_over(self, pipeline: str) -> PassedOver:
        """Return the way to ask which entries of a pipeline had no effect."""
        return passed_over(self.fates, partial(self.committed, pipeline))

    @property
    def columns(self) -> Schema:
        """Return its columns as blizzard declares them; none where they cannot be read."""
        return columns_from(self.schema) or Schema(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """Where the rows of a data file came from, as the journal has it that named it first."""

    source_files: tuple[str, ...]
    uris: tuple[str, ...]
    """Where each of them was."""
    runs: tuple[Run, ...]


OriginsOf = Callable[[Collection[str]], Mapping[str, Origins]]
"""Returns the origins of the rows of data files, those left out that no journal names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLog:
    """What is asked of the table's log, which blizzard does not read itself."""

    now: Callable[[], TableNow | None]
    """Returns the table; None where there is none."""
    origins: OriginsOf
    """Asks the journals of the table, of whichever pipeline."""
    check: Callable[[dict[str, Any], tuple[str, ...]], None] = lambda _schema, _partitions: None
    """Raises where the table would not take this schema and these partition columns."""
    repaired: Callable[[], Collection[str]] = tuple
    """Returns the names of blizzard's data files that were missing, whose rows `penguin fsck
    --repair` took out of the table and nothing has put back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where the journal and the table stand."""

    last: Entry
    history: Ledger
    table: TableNow

    @property
    def committed(self) -> int:
        """Return the last entry of the journal that the table has; 0 where it has none."""
        return self.table.committed(self.last.pipeline, self.last.journal)


def tries_again(once: Callable[P, Done]) -> Callable[P, Done]:
    """Return a command that begins anew where others have changed the files while it ran.

    A compaction lands whenever it likes; nobody has to run a command again for it. What waits for
    penguin by then is waited for, for a minute. At its very beginning a command waits for nothing.
    """

    @wraps(once)
    def tried(*given: P.args, **named: P.kwargs) -> Done:
        clock = cast("Clock", named["clock"])
        overtaken = waited = 0
        while True:
            try:
                return once(*given, **named)
            except Overtaken:
                overtaken += 1
                if overtaken == TRIES:
                    raise
            except PromotionWaits:
                if not overtaken or waited == MOST_WAITS:
                    raise
                waited += 1
                clock.sleep(WAIT_SECS)

    return tried


def append_replacement(
    store: Store,
    pipeline: str,
    replaced: Sequence[Replacement],
    look: Callable[[], tuple[Found, Entry]],
) -> tuple[Found, Entry | None]:
    """Append the entry that a look calls for; where it cannot be, delete what was written for it.

    A look that finds another replacement waiting was overtaken by it.
    """
    try:
        return append_what_is_found(store, pipeline, look)
    except (PromotionWaits, JournalConflict) as others:
        # No entry names what was written: it is garbage, and nobody else's.
        drop(store, [one.new.filename for one in replaced if one.new is not None])
        if isinstance(others, JournalConflict):
            raise
        raise Overtaken(others.message, pipeline=pipeline) from others


def drop(store: Store, paths: Iterable[str]) -> None:
    """Delete files that no entry names; what is left behind `blizzard gc` finds."""
    for path in paths:
        try:
            store.delete(path)
        except LakeError:
            return


def standing_of(store: Reader, settings: PipelineSettings, log: TableLog) -> Standing:
    """Return where things stand; raise while no file may be replaced."""
    found = journal_and_table(store, settings.name, log)
    refuse_waiting(store, settings, found.committed)
    return found


def journal_and_table(store: Reader, pipeline: str, log: TableLog) -> Standing:
    """Return where both stand; raise where there is no table, or the journal takes no entry.

    The table first, and what is committed by the same version: so every file is in one of both.
    What the table has, an entry names that was written before; one that it does not have waits.
    """
    table = log.now()
    passed = nothing_decided if table is None else table.passed_over(pipeline)
    history = read_ledger(store, pipeline, passed_over=passed)
    tail = JournalReader(store, pipeline).entries(history.sequence - 1)
    last = next(tail, None) if history.sequence >= 0 else None
    if last is None or table is None:
        raise NothingCommitted(
            "there is no table yet: nothing was committed; run penguin first", path=store.uri
        )
    refuse_closed(store, pipeline, heir=history.heir)
    refuse_half_begun(store, pipeline, sequence=history.sequence, awaits=history.awaits)
    return Standing(last=last, history=history, table=table)


def waiting_entries(store: Reader, table: TableNow) -> tuple[Entry, ...]:
    """Return the entries of all journals in use that the table does not have yet."""
    found: list[Entry] = []
    for pipeline in layout.pipelines(store.folders(layout.OURS)):
        journal = read_ledger(store, pipeline).journal
        if journal is not None:
            found += JournalReader(store, pipeline).entries(table.committed(pipeline, journal))
    return tuple(found)


def entries_of_table(store: Reader, first: str = "") -> Iterator[tuple[Entry, bool]]:
    """Yield every entry of every journal of a table, and whether its journal is in use.

    Those of the journal in use of one pipeline come first.
    """
    pipelines = layout.pipelines(store.folders(layout.OURS))
    for pipeline in sorted(pipelines, key=lambda name: (name != first, name)):
        aside = journals_aside(store, pipeline)
        for folder in (layout.journal_folder(pipeline), *aside):
            for stored in entries_in(store, pipeline, folder):
                yield stored.entry, folder not in aside


def rewritten_all(
    rewriter: Rewriter, files: Sequence[ActiveFile], work: Rewriting
) -> tuple[Rewritten, ...]:
    """Rewrite files; raise where one of them could not be, since nothing is changed then."""
    return tuple(map(_done, rewriter.rewrite(files, work))) if files else ()


def _done(outcome: Rewritten | RewriteFailed) -> Rewritten:
    if isinstance(outcome, RewriteFailed):
        raise NotRewritten(
            f"{outcome.message} [{outcome.code}]; nothing was changed, try again",
            file=outcome.old.path,
        )
    return outcome


def refuse_waiting(store: Reader, settings: PipelineSettings, committed: int) -> None:
    """Raise while an earlier entry may still replace the same files."""
    for entry in JournalReader(store, settings.name).entries(committed):
        if entry.replaces:
            raise PromotionWaits(
                f"the {NOUNS[entry.kind]} in entry {entry.sequence} is not committed yet; run "
                f"{settings.sink.committer} first, then this again",
                entry=entry.sequence,
            )


def refuse_contested(
    entries: Sequence[Entry], files: Sequence[ActiveFile], table: TableNow
) -> None:
    """Raise while an entry of another pipeline is to replace one of the files.

    penguin would pass over whichever comes second, after all the rewriting.
    """
    wanted = {file.path for file in files}
    for entry in entries:
        if wanted.isdisjoint(one.filename for one in entry.outgoing):
            continue
        if entry.sequence > table.committed(entry.pipeline, entry.journal):
            raise PromotionWaits(
                f"the {NOUNS[entry.kind]} in entry {entry.sequence} of pipeline {entry.pipeline} "
                "replaces the same files and is not committed yet; run penguin first, then this "
                "again",
                entry=entry.sequence,
            )


def refuse_renamed(before: ColumnMapping | None, now: ColumnMapping | None, table: str) -> None:
    """Raise where files were written anew by other names of columns than the table has by now."""
    if before is not None and before != now:
        raise Overtaken(
            "columns of the table were renamed, added or dropped meanwhile; nothing was done, try "
            "again",
            table=table,
        )


def refuse_collected_since(store: Reader, last: int, entry: Entry) -> None:
    """Raise where a clean-up has deleted what was written for an entry, after an earlier one."""
    for first in JournalReader(store, entry.pipeline).entries(last):
        try:
            refuse_collected(first, entry)
        except FilesCollected as collected:
            raise JournalConflict(
                f"blizzard gc (entry {first.sequence}) has deleted the rewritten files; nothing "
                "was done, try again, and give gc a longer --older-than",
                path=store.describe(layout.journal_folder(entry.pipeline)),
            ) from collected
