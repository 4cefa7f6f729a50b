"""Erase rows by a condition: the right to be forgotten.

Data files without other rows are removed and the others rewritten; one `erase` entry supersedes all
of them. The condition may itself be personal data, so it is stored nowhere, and the entry only
counts the rows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from blizzard.answers.entries import FileOrigins
from blizzard.answers.trace import named_by
from blizzard.execute.runner import Rewriter
from blizzard.model.predicate import Predicate
from blizzard.model.rewriting import ActiveFile, DropRows, Rewritten, RowsWhere
from blizzard.model.settings import PipelineSettings
from blizzard.rewrite.transaction import (
    RewriteDone,
    RewritePlan,
    commit,
    superseded,
    table_state,
    tries_again,
)
from blizzard.worker.find_rows import RowsInFile, check_columns, rows_in
from lakebed.clock import Clock
from lakebed.columns.schema import Schema
from lakebed.documents.entry import Entry
from lakebed.documents.records import Rewrite
from lakebed.storage.store import Reader, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWithRows:
    """A data file with rows for which the condition holds."""

    file: ActiveFile
    rows: int
    """The number of matching rows."""
    sources: Mapping[str, int]
    """Matching rows by source URI, as far as known."""
    deleted: int = 0
    """Matching rows that a deletion vector already deleted, but that are still in the file."""

    @property
    def unknown(self) -> int:
        """Count the rows of unknown origin, in files of other writers."""
        return self.rows - sum(self.sources.values())

    @property
    def is_whole(self) -> bool:
        """Whether the condition holds for all of its rows."""
        return self.rows == self.file.live_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasePlan(RewritePlan):
    """The data files with rows for which the condition holds."""

    files: tuple[FileWithRows, ...]
    columns: Schema

    @property
    def rows(self) -> int:
        """Count the rows."""
        return sum(one.rows for one in self.files)

    @property
    def sources(self) -> Counter[str]:
        """Count the rows by source file, as far as known."""
        found: Counter[str] = Counter()
        for one in self.files:
            found.update(one.sources)
        return found

    @property
    def unknown(self) -> int:
        """Count the rows whose source files are not known."""
        return sum(one.unknown for one in self.files)

    @property
    def deleted(self) -> int:
        """Count the rows that were deleted before but are still in files of the table."""
        return sum(one.deleted for one in self.files)

    @property
    def is_everything(self) -> bool:
        """Whether the condition holds for every row of the table."""
        whole = sum(one.is_whole for one in self.files)
        others = [file for file in self.state.files.values() if file.live_rows != 0]
        return whole > 0 and whole >= len(others)


def plan_erasure(store: Reader, settings: PipelineSettings, predicate: Predicate) -> ErasePlan:
    """Find the rows of the table for which a condition holds."""
    state = table_state(store, settings)
    columns = state.require_columns()
    check_columns(predicate, columns)
    files = state.files
    places: dict[str, RowsInFile] = {}
    for path, file in sorted(files.items()):
        inside = rows_in(store, file, predicate, columns, state.snapshot.mapping)
        if inside is not None:
            places[path] = inside
    known = named_by(store, places.keys())
    found = tuple(
        with_rows(files[path], inside, known.get(path), predicate)
        for path, inside in places.items()
    )
    state.refuse_contested(one.file for one in found)
    return ErasePlan(state=state, files=found, columns=columns)


@tries_again
def erase(
    store: Store,
    settings: PipelineSettings,
    predicate: Predicate,
    rewriter: Rewriter,
    *,
    clock: Clock,
    reason: str | None = None,
) -> RewriteDone[ErasePlan]:
    """Rewrite the files with other rows, and append the entry that takes the rows out."""
    plan = plan_erasure(store, settings, predicate)
    if not plan.files:
        return RewriteDone(found=plan)
    mixed = [one.file for one in plan.files if not one.is_whole]
    rewritten = plan.state.rewrite_each(rewriter, mixed, DropRows(), clock)
    replaced = _replacements(plan.files, rewritten)

    def entry(now: ErasePlan) -> Entry:
        return replace(
            now.state.next_entry("erase", clock),
            rewrites=replaced,
            erased=dict(sorted(plan.sources.items())),
            reason=reason,
        )

    # Files added since the plan are left alone; the rows of the old ones cannot have changed.
    _now, number = commit(store, plan, rewritten, entry)
    return RewriteDone(found=plan, entry=number)


def with_rows(
    file: ActiveFile, inside: RowsInFile, named: FileOrigins | None, predicate: Predicate
) -> FileWithRows:
    """Return a data file with the facts about its selected rows. Pure."""
    file = replace(file, rows=inside.rows, without=RowsWhere(predicate))
    if named is not None:
        runs = named.file.runs if _tells_every_row(named, inside) else ()
        file = file.with_origins(replace(named.file, runs=runs))
    sources = sources_of(inside, named)
    return FileWithRows(file=file, rows=len(inside.places), sources=sources, deleted=inside.deleted)


def sources_of(inside: RowsInFile, named: FileOrigins | None) -> Mapping[str, int]:
    """Count the selected rows by the URIs of their source files, where known. Pure."""
    if named is None or not _tells_every_row(named, inside):
        return inside.by_column
    uris = [named.entry.uri_of(key) for key in named.file.source_files]
    ends = list(accumulate(run.rows for run in named.file.runs))
    places = np.searchsorted(np.asarray(ends), np.asarray(inside.places), side="right").tolist()
    return Counter(uris[named.file.runs[place].source] for place in places)


def _tells_every_row(named: FileOrigins, inside: RowsInFile) -> bool:
    return sum(run.rows for run in named.file.runs) == inside.rows


def _replacements(
    files: Sequence[FileWithRows], rewritten: Sequence[Rewritten]
) -> tuple[Rewrite, ...]:
    done = {one.old.path: one for one in rewritten}
    replaced = []
    for one in files:
        new = () if one.is_whole else done[one.file.path].new
        if not one.is_whole and (not new or done[one.file.path].removed != one.rows):
            raise AssertionError("other rows were left out of a file than were found in it")
        replaced.append(superseded(one.file, new, left_out=one.rows))
    return tuple(replaced)
