"""The objects behind the files of a table: there, of the right size, with as many rows.

The table is listed once, and of each file the footer is read. No row is.
"""

from collections.abc import Iterator

import pyarrow.parquet as pq

from blizzard.inspect.audit.file_books import FileBooks
from blizzard.inspect.audit.findings import Difference, Kind
from blizzard.inspect.audit.log_books import Active
from lakebed import layout
from lakebed.storage.ahead import ahead
from lakebed.storage.objects import ObjectFacts
from lakebed.storage.parquet_tail import footer_of
from lakebed.storage.store import Reader
from lakebed.storage.tolerant import objects

MARKS = b"blizzard.pipeline", b"blizzard.journal"


def look_at_objects(store: Reader, files: FileBooks) -> Iterator[Difference]:
    """Compare every file that is in the table, or waits for it, with its object."""
    active = files.log.active
    unseen = {path for path in active if not path.startswith("/") and "://" not in path}

    def wanted() -> Iterator[ObjectFacts]:
        for facts in objects(store, odd=lambda _name, _oddity: None, into_links=False):
            if facts.path in unseen:
                unseen.discard(facts.path)
                yield facts
        # What a listing leaves out may be there all the same: behind a link, or since then.
        for path, found in ahead(store.head, sorted(unseen)):
            if found is not None:
                unseen.discard(path)
                yield found

    for facts, footer in ahead(lambda found: footer_of(store, found), wanted()):
        yield from compare(facts, active[facts.path], footer, _marks(files, facts.path))
    for path in sorted(unseen):
        yield _differs(Kind.FILE_GONE, path, "it is in the table, but the object is gone")
    yield from _waiting(store, files)


def compare(
    facts: ObjectFacts,
    one: Active,
    footer: pq.FileMetaData | None,
    marks: tuple[str, str] | None,
) -> Iterator[Difference]:
    """Compare an object with what the log says of it and, of a file of ours, its marks. Pure."""
    path = facts.path
    if facts.size != one.size:
        told = f"the log says {one.size} bytes, but the object has {facts.size}"
        yield _differs(Kind.FILE_SIZE_DIFFERS, path, told)
    elif footer is None:
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


def _waiting(store: Reader, files: FileBooks) -> Iterator[Difference]:
    """Compare the files that wait for penguin, wherever their hand-off keeps them."""

    def find(at: tuple[str, int, object, int]) -> ObjectFacts | None:
        pipeline, _entry, path, _size = at
        name = layout.TablePath(str(path))
        # It may be moved between the two looks.
        return store.head(name) or store.head(layout.outbox(pipeline, name)) or store.head(name)

    asked = [(p, entry, file.filename, file.size) for p, entry, file in files.waiting]
    for (pipeline, entry, path, size), found in ahead(find, asked):
        if found is not None and found.size == size:
            continue
        is_gone = found is None
        told = (
            "it waits for penguin, but is gone"
            if found is None
            else f"it waits for penguin with {size} bytes, but the object has {found.size}"
        )
        yield Difference(
            kind=Kind.FILE_GONE if is_gone else Kind.FILE_SIZE_DIFFERS,
            message=f"{path} of entry {entry}: {told}",
            pipeline=pipeline,
            entry=entry,
            file=path,
        )


def _differs(kind: Kind, path: str, told: str) -> Difference:
    return Difference(kind=kind, message=f"{path}: {told}", file=path)
