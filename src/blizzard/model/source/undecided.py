"""What was known of source files before a retraction, which penguin may pass over. Pure.

Where another program has rewritten the files that a retraction replaces, all of it is done or
nothing: with nothing done, a file is again what it was before. That a part of it is unread, or that
its new content is not in the table, must not be forgotten.
"""

from collections.abc import Callable, Mapping

from blizzard.model.files import IngestedFile, UnfinishedFile
from lakebed.dataclass import dataclass
from lakebed.documents.entry import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """A source file as it was before an entry that takes its rows back, or puts others there."""

    entry: int
    mark: str
    """The name by which the log says that the entry had no effect."""
    unfinished: UnfinishedFile | None = None
    finished: IngestedFile | None = None
    passed_over: bool = False
    """Whether the log says so: the file counts as it was."""


PassedOver = Callable[[str, Mapping[int, str]], Mapping[int, bool]]
"""Asked with the id of a journal and the marks of its entries, it returns of those that are
committed whether they were passed over."""


def before_retraction(
    entry: Entry, unfinished: Mapping[str, UnfinishedFile]
) -> dict[str, Undecided]:
    """Return the files of a retraction that are others by it than they were, as they were."""
    if entry.kind != "retract":
        return {}
    old = {record.key: record for record in entry.sources if record.retracted}
    found: dict[str, Undecided] = {}
    for record in entry.sources:
        known = unfinished.get(record.key)
        was = old.get(record.key)
        if known is not None and known.record.records_read:
            found[record.key] = Undecided(
                entry=entry.sequence, mark=entry.replacement_mark, unfinished=known
            )
        elif was is not None and (was.size, was.etag) != (record.size, record.etag):
            finished = IngestedFile(key=was.key, size=was.size, etag=was.etag)
            found[record.key] = Undecided(
                entry=entry.sequence, mark=entry.replacement_mark, finished=finished
            )
    return found
