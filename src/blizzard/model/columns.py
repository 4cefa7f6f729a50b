"""The columns of a pipeline: those that are declared, and those that were found in the data. Pure.

What is declared is never changed by what is found: a found column comes after the declared ones, a
found field after the declared fields of its struct.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from blizzard.model.json_path import ANY, steps
from blizzard.model.seen import Seen, column_of, is_column_name
from lakebed.field_ids import same_ids
from lakebed.schema import Field, Schema
from lakebed.types import FieldType

MOST_COLUMNS = 2000
"""Columns and fields in all that are found by themselves; values of others stay in `_rescued`."""


def with_found(declared: Schema, found: Schema | None) -> Schema:
    """Return the declared columns and, behind them, those that earlier batches have found."""
    return declared if found is None else Schema(_united(declared.fields, found.fields))


def grown(schema: Schema, seen: Mapping[str, Seen]) -> Schema:
    """Return a schema with a column, or a field of a struct, for each path that values were at.

    A path gets none if no type can be told of its values yet, if no column of Delta can have its
    name, or if there is one already that Delta does not tell from it, or that has its id.
    """
    fields = schema.fields
    room = MOST_COLUMNS - _count(fields)
    for path, look in seen.items():
        if room > 0:
            wider = _with_path(fields, steps(path), look)
            if wider != fields and not any(same_ids(wider)):
                room -= 1
                fields = wider
    return Schema(fields)


def adopted(wider: Schema, before: Schema, table: Schema | None) -> Schema:
    """Return new columns as a table has them already: it may have got them by another pipeline.

    One that differs from a column of the table only in case is left out. Values that do not fit
    the column of the table are kept in `_rescued`. A column of strings is never taken for one of
    JSON texts: what a string in it means is known to whoever has made it.
    """
    if table is None:
        return wider
    old = {one.name for one in before.fields}
    theirs = {one.name.casefold(): one for one in table.fields}
    fields = []
    for one in wider.fields:
        other = theirs.get(one.name.casefold())
        if one.name in old or other is None:
            fields.append(one)
        elif other.name == one.name:
            fields.append(replace(other, nullable=True))
    return Schema(tuple(fields))


def _united(ours: Sequence[Field], theirs: Sequence[Field]) -> tuple[Field, ...]:
    known = {one.name: one for one in theirs}
    names = {one.name.casefold() for one in ours}
    return (
        *(_with_inner(one, known[one.name]) if one.name in known else one for one in ours),
        *(one for one in theirs if one.name.casefold() not in names),
    )


def _with_inner(ours: Field, theirs: Field) -> Field:
    """Return a declared field with what was found inside of it."""
    if ours.type is not theirs.type:
        return ours
    if ours.items is not None and theirs.items is not None:
        return replace(ours, items=_with_inner(ours.items, theirs.items))
    return replace(ours, fields=_united(ours.fields, theirs.fields)) if ours.fields else ours


def _with_path(
    fields: tuple[Field, ...], path: Sequence[str | int], look: Seen
) -> tuple[Field, ...]:
    """Return the fields of an object with one more at a path, or as they are."""
    name, *rest = path
    if not isinstance(name, str):
        return fields
    # The field that takes this member may have another name than the member.
    place = next((at for at, one in enumerate(fields) if one.path == (name,)), None)
    if place is not None:
        inner = _inside(fields[place], rest, look)
        return (*fields[:place], inner, *fields[place + 1 :])
    taken = {one.name.casefold() for one in fields}
    if not is_column_name(name) or name.casefold() in taken:
        return fields
    if rest:
        made = _inside(Field(name=name, type=FieldType.STRUCT), rest, look)
        return (*fields, made) if made.fields else fields
    column = column_of(name, look)
    return fields if column is None else (*fields, column)


def _inside(field: Field, path: Sequence[str | int], look: Seen) -> Field:
    """Return a field with one more inside of it at a path, or as it is."""
    if not path:
        return field
    if field.type is FieldType.LIST and field.items is not None and path[0] == ANY:
        return replace(field, items=_inside(field.items, path[1:], look))
    if field.type is FieldType.MAP and field.items is not None:
        return replace(field, items=_inside(field.items, path[1:], look))
    if field.type is FieldType.STRUCT:
        return replace(field, fields=_with_path(field.fields, path, look))
    return field


def _count(fields: Sequence[Field]) -> int:
    return sum(1 + _count(one.inner) for one in fields)
