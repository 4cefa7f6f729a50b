"""Files handed off as blizzard would, or only in part."""

from collections.abc import Iterable

from blizzard.handoff.publish import meta_of
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import encode_meta
from lakebed.documents.records import FinishedFile
from lakebed.layout import outbox, pending_meta
from tests.support.tables import TableDirectory


def ring(table: TableDirectory, entry: Entry, files: Iterable[FinishedFile] | None = None) -> None:
    """Write the metas of an entry, or of some of its files."""
    for file in entry.files if files is None else files:
        table.store.create(pending_meta(file.filename), encode_meta(meta_of(file, entry)))


def put_back(
    table: TableDirectory, entry: Entry, files: Iterable[FinishedFile] | None = None
) -> None:
    """Put an entry's files, or some, where they are before they are moved."""
    for file in entry.files if files is None else files:
        table.store.move(file.filename, outbox(entry.pipeline, file.filename), size=file.size)


def move_out(
    table: TableDirectory, entry: Entry, files: Iterable[FinishedFile] | None = None
) -> None:
    """Move files out of the outbox."""
    for file in entry.files if files is None else files:
        table.store.move(outbox(entry.pipeline, file.filename), file.filename, size=file.size)


def metas(table: TableDirectory) -> list[str]:
    """List what waits in the staging area."""
    return sorted(path.name for path in (table.root / "_staging/pending").glob("*"))
