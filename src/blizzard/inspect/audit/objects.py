"""The objects behind the files of a table: there, of the right size and, deeply, as many rows.

One listing of the table answers the first two; footers are read on request, rows never.
"""

from collections.abc import Iterable, Iterator

import pyarrow.parquet as pq

from blizzard.inspect.audit.file_books import FileBooks
from blizzard.inspect.audit.findings import Difference, Kind, WaitingDataFile
from lakebed import layout
from lakebed.deltalog.lineage import Active
from lakebed.storage.ahead import ahead
from lakebed.storage.lister import objects
from lakebed.storage.objects import ObjectFacts
from lakebed.storage.parquet_tail import footer_of
from lakebed.storage.store import Reader

MARKS = b"blizzard.pipeline", b"blizzard.journal"


def look_at_objects(store: Reader, files: FileBooks, *, deep: bool) -> Iterator[Difference]:
    """Compare every file that is in the table, or waits for it, with its object.

    One listing says what is there and how large it is. Only what it leaves out is asked for by
    name; `deep` also reads the footer of every file in the table.
    """
    active = files.log.active
    unseen = {path for path in active if not is_elsewhere(path)}
    waiting: dict[str, WaitingDataFile] = {one.file.filename: one for one in files.waiting}
    there = _objects(store, unseen, waiting)
    unread = ((facts, None) for facts in there)
    for facts, footer in ahead(lambda one: footer_of(store, one), there) if deep else unread:
        one = active[facts.path]
        if facts.size != one.size:
            told = f"the log says {one.size} bytes, but the object has {facts.size}"
            yield _differs(Kind.FILE_SIZE_DIFFERS, facts.path, told)
        elif deep:
            yield from compare(facts.path, one, footer, _marks(files, facts.path))
    for path in sorted(unseen):
        yield _differs(
            Kind.FILE_GONE, path, "it is in the table, but the object is gone; see penguin fsck"
        )
    yield from _not_listed(store, waiting.values())


def _objects(
    store: Reader, unseen: set[str], waiting: dict[str, WaitingDataFile]
) -> Iterator[ObjectFacts]:
    """Yield the objects of files in the table; take what is there out of the two collections."""
    for facts in objects(store, odd=lambda _name, _oddity: None, into_links=False):
        name = _final_name(facts.path)
        if name in waiting and waiting[name].file.size == facts.size:
            del waiting[name]
        if facts.path in unseen:
            unseen.discard(facts.path)
            yield facts
    # What a listing leaves out may be there all the same: behind a link, or since then.
    for path, found in ahead(store.head, sorted(unseen)):
        if found is not None:
            unseen.discard(path)
            yield found


def is_elsewhere(path: str) -> bool:
    """Whether a file lies outside of the table's folder, as in a shallow clone."""
    return path.startswith("/") or "://" in path


def compare(
    path: str, one: Active, footer: pq.FileMetaData | None, marks: tuple[str, str] | None
) -> Iterator[Difference]:
    """Compare a footer with what the log says of a file and, of one of ours, its marks. Pure."""
    if footer is None:
        yield _differs(Kind.FILE_DAMAGED, path, "its footer cannot be read")
    else:
        if one.rows is not None and footer.num_rows != one.rows:
            told = f"the log's statistics say {one.rows} rows, but its footer {footer.num_rows}"
            yield _differs(Kind.FILE_ROWS_DIFFER, path, told)
        known = footer.metadata or {}
        found = tuple(known.get(mark, b"none").decode() for mark in MARKS)
        if marks is not None and found != marks:
            told = (
                f"an entry of pipeline {marks[0]}, journal {marks[1]}, names it, but its footer "
                f"says pipeline {found[0]}, journal {found[1]}"
            )
            yield _differs(Kind.FILE_DAMAGED, path, told)


def _marks(files: FileBooks, path: str) -> tuple[str, str] | None:
    number = files.named.get(path)
    return None if number is None else files.journals[number]


def _final_name(path: str) -> str:
    """Return the name that a file has in the table, also of one that waits in an outbox."""
    is_ours = path.startswith(f"{layout.OURS}/")
    return path.partition("/outbox/")[2] if is_ours else path


def _not_listed(store: Reader, files: Iterable[WaitingDataFile]) -> Iterator[Difference]:
    """Look once more for files that wait for penguin: one may have been moved meanwhile."""

    def find(one: WaitingDataFile) -> ObjectFacts | None:
        name = layout.TablePath(one.file.filename)
        outbox = layout.outbox(one.pipeline, name)
        return store.head(name) or store.head(outbox) or store.head(name)

    for one, found in ahead(find, files):
        pipeline, entry, path, size = one.pipeline, one.entry, one.file.filename, one.file.size
        if found is not None and found.size == size:
            continue
        told = (
            "it waits for penguin, but is gone"
            if found is None
            else f"it waits for penguin with {size} bytes, but the object has {found.size}"
        )
        yield Difference(
            kind=Kind.FILE_GONE if found is None else Kind.FILE_SIZE_DIFFERS,
            message=f"{path} of entry {entry}: {told}",
            pipeline=pipeline,
            entry=entry,
            file=path,
        )


def _differs(kind: Kind, path: str, told: str) -> Difference:
    return Difference(kind=kind, message=f"{path}: {told}", file=path)
