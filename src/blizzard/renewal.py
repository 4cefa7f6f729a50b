"""What a pipeline asks of its table, which it does not read itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from blizzard.found_columns import MappingOfTable, TableColumns
from blizzard.journal.standings import PassedOver, nothing_decided
from blizzard.model.files import SourceFile
from lakebed.documents.source_record import SourceRecord
from lakebed.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """What became of source files that are other objects than those that were read."""

    entries: tuple[int, ...] = ()
    """The entries that put their new content in the place of the old."""
    keys: frozenset[str] = frozenset()
    """The files with which that was done."""
    rows: int = 0
    """The rows that they have now."""
    removed: int = 0
    """The rows that they had."""
    failed: tuple[SourceRecord, ...] = ()
    """Their old rows stay in the table."""
    waits: str | None = None
    """Why others have to wait; None where none does."""


Renew = Callable[[Store, Sequence[SourceFile]], Renewed]


Compact = Callable[[Store, bool], int | None]
"""Puts small data files together, if it is time for that or at the end of a run; returns the entry
that says so, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaLog:
    """What a pipeline asks of its table's log, which it does not read itself."""

    knows_pipeline: Callable[[], bool]
    """Whether something of the pipeline was ever committed."""
    check_schema: Callable[[], None] = lambda: None
    """Raises where the table would hold every file with the declared fields."""
    columns: TableColumns = lambda: None
    """Returns the columns of the table, as far as they can be told."""
    mapping: MappingOfTable = lambda: None
    """Returns how data files hold the columns of the table."""
    passed_over: PassedOver = nothing_decided
    """Returns which retractions had no effect, of those that are committed."""
    retention: Callable[[], timedelta] = lambda: timedelta.max
    """Returns how long the table keeps files that its log does not name."""
    renew: Renew = lambda _store, _files: Renewed()
    """Puts what files hold now in the place of their rows (`on_change: replace`)."""
    compact: Compact = lambda _store, _at_end: None
    """Puts small data files together between batches (`sink.compact`)."""
