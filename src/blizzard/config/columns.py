"""Declared fields as written in YAML, made into the schema that the stages know. Pure."""

from dataclasses import dataclass

from lakebed.config.schema import DeclaredField, DeclaredItems, DeclaredSchema, DeclaredType
from lakebed.schema import ELEMENT, VALUE, Field, Reading, Schema
from lakebed.types import NESTED_TYPES


@dataclass(frozen=True, slots=True)
class _Defaults:
    """What holds for every field that does not say otherwise."""

    coerce: bool
    null_values: tuple[str, ...]


def schema_of(declared: DeclaredSchema) -> Schema:
    """Return the declared columns."""
    defaults = _Defaults(declared.coerce, tuple(declared.null_values))
    return Schema(tuple(_field(one, defaults) for one in declared.fields_))


def _field(declared: DeclaredField, defaults: _Defaults) -> Field:
    path = tuple(declared.from_)
    return _typed(declared.name, declared, declared.nullable, path, defaults)


def _inner(name: str, declared: DeclaredItems, defaults: _Defaults) -> Field:
    return _typed(name, declared, declared.nullable, (), defaults)


def _typed(
    name: str,
    declared: DeclaredType,
    nullable: bool,
    path: tuple[str, ...],
    defaults: _Defaults,
) -> Field:
    kind = declared.type.type
    items = None
    if declared.items is not None:
        items = _inner(ELEMENT, declared.items, defaults)
    elif declared.values is not None:
        items = _inner(VALUE, declared.values, defaults)
    reading = Reading(path=() if path == (name,) else path)
    if kind not in NESTED_TYPES:
        nulls = declared.null_values
        reading = Reading(
            path=reading.path,
            formats=tuple(declared.format),
            coerce=defaults.coerce if declared.coerce is None else declared.coerce,
            null_values=defaults.null_values if nulls is None else tuple(nulls),
            truncate=declared.truncate,
        )
    return Field(
        name=name,
        type=kind,
        nullable=nullable,
        precision=declared.type.precision,
        scale=declared.type.scale,
        fields=tuple(_field(one, defaults) for one in declared.fields_),
        items=items,
        reading=reading,
    )
