"""The columns of a pipeline: those that are declared, and those that were found in the data. Pure.

What is declared is never changed by what is found: a found column comes after the declared ones, a
found field after the declared fields of its struct.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from blizzard.model.json_path import ANY, steps
from blizzard.model.seen import Seen, column_of, is_column_name
from lakebed.columns.field_ids import same_ids
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.types import DEEPEST_COLUMN, FieldType, OnMismatch

MOST_COLUMNS = 2000
"""Columns and fields in all that are found by themselves; values of others stay in `_rescued`."""
_FLOATS = frozenset({FieldType.FLOAT32, FieldType.FLOAT64})


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
            if any(one.depth > DEEPEST_COLUMN for one in wider):
                wider = _with_path(fields, steps(path), Seen(deep=True))
            if any(one.depth > DEEPEST_COLUMN for one in wider):
                continue
            if wider != fields and not any(same_ids(wider)):
                room -= 1
                fields = wider
    return Schema(fields)


def adopted(
    schema: Schema, table: Schema | None, *, declared: Schema, known: Schema | None = None
) -> Schema:
    """Return the found columns as a table has them: it may have got them from another pipeline.

    Declared ones stay as they are declared. A found one that differs from a column of the table
    only in case is left out. Values that do not fit the column of the table are kept in
    `_rescued`. A column of strings is taken for one of JSON texts only where that is `known` from
    an earlier batch: what a string in it means is known to whoever has made it.
    """
    if table is None:
        return schema
    before = () if known is None else known.fields
    return Schema(_adopted(schema.fields, table.fields, declared.fields, before))


def kept_exact(schema: Schema, declared: Schema, on_mismatch: OnMismatch) -> Schema:
    """Return the columns as values are read into them: no integer is rounded that can be kept.

    Nobody has asked for the rounding in a float column that was found in the data. In one that is
    declared, an integer that it cannot hold is kept in `_rescued` where that is the policy, and
    is rounded like any other number where it would fail the file.
    """
    rescues = on_mismatch is OnMismatch.RESCUE
    return Schema(_kept_exact(schema.fields, declared.fields, rescues=rescues))


def _kept_exact(
    fields: Sequence[Field], declared: Sequence[Field], *, rescues: bool
) -> tuple[Field, ...]:
    said = {one.name: one for one in declared}
    return tuple(_exact(one, said.get(one.name), rescues=rescues) for one in fields)


def _exact(field: Field, said: Field | None, *, rescues: bool) -> Field:
    if field.type in _FLOATS and (said is None or (rescues and field.nullable)):
        return replace(field, reading=replace(field.reading, exact=True))
    if not field.is_nested:
        return field
    items = field.items
    return replace(
        field,
        fields=_kept_exact(field.fields, said.fields if said else (), rescues=rescues),
        items=None if items is None else _exact(items, said and said.items, rescues=rescues),
    )


def _adopted(
    ours: Sequence[Field],
    theirs: Sequence[Field],
    declared: Sequence[Field],
    known: Sequence[Field],
) -> tuple[Field, ...]:
    there = {one.name.casefold(): one for one in theirs}
    said = {one.name: one for one in declared}
    before = {one.name: one for one in known}
    return tuple(
        _as_there(one, there[one.name.casefold()], said.get(one.name), before.get(one.name))
        if one.name.casefold() in there
        else one
        for one in ours
        if one.name in said or there.get(one.name.casefold(), one).name == one.name
    )


def _as_there(ours: Field, theirs: Field, said: Field | None, before: Field | None) -> Field:
    """Return a field as the table has it, with what is declared, and what is new, inside of it."""
    if ours.type is theirs.type is FieldType.LIST and ours.items and theirs.items:
        inner = _as_there(ours.items, theirs.items, said and said.items, before and before.items)
        return replace(ours, items=inner)
    if ours.type is theirs.type is FieldType.STRUCT:
        fields = _adopted(
            ours.fields,
            theirs.fields,
            said.fields if said else (),
            before.fields if before else (),
        )
        return replace(ours, fields=fields or theirs.fields)
    if said is not None or (before == ours and ours.delta_type() == theirs.delta_type()):
        return ours
    return replace(theirs, nullable=True, reading=_reading_of(ours, theirs))


def _reading_of(ours: Field, theirs: Field) -> Reading:
    """Return how values are read into a column that has the table's type.

    One that was declared once may have a way of its own. Where its values stand does not depend on
    the type, and neither does which strings mean null.
    """
    reading = ours.reading
    if ours.type is theirs.type:
        return reading
    return Reading(path=reading.path, null_values=() if theirs.is_nested else reading.null_values)


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
    """Return a field with one more inside of it at a path, or as it is.

    Structs inside a map have the same fields in every file, or the table cannot hold them.
    """
    if not path:
        return field
    if field.type is FieldType.LIST and field.items is not None and path[0] == ANY:
        return replace(field, items=_inside(field.items, path[1:], look))
    if field.type is FieldType.STRUCT:
        return replace(field, fields=_with_path(field.fields, path, look))
    return field


def _count(fields: Sequence[Field]) -> int:
    return sum(1 + _count(one.inner) for one in fields)
