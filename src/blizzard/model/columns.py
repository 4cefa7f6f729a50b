"""The columns of a pipeline: declared ones, and those inferred from the data. Pure.

Inference never changes declared columns: inferred columns follow the declared ones, inferred fields
the declared fields of their struct.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from blizzard.model.bad_lines import ANY, steps
from blizzard.model.seen import Seen, column_of, is_column_name
from lakebed.columns.column_mapping import FieldPath, field_id, paths_by_id
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.types import DEEPEST_COLUMN, FieldType, OnMismatch

MOST_COLUMNS = 2000
"""The most columns and nested fields; values of further ones stay in `_rescued`."""
_FLOATS = frozenset({FieldType.FLOAT32, FieldType.FLOAT64})


def with_found(declared: Schema, found: Schema | None) -> Schema:
    """Return the declared columns, followed by those that earlier batches inferred."""
    return declared if found is None else Schema(_united(declared.fields, found.fields))


def grown(schema: Schema, seen: Mapping[str, Seen]) -> Schema:
    """Extend a schema by a column, or a field of a struct, for each observed path.

    A path gets none if its values have no known type yet, if Delta does not allow its name, or if
    an existing column has the same name except for case, or the same id. Objects with too many
    fields, or nested too deep, become a column of JSON text.
    """
    growth = _Growth(MOST_COLUMNS - _count(schema.fields), dict(paths_by_id(schema.fields)))
    found = [(steps(path), types) for path, types in seen.items()]
    return Schema(growth.fields(schema.fields, found, ()))


def adopted(
    schema: Schema, table: Schema | None, *, declared: Schema, known: Schema | None = None
) -> Schema:
    """Return the inferred columns with the table's types, which another pipeline may have added.

    Declared columns stay as declared. An inferred column that differs from a table column only in
    case is dropped. Values that do not fit the table's column go to `_rescued`. A string column
    counts as JSON text only if that is `known` from an earlier batch.
    """
    if table is None:
        return schema
    before = () if known is None else known.fields
    return Schema(_adopted(schema.fields, table.fields, declared.fields, before))


def kept_exact(schema: Schema, declared: Schema, on_mismatch: OnMismatch) -> Schema:
    """Return the columns with `exact` set on floats that must not round integers.

    Inferred float columns never round. In declared ones, an integer that a float cannot hold goes
    to `_rescued` if that is the policy, and is rounded if it would otherwise fail the file.
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
        _retyped(one, there[one.name.casefold()], said.get(one.name), before.get(one.name))
        if one.name.casefold() in there
        else one
        for one in ours
        if one.name in said or there.get(one.name.casefold(), one).name == one.name
    )


def _retyped(ours: Field, theirs: Field, said: Field | None, before: Field | None) -> Field:
    """Return a field with the table's type; declared and new fields inside it stay."""
    if ours.type is theirs.type is FieldType.LIST and ours.items and theirs.items:
        inner = _retyped(ours.items, theirs.items, said and said.items, before and before.items)
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
    """Return the reading of a column with the table's type.

    The path and the null strings do not depend on the type; the rest is kept only if the type is
    the same.
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
    """Return a declared field with the inferred fields inside it."""
    if ours.type is not theirs.type:
        return ours
    if ours.items is not None and theirs.items is not None:
        return replace(ours, items=_with_inner(ours.items, theirs.items))
    return replace(ours, fields=_united(ours.fields, theirs.fields)) if ours.fields else ours


_Found = Sequence[tuple[Sequence[str | int], Seen]]
"""Split paths below a field, with the observed types."""


@dataclass(slots=True)
class _Growth:
    """Adds new fields to a schema in linear time."""

    room: int
    """How many more columns and fields may be added."""
    ids: dict[int, FieldPath]
    """The paths of all fields, by their ids."""

    def fields(self, fields: Sequence[Field], found: _Found, above: FieldPath) -> tuple[Field, ...]:
        """Return the fields of an object, extended by the observed paths."""
        # A field may be named differently from the member that it reads.
        places = {one.path: at for at, one in reversed(list(enumerate(fields)))}
        taken = {one.name.casefold() for one in fields}
        grown = list(fields)
        members: dict[str, list[tuple[Sequence[str | int], Seen]]] = {}
        for (name, *rest), seen in found:
            if isinstance(name, str):
                members.setdefault(name, []).append((rest, seen))
        for name, inside in members.items():
            place = places.get((name,))
            if place is not None:
                one = grown[place]
                grown[place] = self._inside(one, inside, (*above, one.name))
            elif is_column_name(name) and name.casefold() not in taken:
                made = self._made(name, inside, (*above, name))
                if made is not None:
                    taken.add(name.casefold())
                    grown.append(made)
        return tuple(grown)

    def _made(self, name: str, found: _Found, path: FieldPath) -> Field | None:
        """Return a new field for paths to it and into it; None without a known type."""
        for number, (rest, seen) in enumerate(found, 1):
            made = None if rest else self._column(name, seen, path)
            if rest and self.ids.get(field_id(path), path) == path:
                struct = self._inside(Field(name=name, type=FieldType.STRUCT), [(rest, seen)], path)
                if struct.fields:
                    made = struct
                    self.room -= 1
                    self.ids[field_id(path)] = path
            if made is not None:
                return self._inside(made, found[number:], path)
        return None

    def _column(self, name: str, seen: Seen, path: FieldPath) -> Field | None:
        column = column_of(name, seen)
        if column is None:
            return None
        if len(path) + column.depth > DEEPEST_COLUMN + 1 or _count((column,)) > self.room:
            column = Field(name=name, type=FieldType.JSON)
        if len(path) > DEEPEST_COLUMN or self.room < 1:
            return None
        new: dict[int, FieldPath] = {}
        for number, at in paths_by_id((column,), path[:-1]):
            if {self.ids.get(number, at), new.setdefault(number, at)} != {at}:
                return None
        self.room -= _count((column,))
        self.ids |= new
        return column

    def _inside(self, field: Field, found: _Found, path: FieldPath) -> Field:
        """Return a field, extended by the observed paths inside it.

        Structs inside a map cannot grow, since they must have the same fields in every file.
        """
        found = [(rest, seen) for rest, seen in found if rest]
        items = field.items
        if field.type is FieldType.LIST and items is not None:
            elements = [(rest[1:], seen) for rest, seen in found if rest[0] == ANY]
            return replace(field, items=self._inside(items, elements, (*path, items.name)))
        if field.type is FieldType.STRUCT and found:
            return replace(field, fields=self.fields(field.fields, found, path))
        return field


def _count(fields: Sequence[Field]) -> int:
    return sum(1 + _count(one.inner) for one in fields)
