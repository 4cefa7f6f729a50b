"""Rows of source files taken out of the table, and their waiting bad lines given up.

Data files with no other rows go; those with others are written anew without them. One `retract`
entry names the source files and what becomes of each data file, and penguin does all of it in one
version or, where a file is not in the table any more, nothing. The source files stay known: they
are not read again by themselves.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from blizzard.execute.runner import Rewriter
from blizzard.handoff.held_rows import GONE, HELD
from blizzard.journal.checks import uris_of
from blizzard.journal.ledger import Ledger
from blizzard.journal.source_names import KnownSources
from blizzard.model.bad_lines import Meant as MeantLines
from blizzard.model.bad_lines import WaitingFile, may_have
from blizzard.model.locations import sink_location
from blizzard.model.rewriting import Removal, Rewritten
from blizzard.model.settings import PipelineSettings
from blizzard.rewrite.content import Content
from blizzard.rewrite.replay import without_meant
from blizzard.rewrite.retracted_sources import Named, why_not
from blizzard.rewrite.row_search import RowSearch
from blizzard.rewrite.source_rows import Journals, Meant, RowsFound, find_rows, replacements
from blizzard.rewrite.transaction import (
    Overtaken,
    TableLog,
    TableNow,
    append_replacement,
    entries_of_table,
    journal_and_table,
    refuse_collected_since,
    refuse_contested,
    refuse_waiting,
    rewritten_all,
    tries_again,
)
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.documents.replacement import Replacement
from lakebed.documents.source_record import SourceRecord
from lakebed.errors import JournalConflict, LakeError, Whose
from lakebed.layout import file_name
from lakebed.storage.store import Reader, Store


class SourceNotRetractable(LakeError):
    """The rows of a source file cannot be taken back as things are; nothing was changed."""

    code = "source_not_retractable"
    whose = Whose.USER


class RowsNotToldApart(LakeError):
    """Another program has rewritten rows, and nothing says any more which came from where."""

    code = "rows_not_told_apart"
    whose = Whose.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The rows of source files in the table, and where the journal stands."""

    sources: tuple[Named, ...]
    """The source files that are meant, as the journal knows them."""
    meant: Meant
    rows: RowsFound
    bad_lines: tuple[WaitingFile, ...]
    """The quarantine files with lines of them that wait."""
    last: Entry
    history: Ledger
    table: TableNow

    @property
    def waiting_lines(self) -> int:
        """Count the bad lines of the source files that wait."""
        return sum(_bad_lines(self.bad_lines, self.meant.keys).values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Retracted:
    """What was rewritten, and the entry that takes the rows out."""

    found: Found
    rewritten: tuple[Rewritten, ...] = ()
    replaced: tuple[Replacement, ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows of each source file leave the table."""
    entry: int | None = None
    """None where no row of them is in the table."""
    content: Content | None = None
    """What has come in their place."""


def look(
    store: Reader,
    settings: PipelineSettings,
    keys: Sequence[str],
    log: TableLog,
    search: RowSearch | None = None,
) -> Found:
    """Find the rows of source files in the table; raise where they cannot be taken out of it."""
    pipeline = settings.name
    standing = journal_and_table(store, pipeline, log)
    history, last, table = standing.history, standing.last, standing.table
    sources = _named(settings, history, keys)
    meant = Meant(
        journal=last.journal,
        keys=frozenset(one.key for one in sources),
        uris={uri: one.key for one in sources for uri in uris_of(one.key, settings, history)},
    )
    refuse_waiting(store, settings, standing.committed)
    journals = _journals(store, pipeline, meant, history)
    fates = table.fates(
        [
            *map(file_name, journals.written),
            *(entry.replacement_mark for entry in journals.replacing),
        ]
    )
    aside = _aside(journals, last, table, fates, settings.sink.committer)
    searched = search or RowSearch(store)

    def found_without(repaired: Collection[str]) -> RowsFound:
        return find_rows(
            journals,
            table.files,
            in_effect=lambda entry: (
                entry.sequence <= table.committed(entry.pipeline, entry.journal)
                and fates.get(entry.replacement_mark) != GONE
            ),
            aside=aside,
            repaired=repaired,
            deleted=searched.deleted,
        )

    rows = found_without(())
    if rows.untold:
        rows = found_without({file_name(path) for path in log.repaired()})
    _refuse_untold(rows)
    rows = searched(rows, meant, table)
    others = [entry for entry in journals.replacing if entry.pipeline != pipeline]
    refuse_contested(others, rows.files, table)
    lines = MeantLines(sources=meant.keys)
    return Found(
        sources=sources,
        meant=meant,
        rows=rows,
        bad_lines=tuple(one for one in history.books.waiting_files() if may_have(one, lines)),
        last=last,
        history=history,
        table=table,
    )


@tries_again
def retract(
    store: Store,
    settings: PipelineSettings,
    keys: Sequence[str],
    log: TableLog,
    rewriter: Rewriter,
    *,
    clock: Clock,
    content: Content | None = None,
) -> Retracted:
    """Rewrite the files with other rows, and append the entry that takes the rows out.

    `content` comes in their place, with the same entry.
    """
    search = RowSearch(store)
    found = look(store, settings, keys, log, search)
    work = Removal(
        sink=sink_location(settings),
        codec=settings.sink.rolling.codec,
        upload=settings.sink.upload,
        marks={"pipeline": settings.name, "journal": found.last.journal},
        clock=clock,
        columns=found.table.columns,
        mapping=found.table.mapping,
        row_columns=found.table.row_columns,
    )
    rewritten = rewritten_all(rewriter, (*found.rows.mixed, *found.rows.unnamed), work)
    replaced = replacements(found.rows, rewritten)
    rows = rows_by_source(found, rewritten)
    if not replaced and content is None:
        return Retracted(found=found, rewritten=rewritten)
    resolved = without_meant(
        store,
        settings,
        found.bad_lines,
        MeantLines(sources=found.meant.keys),
        found.last,
        clock=clock,
    )

    def look_again() -> tuple[Found, Entry]:
        now = look(store, settings, keys, log, search)
        entry = now.last.successor(
            "retract",
            previous=now.history.digest,
            run=str(clock.fresh_id()),
            created=clock.now().isoformat(),
            sources=records(now, rows),
            replaced=replaced,
            resolved=resolved,
            table_schema=dict(now.table.schema),
            columns=now.history.columns,
        )
        entry = entry if content is None else content.within(entry)
        _refuse_overtaken(store, found, now, entry)
        if content is not None:
            _refuse_read_since(store, settings.name, content, now.history)
        return now, entry

    now, entry = append_replacement(store, settings.name, replaced, look_again)
    return Retracted(
        found=now,
        rewritten=rewritten,
        replaced=replaced,
        rows=rows,
        entry=None if entry is None else entry.sequence,
        content=content,
    )


def rows_by_source(found: Found, rewritten: Sequence[Rewritten]) -> Counter[str]:
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


def records(found: Found, rows: Mapping[str, int]) -> tuple[SourceRecord, ...]:
    """Return the source files as the entry names them: those with rows, or bad lines. Pure."""
    bad = _bad_lines(found.bad_lines, found.meant.keys)
    return tuple(
        SourceRecord(
            source=one.source,
            path=one.path,
            size=one.size,
            etag=one.etag,
            lines=rows.get(one.key, 0) + bad[one.key],
            quarantined=bad[one.key],
            rows=rows.get(one.key, 0),
            retracted=True,
        )
        for one in found.sources
        if rows.get(one.key) or bad[one.key]
    )


def _named(settings: PipelineSettings, history: Ledger, keys: Sequence[str]) -> tuple[Named, ...]:
    """Return the source files as the journal knows them; raise where one cannot be taken back."""
    known = KnownSources(history)
    found: dict[str, Named] = {}
    for key in keys:
        before = known(key)
        one = Named.of(key, before)
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


def _journals(store: Reader, pipeline: str, meant: Meant, history: Ledger) -> Journals:
    """Read what all journals say."""
    journals = Journals(meant=meant)
    for entry, in_use in entries_of_table(store, first=pipeline):
        ours = in_use and entry.pipeline == pipeline
        if ours and entry.sequence > history.sequence:
            continue  # It was appended since the history was read: the next try sees both.
        journals.take(entry)
    journals.finish()
    return journals


def _aside(
    journals: Journals,
    last: Entry,
    table: TableNow,
    fates: Mapping[str, int | None],
    committer: str,
) -> frozenset[str]:
    """Return the files that never were in the table; raise where they may still come."""
    aside: set[str] = set()
    for path, one in journals.written.items():
        name, key = file_name(path), next(filter(None, one.meant))
        waits = one.sequence > table.committed(one.pipeline, one.journal)
        if waits and (one.pipeline, one.journal) == (last.pipeline, last.journal):
            raise SourceNotRetractable(
                f"rows of {key} are in entry {one.sequence}, which is not committed yet; run "
                f"{committer} first, then this again; nothing was changed",
                file=key,
            )
        if fates.get(name) == HELD:
            raise SourceNotRetractable(
                f"penguin holds {path} with rows of {key}; run penguin release {name} or penguin "
                f"discard {name} first, then this again; nothing was changed",
                file=key,
            )
        if waits or fates.get(name) == GONE:
            aside.add(name)
    return frozenset(aside)


def _refuse_untold(rows: RowsFound) -> None:
    if not rows.untold:
        return
    keys = sorted(frozenset().union(*rows.untold.values()))
    some = ", ".join(keys[:3]) + (", ..." if len(keys) > 3 else "")
    raise RowsNotToldApart(
        f"rows of {some} can no longer be told apart from others: {min(rows.untold)} was rewritten "
        "by another program, such as OPTIMIZE, or by an early version, and its rows do not say "
        "which file they came from. Nothing was changed. Delete the rows by their values with the "
        "program that rewrote them, or restore the table to a version before that; rows that are "
        "written with schema.provenance: [file] stay apart",
        files=len(rows.untold),
    )


def _bad_lines(files: Sequence[WaitingFile], keys: frozenset[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for waiting in files:
        for one in waiting.file.sources:
            if one.source in keys:
                found[one.source] += one.lines
    return found


def _refuse_overtaken(store: Reader, before: Found, now: Found, entry: Entry) -> None:
    """Raise where what was rewritten is not what is to be replaced any more."""
    was, is_now = (
        (one.last.journal, one.sources, one.table.mapping, one.rows, one.bad_lines)
        for one in (before, now)
    )
    if was != is_now:
        raise Overtaken(
            "the rows of these source files were changed by somebody else meanwhile; nothing was "
            "done, try again",
            path=store.describe(layout.journal_folder(entry.pipeline)),
        )
    refuse_collected_since(store, before.last.sequence, entry)


def _refuse_read_since(store: Reader, pipeline: str, content: Content, history: Ledger) -> None:
    """Raise where somebody else has read the new content, or has found columns, meanwhile."""
    known = KnownSources(history)
    now = {key: Named.of(key, known(key)) for key in content.before}
    if now != content.before or history.columns != content.known:
        raise JournalConflict(
            "a batch read the new content meanwhile, or added columns; nothing was done, try again",
            path=store.describe(layout.journal_folder(pipeline)),
        )
