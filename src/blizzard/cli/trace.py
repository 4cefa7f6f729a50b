"""`blizzard trace`: show which source file and line rows of the table came from."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

import typer

from blizzard.answers.entries import FileOrigins
from blizzard.answers.trace import RowOrigin, named_by, origin_of
from blizzard.cli.call import PipelineCall
from blizzard.config.columns import columns_from
from blizzard.model.predicate import parse
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import open_reader, sink_location
from blizzard.rewrite.transaction import active_files
from blizzard.worker.find_rows import Match, check_columns, matching_rows
from lakebed.deltalog import tables
from lakebed.deltalog.versions import added_in
from lakebed.documents.records import SourceRecord
from lakebed.errors import ObjectMissing
from lakebed.terminal.call import reading
from lakebed.terminal.console import Verbatim, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """A row of the table with its origin; None for unknown facts."""

    file: str
    row: int
    """Its position in the data file, from 1."""
    version: int | None
    """The version of the table that added the data file."""
    pipeline: str | None
    entry: int | None
    source: str | None
    line: int | None
    records: tuple[int, int] | None = None
    """The first and last candidate record, if the line is unknown."""
    byte: int | None
    """The byte from which `records` are counted, if not from the first."""
    counted: str | None
    """What `line` and `records` count: `lines`, or the `records` of documents."""
    values: Mapping[str, Any]


def trace(
    call: PipelineCall,
    where: Annotated[str, typer.Option()],
    limit: Annotated[int, typer.Option(min=1)] = 20,
) -> None:
    """Show which source file and line rows of the table came from.

    Args:
        where CONDITION: The rows, such as "id = 'x'" or "user.age >= 30 and at is null".
        limit COUNT: The most rows to show.
    """
    with call.one() as settings, reading(settings.name, call.output):
        found = list(islice(traced(settings, where, limit + 1), limit + 1))
    call.show(_text(found, limit), *found[:limit])


def traced(settings: PipelineSettings, where: str, most: int) -> Iterator[TraceRow]:
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
        yield _row(settings, match, named.get(match.file), versions.get(match.file))


def _row(
    settings: PipelineSettings, match: Match, named: FileOrigins | None, version: int | None
) -> TraceRow:
    origin = origin_of(match, named)
    run = None if origin is None else origin.run
    return TraceRow(
        file=match.file,
        row=match.row + 1,
        version=version,
        pipeline=None if named is None else named.entry.pipeline,
        entry=None if named is None else named.entry.sequence,
        source=None if origin is None else origin.uri,
        line=None if origin is None else origin.line,
        records=None if origin is None or origin.line is not None else origin.among,
        byte=None if run is None or run.first is not None else run.byte,
        counted=None if origin is None else _counted(settings, origin, named),
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


def _text(rows: list[TraceRow], limit: int) -> Iterator[str]:
    if not rows:
        yield "no row of the table matches; blizzard dlq list shows the lines in quarantine"
    for row in rows[:limit]:
        version = "" if row.version is None else f", added in version {row.version:,}"
        entry = "" if row.entry is None else f", entry {row.entry:,} of pipeline {row.pipeline}"
        yield f"row {row.row:,} of {row.file}{version}{entry}"
        yield f"  from {_place(row)}"
        yield Verbatim(f"  {json.dumps(plain(row.values), ensure_ascii=False)}")
    if len(rows) > limit:
        yield "... more rows match; --limit shows more of them"


def _place(row: TraceRow) -> str:
    if row.source is None:
        return "an unknown source: the journal does not name this data file"
    word = row.counted or "lines"
    if row.line is not None:
        return f"{row.source}, {word[:-1]} {row.line:,}"
    if row.records is not None:
        first, last = row.records
        since = "" if row.byte is None else f" after byte {row.byte:,}"
        return f"{row.source}, one of the {word} {first:,} to {last:,}{since}"
    return row.source
