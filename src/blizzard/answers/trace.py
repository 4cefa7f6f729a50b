"""Trace rows of a table to the source records that they were read from.

The data files are searched in the columns of the condition. A row's position in its file leads to
its source through the runs in the journal, unless provenance columns name it. The record itself is
read again from the source.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from blizzard.answers.entries import FileOrigins, RowOrigins, naming_data_file
from blizzard.answers.evidence import journals_of
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.model.source.file import without_first_lines
from blizzard.model.source.form import codec_of
from blizzard.model.stores import OpenReader, source_location
from blizzard.worker.compression import decompress, recognised
from blizzard.worker.find_rows import Match
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.lines import BYTE_ORDER_MARK
from blizzard.worker.output.origins import record_numbers
from lakebed import layout
from lakebed.columns.schema import Schema
from lakebed.documents.records import Run, SourceRecord
from lakebed.errors import LakeError, ObjectMissing, Whose
from lakebed.journal import JournalReader
from lakebed.locations import below
from lakebed.storage.options import ObjectFacts
from lakebed.storage.parquet_tail import mark_of
from lakebed.storage.store import Reader
from lakebed.types import Codec, Compression, OnMismatch, Provenance, UnknownFields

FILE, LINE = Provenance.FILE.column, Provenance.LINE.column


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrigin:
    """The record that a row was read from, as far as known without reading its source."""

    uri: str
    """The source file."""
    line: int | None = None
    """The number of the record."""
    run: Run | None = None
    """The run of records that contains it; None if the row names its record."""
    offset: int = 0
    """The index of the row within the run."""


def named_by(store: Reader, names: Collection[str]) -> dict[str, FileOrigins]:
    """Return data files with the origins of their rows, from all journals of the table.

    A file's footer names its journal and its name has a time; if these do not lead to its entry,
    every entry is read.
    """
    journals = cache(lambda mark: tuple(journals_of(store, mark)))
    origins = RowOrigins()
    for name in sorted(name for name in names if layout.file_id(name) is not None):
        _learn(store, name, origins, journals)
    found = {name: origins.find(name) for name in names}
    return {name: named for name, named in found.items() if named is not None}


def _learn(
    store: Reader,
    path: str,
    origins: RowOrigins,
    journals: Callable[[tuple[str, str] | None], Iterable[tuple[str, JournalReader, int]]],
) -> None:
    """Add the entries that give the origins of a data file's rows."""
    mark: tuple[str, str] | None = None
    while (path := origins.first(path)) not in origins.written:
        facts = store.head(path)
        # A replaced file may be deleted by now; it belonged to the same journal.
        mark = mark if facts is None else mark_of(store, facts)
        name = layout.file_name(path)
        entries = (naming_data_file(journal, name, last) for _of, journal, last in journals(mark))
        entry = next(filter(None, entries), None)
        if entry is None or not any(file.filename == path for file in entry.data_files):
            return
        origins.take(entry)


def origin_of(match: Match, named: FileOrigins | None) -> RowOrigin | None:
    """Return where a row came from; None if unknown. Pure."""
    by_column = match.values.get(FILE)
    line = match.values.get(LINE)
    if by_column is not None and line is not None:
        return RowOrigin(uri=by_column, line=line)
    if named is None:
        return None if by_column is None else RowOrigin(uri=by_column)
    before = 0
    for run in named.file.runs:
        if match.row < before + run.rows:
            offset = match.row - before
            known = run.first is not None and run.is_exact
            return RowOrigin(
                uri=named.entry.uri_of(named.file.source_files[run.source]),
                line=(run.first or 0) + offset if known else None,
                run=run,
                offset=offset,
            )
        before += run.rows
    if by_column is not None:
        return RowOrigin(uri=by_column)  # A compaction has sorted the rows.
    if len(named.file.source_files) == 1:
        return RowOrigin(uri=named.entry.uri_of(named.file.source_files[0]))
    return None


class RecordNotFound(LakeError, code="record_not_found", whose=Whose.USER):
    """The record that a row was read from cannot be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record of a source file."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A present source file, decoded as its pipeline reads it."""

    source: SourceSettings
    reader: Reader
    facts: ObjectFacts

    def pieces(self) -> Iterator[bytes]:
        facts = self.facts
        chunks = self.reader.stream(facts.path, size=facts.size, etag=facts.etag)
        if self.source.compression is Compression.AUTO:
            chunks, codec = recognised(chunks, codec_of(facts.path))
        else:
            codec = Codec(self.source.compression.value)
        pieces = decompress(chunks, codec)
        if not self.source.form.is_documents:
            return pieces
        # This imports a compiler, which takes a second; only documents need it.
        from blizzard.worker.ndjson.forms.framer import Framer  # noqa: PLC0415

        return Framer(self.source.form.records).lines(pieces)


def record_of(
    settings: PipelineSettings,
    origin: RowOrigin,
    values: Mapping[str, Any],
    known: SourceRecord | None,
    open_source: OpenReader,
    columns: Schema,
) -> Record:
    """Return the record that a row was read from; raise RecordNotFound if it cannot be shown.

    `known` is the journal's record of the source file; a file that changed since is refused.
    """
    opened = _open(settings, origin.uri, known, open_source)
    line = origin.line
    if line is None and origin.run is not None:
        run = origin.run
        first = (
            _lines_before(opened, run.byte) + (run.nth or 1) if run.byte is not None else run.first
        )
        if first is not None:
            line = (
                first + origin.offset
                if run.is_exact
                else _found(opened, first, run, values, columns)
            )
    if line is None:
        raise RecordNotFound(
            "the journal does not say which record it was: a compaction has sorted the rows, or "
            "the row is of a bad line that was replayed beside many others",
            file=origin.uri,
        )
    return Record(line=line, text=_text_of(opened, line))


def _open(
    settings: PipelineSettings, uri: str, known: SourceRecord | None, open_source: OpenReader
) -> _Opened:
    for source in settings.sources:
        path = below(source.uri, uri)
        if path is None:
            continue
        reader = open_source(source_location(source))
        facts = reader.head(path)
        if facts is None:
            raise ObjectMissing("the source file is gone", path=uri)
        if known is not None and (facts.size, facts.etag) != (known.size, known.etag):
            raise RecordNotFound("the source file was changed since it was read", file=uri)
        return _Opened(source=source, reader=reader, facts=facts)
    raise RecordNotFound(
        f"no source of pipeline {settings.name} has this file; use the configuration that has",
        file=uri,
    )


def _lines_before(opened: _Opened, byte: int) -> int:
    """Count the lines of an uncompressed file that start before a byte."""
    left, count = byte - 1, 1
    for piece in opened.pieces():
        count += piece[:left].count(b"\n")
        left -= len(piece)
        if left <= 0:
            break
    return count


def _text_of(opened: _Opened, line: int) -> str:
    """Read one line and stop."""
    found = b""
    for piece in without_first_lines(opened.pieces(), line - 1):
        head, newline, _rest = piece.partition(b"\n")
        found += head
        if newline:
            break
    if line == 1:
        found = found.removeprefix(BYTE_ORDER_MARK)
    return found.rstrip(b"\r").decode(errors="replace")


def _found(
    opened: _Opened, first: int, run: Run, values: Mapping[str, Any], columns: Schema
) -> int:
    """Read the records of a run again, and return the number of the one with these values."""
    decoder = Decoder(columns, unknown=UnknownFields.DROP, on_mismatch=OnMismatch.RESCUE)
    names = [one.name for one in columns.fields if one.name in values]
    wanted = {name: values[name] for name in names}
    numbers: list[int] = []
    before = 0
    pieces = without_first_lines(opened.pieces(), first - 1)
    from_start = first == 1 and not opened.source.form.is_documents
    for decoded in decoder.decode(pieces, from_start=from_start, skip=opened.source.form.skip):
        lines = record_numbers(decoded, first + before)
        rows = decoded.batch.select(names).to_pylist()
        if lines is not None:
            numbers += [
                int(number) for number, row in zip(lines, rows, strict=True) if row == wanted
            ]
        before += decoded.lines
        if before >= run.records:
            break
    numbers = [number for number in numbers if number < first + run.records]
    if len(numbers) != 1:
        several = (
            f"lines {', '.join(map(str, numbers[:5]))} all give this row"
            if numbers
            else ("none of them gives this row as the columns are now")
        )
        raise RecordNotFound(
            f"it is one of the records {first} to {first + run.records - 1}, but {several}",
            file=opened.source.uri,
        )
    return numbers[0]
