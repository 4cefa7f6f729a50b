"""Convert the fields declared in YAML into a schema. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from blizzard.model.time_pattern import EPOCHS, ISO, pattern_of
from lakebed.columns.column_mapping import same_ids
from lakebed.columns.schema import ELEMENT, VALUE, Field, Reading, Schema
from lakebed.config.ddl import fields_from_json
from lakebed.config.faults import ConfigFault
from lakebed.config.models import KeyPath
from lakebed.config.schema import DeclaredField, DeclaredSchema, DeclaredType
from lakebed.types import NESTED_TYPES, FieldType


@dataclass(frozen=True, slots=True)
class _Defaults:
    """The defaults of fields."""

    coerce: bool
    null_values: tuple[str, ...]


def schema_of(declared: DeclaredSchema) -> Schema:
    """Return the declared columns."""
    defaults = _Defaults(declared.coerce, tuple(declared.null_values))
    return Schema(tuple(_field(one, defaults) for one in (*declared.fields_, *declared.hints)))


def columns_from(delta: Mapping[str, Any]) -> Schema | None:
    """Return the columns of a Delta schema that JSON can fill; None if it is unreadable."""
    try:
        return schema_of(DeclaredSchema.model_validate({"fields": fields_from_json(delta)}))
    except ValueError:
        return None


def format_faults(path: KeyPath, fields: Sequence[DeclaredField]) -> Iterator[ConfigFault]:
    """Yield the faults of time formats, at every depth."""
    for index, one in enumerate(fields):
        yield from _format_faults((*path, index), one)


def id_faults(path: KeyPath, schema: Schema) -> Iterator[ConfigFault]:
    """Yield the fields that readers by id cannot distinguish."""
    for alike in same_ids(schema.fields):
        yield ConfigFault(
            path,
            f"{' and '.join(alike)} happen to have the same Parquet field id, a hash of the name; "
            "give one of them another name, and read the field by from:, a key of "
            "schema.fields",
        )


def _format_faults(path: KeyPath, one: DeclaredType) -> Iterator[ConfigFault]:
    for name in one.format:
        if name == ISO or name in EPOCHS:
            continue
        try:
            pattern = pattern_of(name)
        except ValueError as wrong:
            yield ConfigFault((*path, "format"), str(wrong))
            continue
        if pattern.codes & {"%z", "%Z"} and one.type.type is FieldType.TIMESTAMP_NTZ:
            yield ConfigFault(
                (*path, "format"), f"{name} has a time zone, but a timestamp_ntz has none"
            )
    # Without truncate a date takes whole days only, which rarely collide between two units.
    epochs = [name for name in one.format if name in EPOCHS]
    in_order = sorted(epochs, key=[*EPOCHS].index)
    if epochs != in_order and (one.type.type is not FieldType.DATE or one.truncate):
        each = iter(in_order)
        better = ", ".join(next(each) if name in EPOCHS else name for name in one.format)
        yield ConfigFault(
            (*path, "format"),
            f"{epochs[0]} reads every number meant for a coarser unit after it as a time near "
            f"1970; coarser units come first: format: [{better}]",
        )
    yield from format_faults((*path, "fields"), one.fields_)
    if one.items is not None:
        yield from _format_faults((*path, "items"), one.items)
    if one.values is not None:
        yield from _format_faults((*path, "values"), one.values)


def _field(declared: DeclaredField, defaults: _Defaults) -> Field:
    return _typed(declared.name, declared, tuple(declared.from_), defaults)


def _typed(name: str, declared: DeclaredType, path: tuple[str, ...], defaults: _Defaults) -> Field:
    kind = declared.type.type
    items = None
    if declared.items is not None:
        items = _typed(ELEMENT, declared.items, (), defaults)
    elif declared.values is not None:
        items = _typed(VALUE, declared.values, (), defaults)
    reading = Reading(path=() if path == (name,) else path)
    if kind not in NESTED_TYPES:
        nulls = declared.null_values
        reading = replace(
            reading,
            formats=tuple(declared.format),
            coerce=defaults.coerce if declared.coerce is None else declared.coerce,
            null_values=defaults.null_values if nulls is None else tuple(nulls),
            truncate=declared.truncate,
        )
    return Field(
        name=name,
        type=kind,
        nullable=declared.nullable,
        precision=declared.type.precision,
        scale=declared.type.scale,
        fields=tuple(_field(one, defaults) for one in declared.fields_),
        items=items,
        reading=reading,
    )
