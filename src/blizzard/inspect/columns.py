"""The columns of a pipeline: their origins, and values without a column. Read-only.

No data file is read: entries record the columns and count the values without one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from blizzard.inspect.guess.fields import allowed_name
from blizzard.inspect.written import field_line
from blizzard.journal.books import Books
from blizzard.model.bad_lines import steps
from blizzard.model.columns import with_found
from blizzard.model.seen import is_column_name
from blizzard.model.settings import PipelineSettings
from lakebed.columns.column_mapping import format_path, types_within
from lakebed.columns.schema import Field, Reading, Schema, walk
from lakebed.documents.entry import Entry
from lakebed.partition import table_schema
from lakebed.types import RESCUED, RESERVED, FieldType


class ColumnOrigin(StrEnum):
    """Why a table has a column."""

    DECLARED = "declared"
    HINT = "hint"
    """Declared as a hint, while other columns are found in the data."""
    FOUND = "found"
    PARTITION = "partition"
    """Given by the paths of source files."""
    RESCUED = "rescued"
    """Keeps values that no other column takes."""
    PROVENANCE = "provenance"
    """Records where a row came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReport:
    """A column, or a field inside one."""

    path: str
    type: str
    origin: ColumnOrigin
    entry: int | None = None
    """The first entry with it, if it was found in the data."""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmapped:
    """Values at one path without a column."""

    path: str
    values: int
    dropped: bool
    """Whether they were dropped; otherwise they are in `_rescued`."""
    not_a: str | None
    """The type of the column that they do not fit; None without such a column."""
    line: str | None
    """The column to declare for later values; None if impossible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentColumns:
    """The columns that the next batch of a pipeline starts with."""

    schema: Schema
    """Includes partition columns and, if the table has it, `_rescued`."""
    last: Entry | None
    columns: tuple[ColumnReport, ...]
    unmapped: tuple[Unmapped, ...]


def present_columns(
    settings: PipelineSettings, entries: Iterable[Entry], books: Books
) -> PresentColumns:
    """Return the columns of a pipeline, from its entries and books. Pure."""
    first: dict[str, Entry] = {}
    last, rescued = None, False
    for entry in entries:
        last = entry
        rescued = rescued or entry.rescues
        for path, _field in walk(entry.columns.fields if entry.columns is not None else ()):
            first.setdefault(path, entry)
    own = with_found(settings.schema, last.columns if last is not None else None)
    schema = table_schema(own, settings.sink.template)
    if rescued:
        schema = schema.with_rescued()
    schema = schema.with_provenance(settings.provenance)
    declared = {path for path, _field in walk(settings.schema.fields)}
    taken = {one.name.casefold() for one in (*own.fields, *schema.fields)} | RESERVED
    return PresentColumns(
        schema=schema,
        last=last,
        columns=tuple(_columns(settings, schema, declared, first)),
        unmapped=(
            *_unmapped(own, taken, books.placed("rescued"), dropped=False),
            *_unmapped(own, taken, books.placed("dropped"), dropped=True),
        ),
    )


def _columns(
    settings: PipelineSettings,
    schema: Schema,
    declared: set[str],
    first: Mapping[str, Entry],
) -> Iterator[ColumnReport]:
    keys = settings.sink.template.keys if settings.sink.template else ()
    own = ColumnOrigin.HINT if settings.infer else ColumnOrigin.DECLARED
    origins = {
        **{which.column: ColumnOrigin.PROVENANCE for which in settings.provenance},
        RESCUED: ColumnOrigin.RESCUED,
        **dict.fromkeys(keys, ColumnOrigin.PARTITION),
        **dict.fromkeys(declared, own),
    }
    for path, one in walk(schema.fields):
        if path.endswith("[]"):
            continue  # It is a part of the type of the list.
        origin = origins.get(path, ColumnOrigin.FOUND)
        entry = first.get(path) if origin is ColumnOrigin.FOUND else None
        yield ColumnReport(
            path=path,
            type=_outline(one),
            origin=origin,
            entry=None if entry is None else entry.sequence,
            at=None if entry is None else datetime.fromisoformat(entry.created),
        )


def _outline(one: Field) -> str:
    """Return a type without its inner fields, which have their own lines."""
    if one.type is FieldType.STRUCT:
        return "struct"
    if one.items is not None:
        inner = _outline(one.items)
        return f"list<{inner}>" if one.type is FieldType.LIST else f"map<string, {inner}>"
    return one.shown


def _unmapped(
    schema: Schema, taken: set[str], counts: Counter[str], *, dropped: bool
) -> Iterator[Unmapped]:
    known = dict(walk(schema.fields))
    for path, values in counts.most_common():
        column = known.get(path)
        yield Unmapped(
            path=path,
            values=values,
            dropped=dropped,
            not_a=None if column is None else column.shown,
            line=_declaration(path, column, taken),
        )


def _declaration(path: str, column: Field | None, taken: set[str]) -> str | None:
    """Return the line that declares a JSON text column for a path, under a name not taken yet.

    A column of the same path stays; the second one also takes values that do not fit it.
    """
    members = tuple(step for step in steps(path) if isinstance(step, str))
    if len(members) < len(steps(path)) or not all(members):
        return None
    name, reading = members[0], Reading()
    is_free = is_column_name(name) and name.casefold() not in taken
    if column is not None or len(members) > 1 or not is_free:
        name, reading = f"{allowed_name('_'.join(members))}_json", Reading(path=members)
    if name.casefold() in taken:
        return None
    taken.add(name.casefold())
    return field_line(Field(name=name, type=FieldType.JSON, reading=reading))


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDifference:
    """A column whose Delta types differ between configuration, journal and table."""

    path: str
    present: str | None
    """Its type in the next files."""
    journal: str | None
    """Its type in the last entry."""
    table: str | None


def differences(
    present: Mapping[str, Any], journal: Mapping[str, Any] | None, table: Mapping[str, Any] | None
) -> tuple[ColumnDifference, ...]:
    """Return the columns that differ between Delta schemas. Pure.

    A missing journal or table does not differ.
    """
    ours = _delta_types(present)
    logged = ours if journal is None else _delta_types(journal)
    tabled = ours if table is None else _delta_types(table)
    return tuple(
        ColumnDifference(
            path=path,
            present=ours.get(path),
            journal=None if journal is None else logged.get(path),
            table=None if table is None else tabled.get(path),
        )
        for path in dict.fromkeys((*ours, *logged, *tabled))
        if len({ours.get(path), logged.get(path), tabled.get(path)}) > 1
    )


def _delta_types(struct: Mapping[str, Any]) -> dict[str, str]:
    """Return the types of a schema by path, without the fields inside, which have their own."""
    return {
        format_path(path): kind if isinstance(kind, str) else kind["type"]
        for path, kind, _metadata in types_within(struct)
        if path
    }
