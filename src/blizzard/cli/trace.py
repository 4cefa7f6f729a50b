"""`blizzard trace`: show which source file and line rows of the table came from."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Any

import typer

from blizzard.answers.bad_lines import LineMatch, LineSearch
from blizzard.answers.entries import FileOrigins
from blizzard.answers.trace import RowOrigin, named_by, origin_of, record_of
from blizzard.cli.call import PipelineCall
from blizzard.config.columns import columns_from
from blizzard.journal.checkpoint import read_ledger
from blizzard.model.columns import with_found
from blizzard.model.predicate import Predicate, parse
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import open_reader, sink_location
from blizzard.rewrite.transaction import active_files
from blizzard.worker.find_rows import Match, check_columns, matching_rows
from blizzard.worker.quarantine.reader import lines_in
from lakebed.columns.schema import PROVENANCE, Schema
from lakebed.deltalog import tables
from lakebed.deltalog.versions import added_in
from lakebed.documents.records import SourceRecord
from lakebed.errors import LakeError, ObjectMissing
from lakebed.storage.store import Reader
from lakebed.terminal.call import reading
from lakebed.terminal.console import Verbatim, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """A row of the table or a quarantined line, with its origin; None for unknown facts."""

    file: str
    """The data file or the quarantine file."""
    row: int | None = None
    """Its position in the data file, from 1."""
    version: int | None = None
    """The version of the table that added the data file."""
    pipeline: str | None
    entry: int | None
    source: str | None
    line: int | None
    records: tuple[int, int] | None = None
    """The first and last candidate record, if the line is unknown."""
    counted: str | None
    """What `line` and `records` count: `lines`, or the `records` of documents."""
    raw: str | None
    why: str | None
    """Why a requested record cannot be shown."""
    values: Mapping[str, Any] = field(default_factory=dict)
    quarantined: LineMatch | None = None
    """For a quarantined line, whether the condition holds for it."""


def trace(
    call: PipelineCall,
    where: Annotated[str, typer.Option()],
    raw: bool = False,
    limit: Annotated[int, typer.Option(min=1)] = 20,
) -> None:
    """Show which source file and line rows of the table came from.

    Bad lines waiting in quarantine are also searched.

    Args:
        where CONDITION: The rows, such as "id = 'x'" or "user.age >= 30 and at is null".
        raw: Read the source again, and show the record itself.
        limit COUNT: The most rows to show.
    """
    with call.one() as settings, reading(settings.name, call.output):
        found = list(islice(traced(settings, where, limit + 1, raw=raw), limit + 1))
    call.show(_text(found, limit), *found[:limit])


def traced(settings: PipelineSettings, where: str, most: int, *, raw: bool) -> Iterator[TraceRow]:
    """Yield the rows for which a condition holds, each with its origin."""
    predicate = parse(where)
    sink, store = settings.sink, open_reader(sink_location(settings))
    table = tables.newest_snapshot(sink.table_uri, sink.storage_options)
    schema = None if table is None else columns_from(table.facts.schema)
    if table is None or schema is None:
        raise ObjectMissing("there is no table yet: nothing was committed", path=store.uri)
    table.check_writable()
    check_columns(predicate, schema)
    hidden = () if table.row_columns is None else table.row_columns.names
    files = active_files(table)
    found = matching_rows(store, files, predicate, schema, table.mapping, hidden)
    rows = list(islice(found, most))
    names = {match.file for match in rows}
    named = named_by(store, names)
    versions = added_in(store, table.version, names)
    for match in rows:
        of_file = named.get(match.file)
        yield _row(settings, match, of_file, versions.get(match.file), schema, raw=raw)
    yield from quarantined(settings, store, predicate, schema)


def quarantined(
    settings: PipelineSettings, store: Reader, predicate: Predicate, schema: Schema
) -> Iterator[TraceRow]:
    """Yield the waiting bad lines for which a condition holds or may hold."""
    history = read_ledger(store, settings.name)
    known = with_found(settings.schema, history.columns)
    search = LineSearch(predicate, known if known.fields else schema)
    for waiting in history.books.waiting_files():
        for line in lines_in(store, waiting.file):
            found = search.match(line.raw)
            if found is None:
                continue
            root = waiting.source_uris.get(line.source, line.source)
            uri = f"{root.rstrip('/')}/{line.path}"
            yield TraceRow(
                file=waiting.file.filename,
                pipeline=settings.name,
                entry=waiting.entry,
                source=uri,
                line=line.line,
                counted=_counted(settings, RowOrigin(uri=uri), None),
                raw=line.raw.decode(errors="replace"),
                why=line.message,
                quarantined=found,
            )


def _row(
    settings: PipelineSettings,
    match: Match,
    named: FileOrigins | None,
    version: int | None,
    schema: Schema,
    *,
    raw: bool,
) -> TraceRow:
    origin = origin_of(match, named)
    line, text, why = None if origin is None else origin.line, None, None
    if raw and origin is not None:
        try:
            found = record_of(
                settings,
                origin,
                match.values,
                _known(origin, named),
                open_reader,
                _columns(settings, named, schema),
            )
            line, text = found.line, found.text
        except LakeError as error:
            why = error.message
    return TraceRow(
        file=match.file,
        row=match.row + 1,
        version=version,
        pipeline=None if named is None else named.entry.pipeline,
        entry=None if named is None else named.entry.sequence,
        source=None if origin is None else origin.uri,
        line=line,
        records=_among(origin) if line is None else None,
        counted=None if origin is None else _counted(settings, origin, named),
        raw=text,
        why=why,
        values=match.values,
    )


def _known(origin: RowOrigin, named: FileOrigins | None) -> SourceRecord | None:
    """Return the journal's record of the source file, if there is one."""
    if named is None or origin.run is None:
        return None
    key = named.file.source_files[origin.run.source]
    return next((one for one in named.entry.sources if one.key == key), None)


def _counted(settings: PipelineSettings, origin: RowOrigin, named: FileOrigins | None) -> str:
    """Return the unit of record numbers, by the journal or else by the settings."""
    known = _known(origin, named)
    if known is not None:
        return "records" if known.form else "lines"
    inside = [one for one in settings.sources if origin.uri.startswith(one.uri.rstrip("/") + "/")]
    return "records" if any(one.form.is_documents for one in inside) else "lines"


def _columns(settings: PipelineSettings, named: FileOrigins | None, schema: Schema) -> Schema:
    """Return the columns that records give, without those that blizzard adds."""
    template = settings.sink.template
    found = None if named is None else named.entry.columns
    ours = frozenset(one.name for one in PROVENANCE.values())
    known = with_found(settings.schema, found)
    return (known if known.fields else schema).without(
        frozenset(template.keys if template else ()) | ours
    )


def _among(origin: RowOrigin | None) -> tuple[int, int] | None:
    run = None if origin is None else origin.run
    if run is None or run.first is None:
        return None
    return run.first, run.first + run.records - 1


def _text(rows: list[TraceRow], limit: int) -> Iterator[str]:
    if not rows:
        yield "no row of the table matches, and no bad line in quarantine"
    for row in rows[:limit]:
        if row.quarantined is not None:
            yield from _bad_line(row)
            continue
        version = "" if row.version is None else f", added in version {row.version:,}"
        entry = "" if row.entry is None else f", entry {row.entry:,} of pipeline {row.pipeline}"
        yield f"row {row.row or 0:,} of {row.file}{version}{entry}"
        yield f"  from {_place(row)}"
        if row.why is not None:
            yield f"  cannot be shown: {row.why}"
        values = json.dumps(plain(row.values), ensure_ascii=False) if row.raw is None else row.raw
        yield Verbatim(f"  {values}")
    if len(rows) > limit:
        yield "... more rows match; --limit shows more of them"


def _bad_line(row: TraceRow) -> Iterator[str]:
    may = "" if row.quarantined is LineMatch.HOLDS else ", which may match"
    yield f"a bad line in quarantine{may}, entry {row.entry or 0:,} of pipeline {row.pipeline}"
    yield f"  from {_place(row)}"
    yield f"  {row.why}"
    yield Verbatim(f"  {row.raw}")
    yield "  -> blizzard dlq list; blizzard dlq replay reads such lines again"


def _place(row: TraceRow) -> str:
    if row.source is None:
        return "an unknown source: the journal does not name this data file"
    word = row.counted or "lines"
    if row.line is not None:
        return f"{row.source}, {word[:-1]} {row.line:,}"
    if row.records is not None:
        first, last = row.records
        return f"{row.source}, one of the {word} {first:,} to {last:,}; --raw finds out which"
    return row.source
