"""Whether what a batch read is in the files that it wrote; what is not is not journaled. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from blizzard.model.files import SourceFile
from blizzard.model.source.unread import failed, untouched
from blizzard.worker.books import Miscounted
from lakebed.dataclass import dataclass
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.quarantine_file import QuarantineFile
from lakebed.documents.source_record import Failure, SourceRecord, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """Source files, and the files that hold their rows and their bad lines."""

    sources: tuple[SourceRecord, ...]
    files: tuple[FinishedFile, ...]
    quarantine: tuple[QuarantineFile, ...]


def balanced(books: Books, files: Mapping[str, SourceFile]) -> Books:
    """Return what may be journaled: source files whose books do not balance have failed.

    Source files that share data files fail together, and those data files are left out. `files`
    are the source files as they were before the batch, by their keys.
    """
    wrong = dict(_differences(books))
    if not wrong:
        return books

    def of(record: SourceRecord) -> SourceRecord:
        message = wrong.get(record.unit) if record.failure is None else None
        if message is None:
            return record
        failure = Failure(stage=Stage.PARSE, code=Miscounted.code, message=message)
        return failed(untouched(files[record.key]), failure)

    return replace(
        books,
        sources=tuple(map(of, books.sources)),
        files=tuple(file for file in books.files if file.unit not in wrong),
        quarantine=tuple(file for file in books.quarantine if file.unit not in wrong),
    )


def _differences(books: Books) -> Iterator[tuple[str | None, str]]:
    """Yield the groups whose books do not balance, and how."""
    read, found = Counter[str | None](), Counter[str | None]()
    written, aside = _counted(books.files), _counted(books.quarantine)
    for one in books.sources:
        if one.failure is not None:
            continue
        read[one.unit] += one.rows
        found[one.unit] += one.quarantined
        if one.lines != one.rows + one.blank + one.filtered + one.quarantined:
            what = f"{one.rows} rows, {one.blank} blank, {one.filtered} filtered"
            message = f"{one.lines} lines were read, but there are {what} and "
            yield one.unit, f"{message}{one.quarantined} bad lines"
    for unit, rows in read.items():
        if written[unit] != rows:
            yield unit, f"{rows} rows were read, but {written[unit]} were written"
        elif aside[unit] != found[unit]:
            yield unit, f"{found[unit]} bad lines were found, but {aside[unit]} were set aside"


def _counted(files: Iterable[FinishedFile | QuarantineFile]) -> Counter[str | None]:
    counted = Counter[str | None]()
    for file in files:
        counted[file.unit] += file.record_count
    return counted
