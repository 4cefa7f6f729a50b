"""What a log still knows of entries whose transactions it does not have.

A log that was rolled back has lost transactions and files alike. One whose transactions somebody
has dropped (another engine does, where `delta.setTransactionRetentionDuration` was set for a while)
still has the files: to commit such an entry again doubles its rows, at the latest when OPTIMIZE has
rewritten them. Entries are committed in order. So with the last one that the log knows a file of it
has had all before.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from lakebed.deltalog.actions import moment
from lakebed.deltalog.files import LogContents, read_back, read_log
from lakebed.deltalog.removals import LONG_AGO
from lakebed.deltalog.snapshot import Snapshot
from lakebed.documents.data_file import FinishedFile
from lakebed.layout import file_name, held_transaction
from lakebed.listing.watermark import named_at
from lakebed.storage.store import Reader
from penguin.model.backlog import ReadyEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitEvidence:
    """What a log still shows of entries whose transactions it has lost."""

    up_to: int | None = None
    """The last entry of which the log names a file; None where it names none."""
    doubtful: tuple[int, int] | None = None
    """The first and the last entry after that of which the log may have forgotten the files."""


def evidence_of(
    entries: Iterable[ReadyEntry],
    knows: Callable[[FinishedFile], bool],
    would_know: Callable[[FinishedFile], bool],
) -> CommitEvidence:
    """Return which entries were committed, by the files that a log knows, or would know. Pure."""
    up_to: int | None = None
    doubtful: list[int] = []
    for ready in entries:
        sequence = ready.entry.sequence
        if any(map(knows, ready.entry.files)):
            up_to, doubtful = sequence, []
        elif not all(map(would_know, ready.entry.files)):
            doubtful.append(sequence)
    return CommitEvidence(
        up_to=up_to, doubtful=(min(doubtful), max(doubtful)) if doubtful else None
    )


def find_evidence(
    store: Reader, table: Snapshot, entries: tuple[ReadyEntry, ...]
) -> CommitEvidence:
    """Compare entries with all that a log can still tell of their files."""
    known = read_log(store, table)
    named = [written_at(file) for ready in entries for file in ready.entry.files]
    if named:
        read_back(store, known, min(named))
    return evidence_of(
        entries,
        lambda file: _knows(known, file),
        lambda file: known.told_since is None or written_at(file) >= known.told_since,
    )


def written_at(file: FinishedFile) -> datetime:
    """Return when a file was begun, by the clock of the program that wrote it."""
    named = named_at(file.filename)
    at = file.modification_time if named is None else named
    return moment(at) or LONG_AGO


def _knows(known: LogContents, file: FinishedFile) -> bool:
    return (
        file.filename in known.paths
        or known.transaction(held_transaction(file_name(file.filename))) is not None
    )
