"""Which quarantine files of a journal have lines that wait: named, and not resolved since."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakebed.documents.entry import Entry
from lakebed.documents.quarantine_file import QuarantineFile


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFile:
    """A quarantine file with lines that wait, and the entry that set them aside."""

    file: QuarantineFile
    entry: int
    source_uris: Mapping[str, str] = field(default_factory=dict)
    """Where the sources were then, by their names."""


def with_entry(waiting: dict[str, WaitingFile], entry: Entry) -> None:
    """Learn what an entry says of quarantine files."""
    for file in entry.quarantine:
        waiting[file.filename] = WaitingFile(
            file=file, entry=entry.sequence, source_uris=entry.source_uris
        )
    for one in entry.resolved:
        before = waiting.pop(one.old, None)
        if one.left is not None and before is not None:
            waiting[one.left.filename] = WaitingFile(
                file=one.left, entry=before.entry, source_uris=before.source_uris
            )


def waiting_files(entries: Iterable[Entry]) -> tuple[WaitingFile, ...]:
    """Return the quarantine files with lines that wait, the oldest first."""
    waiting: dict[str, WaitingFile] = {}
    for entry in entries:
        with_entry(waiting, entry)
    return tuple(waiting.values())
