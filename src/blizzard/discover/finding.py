"""What one look at a source has found."""

from collections.abc import Iterator
from dataclasses import dataclass

from blizzard.discover.skip_reason import UNREAD, Reason, SkippedFile, SkipSummary
from blizzard.model.files import SourceFile
from lakebed.documents.source_record import SourceRecord
from lakebed.storage.store import ObjectFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One look at a source: what to take now, and what not, counted by the reason."""

    take: tuple[SourceFile, ...] = ()
    misplaced: tuple[SourceRecord, ...] = ()
    """Failed before they are read: their path does not give their partition, or a part of them is
    in the table and the rest cannot be read."""
    not_taken: tuple[SkipSummary, ...] = ()
    """By reason, how many files are not taken, and a few of them."""
    passed: tuple[SkippedFile, ...] = ()
    """The files that are not taken and not done, one by one; of many, the first."""
    left_over: int = 0
    """New files beyond the limits of one batch; where a look stopped at the first of them, 1."""
    noticed: frozenset[str] = frozenset()
    """Keys of those that were found because a message named them."""
    again: frozenset[str] = frozenset()
    """Keys of those that were ingested before, as other objects."""
    changed: tuple[ObjectFacts, ...] = ()
    """Some of those that were ingested before and are other objects now."""
    gone: tuple[SourceRecord, ...] = ()
    """Files that wait for another try, or for their rest, and that a sweep has not found."""
    gone_left_over: int = 0
    """Such files beyond the limits of one batch."""
    amiss: tuple[SkipSummary, ...] = ()
    """Names that cannot be read, as the last sweep counted them; a person should see to them."""
    swept: bool = True
    """Whether the whole source was listed."""

    @property
    def has_work(self) -> bool:
        """Whether there is something to do for a batch."""
        return bool(self.take or self.misplaced or self.gone)

    @property
    def work(self) -> Iterator[str]:
        """Yield the keys of what there is to do."""
        yield from (file.key for file in self.take)
        yield from (record.key for record in (*self.misplaced, *self.gone))

    @property
    def has_more(self) -> bool:
        """Whether there is more than one batch may hold: the next look finds it."""
        return self.left_over > 0 or self.gone_left_over > 0

    @property
    def unread(self) -> tuple[SkipSummary, ...]:
        """Return the names that may hold data and are never read, by reason."""
        return tuple(one for one in self.not_taken if one.reason in UNREAD)

    def count(self, reason: Reason) -> int:
        """Count the files that are not taken for a reason."""
        return sum(one.files for one in self.not_taken if one.reason is reason)
