"""What `blizzard schema` prints: tables that fit 80 columns, YAML, DDL, or JSON."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import typer

from blizzard.inspect.columns import Column, Difference, Homeless, Origin, PresentColumns
from blizzard.inspect.guess.fields import GuessedColumn, fields_of
from blizzard.inspect.written import ddl_of, field_lines
from blizzard.model.settings import PipelineSettings
from lakebed.columns.schema import Field, walk
from lakebed.terminal.arguments import Output
from lakebed.terminal.console import (
    add,
    columns,
    console,
    plural,
    print_lines,
    print_table,
    say,
    say_as_it_is,
    say_more,
    second,
)
from lakebed.types import OnMismatch, UnknownFields

FEW = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRow:
    """A column, or a field inside one, and where it came from."""

    column: str
    type: str
    origin: Origin
    entry: int | None
    at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRow:
    """The columns of a pipeline."""

    pipeline: str
    table_uri: str
    last_entry: int | None
    unknown_fields: UnknownFields
    on_mismatch: OnMismatch
    columns: tuple[ColumnRow, ...]
    without_column: tuple[Homeless, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRow:
    """A column, or a field inside one, that files would give a table."""

    column: str
    type: str | None
    """None where only nulls, or empty arrays or objects, were seen."""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """How the columns of a pipeline differ from those of its journal and its table."""

    pipeline: str
    table_uri: str
    differences: tuple[Difference, ...]
    held: tuple[str, ...]
    """Why penguin would hold the next files."""


def row(settings: PipelineSettings, found: PresentColumns) -> SchemaRow:
    """Return the columns of a pipeline as JSON has them."""
    return SchemaRow(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        last_entry=None if found.last is None else found.last.sequence,
        unknown_fields=settings.unknown_fields,
        on_mismatch=settings.on_mismatch,
        columns=tuple(
            ColumnRow(column=one.path, type=one.type, origin=one.origin, entry=one.entry, at=one.at)
            for one in found.columns
        ),
        without_column=found.homeless,
    )


def columns_of(settings: PipelineSettings, found: PresentColumns) -> None:
    """Print the columns of a pipeline, and the values that are in none."""
    to = console()
    entry = "no entry yet" if found.last is None else f"entry {found.last.sequence}"
    say(
        to,
        f"pipeline {settings.name} ({entry}): unknown_fields {settings.unknown_fields}, "
        f"on_mismatch {settings.on_mismatch}",
    )
    if not found.columns:
        say(to, "  the columns are found in the first batch; blizzard schema infer looks ahead")
        return
    table = columns("column", "type", "where from", wide=("column", "type", "where from"))
    for one in found.columns:
        add(table, one.path, one.type, _origin(one))
    print_table(to, table)
    for dropped in (False, True):
        some = [one for one in found.homeless if one.dropped is dropped]
        if some:
            _show_homeless(settings, some, "left out" if dropped else "in _rescued")


def found(some: Sequence[GuessedColumn], *, ddl: bool, output: Output) -> None:
    """Print columns that were found in files."""
    fields = fields_of(some)
    if output is Output.JSON:
        print_lines(_found_rows(some))
    elif ddl:
        typer.echo(ddl_of(fields))
        if any(_says_more(field) for _path, field in walk(fields)):
            sys.stderr.write(
                "warning: DDL cannot say how values are written (format, from, coerce, "
                "null_values); fields can\n"
            )
    else:
        typer.echo("fields:")
        for line in field_lines(some, 2):
            typer.echo(line)


def differences(row: DiffRow) -> None:
    """Print how columns differ, and what follows from it."""
    to = console()
    if not row.differences and not row.held:
        say(to, f"pipeline {row.pipeline}: no difference")
        return
    count = plural(len(row.differences), "difference")
    say(to, f"pipeline {row.pipeline}: {count} from {row.table_uri}")
    if row.differences:
        names = ("column", "next files", "journal", "table")
        table = columns(*names, wide=names)
        for one in row.differences:
            add(table, one.path, one.present, one.journal, one.table)
        print_table(to, table)
    if not row.held:
        say(to, "penguin would commit the next files")
        return
    say(to, "penguin would hold the next files:")
    for reason in row.held:
        say(to, f"  {reason}")
    say(to, "declare the fields as the table has them, change tables.*.schema_evolution,")
    say(to, "or write to another table; penguin held shows what is held already")


def _origin(one: Column) -> str:
    match one.origin:
        case Origin.FOUND if one.entry is not None:
            return f"entry {one.entry}, {second(one.at)}"
        case Origin.PARTITION:
            return "partition, from the path"
        case Origin.RESCUED:
            return "values without a column"
        case Origin.PROVENANCE:
            return "provenance, where the row came from"
    return one.origin.value


def _show_homeless(settings: PipelineSettings, some: Sequence[Homeless], title: str) -> None:
    to = console()
    key = "hints" if settings.infer else "fields"
    say(to, "")
    table = columns(title, "values", "why", numbers=("values",), wide=(title, "why"))
    for one in some[:FEW]:
        add(table, one.path, one.values, "no column" if one.not_a is None else f"no {one.not_a}")
    print_table(to, table)
    say_more(to, len(some) - FEW)
    inside = {one.inside: None for one in some if one.line is not None}
    for above in inside:
        where = f"schema.{key}" if above is None else f"the fields of {above}"
        say(to, f"for a column, add to {where}:")
        for one in some[:FEW]:
            if one.line is not None and one.inside == above:
                say_as_it_is(to, f"  - {one.line}")


def _found_rows(some: Sequence[GuessedColumn], above: str = "") -> list[FoundRow]:
    rows = []
    for one in some:
        path = f"{above}{one.name}"
        if one.name in ("element", "value") and above.endswith("[]."):
            path = above[:-1]
        kind = None if one.field is None else one.field.shown
        rows.append(FoundRow(column=path, type=kind, remarks=one.remarks))
        is_struct = one.field is not None and bool(one.field.fields)
        rows += _found_rows(one.inner, f"{path}." if is_struct else f"{path}[].")
    return rows


def _says_more(field: Field) -> bool:
    reading = field.reading
    return bool(reading.path or reading.formats or reading.coerce or reading.null_values)
