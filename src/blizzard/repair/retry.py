"""Retry failed source files at once, or give them up.

A `retry` entry makes files due without changing anything else known about them; a running blizzard
notices it with its next listing. If the operator confirms that a file still begins with the lines
in the table, the entry also names the present object, so that only the rest is read.

A failed file that has left its source cannot be read, nor can the rest of a partly read one. A
`discard` entry records that an operator accepts that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.checks import last_entry, refuse_moved
from blizzard.journal.fence import append_planned
from blizzard.journal.standings import RejectionLookup, nothing_decided
from blizzard.model.source.partly_read import (
    can_be_given_up,
    given_up,
    is_partly_read,
    lacks_its_object,
    with_same_lines,
)
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.documents.records import SourceRecord
from lakebed.journal import StoredEntry
from lakebed.storage.store import Reader, Store

GONE = "it is no longer in its source; blizzard dlq discard gives it up"
GIVEN_UP = "an operator has given it up; if it reappears in its source, the next run reads it"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedSources:
    """The selected failed source files, and the end of the journal."""

    records: tuple[SourceRecord, ...] = ()
    unknown: frozenset[str] = frozenset()
    """Keys that are not failed files."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Selected files that cannot be retried or given up, with the reason."""
    last: StoredEntry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentSources:
    """The present sources, for files that an operator confirms to have the same lines."""

    uris: Mapping[str, str]
    """Where each source is, by its name."""
    open: Callable[[str], Reader]
    """Opens a source by its name."""


Judge = Callable[[SourceRecord], SourceRecord | str | None]
"""Returns the record for the entry, the reason against it, or None if not selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedSearch:
    """Selects failed files of a pipeline: all of them, or those with given keys."""

    store: Reader
    pipeline: str
    wanted: frozenset[str] | None
    present: PresentSources | None = None
    """Set to continue reading the files as their present objects."""
    rejections: RejectionLookup = nothing_decided

    def failed(self) -> FailedSources:
        """Find the files to read again, without those that left their source."""
        return self._found(self._to_read)

    def deleted(self) -> FailedSources:
        """Find the unfinished files that left their source and are not given up."""
        return self._found(self._to_give_up)

    def retry(self, store: Store, clock: Clock) -> tuple[FailedSources, int | None]:
        """Append the retry entry; return the selection and the entry's number."""
        return self._append(store, "retry", clock, self.failed, partial(replace, retry=True))

    def give_up(self, store: Store, clock: Clock) -> tuple[FailedSources, int | None]:
        """Append the discard entry; return the selection and the entry's number."""
        return self._append(store, "discard", clock, self.deleted, given_up)

    def _append(
        self,
        store: Store,
        kind: Literal["retry", "discard"],
        clock: Clock,
        find: Callable[[], FailedSources],
        mark: Callable[[SourceRecord], SourceRecord],
    ) -> tuple[FailedSources, int | None]:
        """Append an entry for the selection, selecting again if another program was faster."""

        def plan() -> tuple[FailedSources, Entry | None]:
            found = find()
            if not found.records or found.last is None:
                return found, None
            sources = tuple(map(mark, found.records))
            return found, replace(found.last.successor(kind, clock), sources=sources)

        found, entry = append_planned(store, self.pipeline, plan)
        return found, None if entry is None else entry.sequence

    def _found(self, judge: Judge) -> FailedSources:
        """Judge the selected unfinished files."""
        history = read_ledger(self.store, self.pipeline, rejections=self.rejections)
        meant = self.wanted or frozenset()
        if history.sequence < 0:
            return FailedSources(unknown=meant)
        last = last_entry(history)
        if self.present is not None:
            refuse_moved(history.place, self.present.uris, history.source_uris)
        found: list[SourceRecord] = []
        refused: dict[str, str] = {}
        for key in sorted(history.unfinished):
            if self.wanted is None or key in self.wanted:
                match judge(history.unfinished[key].record):
                    case SourceRecord() as record:
                        found.append(record)
                    case str(why):
                        refused[key] = why
        unknown = meant - {record.key for record in found} - refused.keys()
        return FailedSources(records=tuple(found), unknown=unknown, refused=refused, last=last)

    def _to_read(self, record: SourceRecord) -> SourceRecord | str | None:
        if record.gone:
            return None if self.wanted is None else GIVEN_UP if record.discarded else GONE
        if record.failure is None:
            return None
        if self.present is not None:
            return _as_now(record, self.present)
        # A retry does not bring an object back.
        return record.failure.message if lacks_its_object(record) and not record.retry else record

    def _to_give_up(self, record: SourceRecord) -> SourceRecord | str | None:
        if can_be_given_up(record):
            return record
        if self.wanted is None or record.failure is None or record.gone:
            return None
        return (
            f"{'the rest of it' if is_partly_read(record) else 'the file itself'} is not given up: "
            f"it failed ({record.failure.code}), and no run has found that it is gone from its "
            "source; if it has been deleted, run blizzard --once first"
        )


def _as_now(record: SourceRecord, present: PresentSources) -> SourceRecord | str:
    """Return the record with the file's present object, or why that is impossible.

    Takes one request to the store.
    """
    if not is_partly_read(record):
        return "nothing of it is in the table; without --same-lines it is read in full"
    if record.source not in present.uris:
        return f"its source {record.source!r} is not in the configuration"
    facts = present.open(record.source).head(record.path)
    if facts is None:
        return "it is not in its source"
    asked = with_same_lines(record, size=facts.size, etag=facts.etag)
    if asked is None:
        return (
            f"it has {facts.size} bytes, fewer than were read of it, so these cannot be the same "
            "lines"
        )
    return asked
