"""Ids of fields in Parquet files, each derived from the field's path alone. Pure.

Readers that go by ids (Iceberg's, and Delta's with column mapping) find a field under the same id
in every file, whichever pipeline wrote it.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, cast

import pyarrow as pa

from lakebed.columns.column_mapping import FieldPath, format_path, types_within
from lakebed.columns.schema import ELEMENT, KEY, VALUE, Field

FIELD_ID = b"PARQUET:field_id"
"""The metadata key of Arrow for a field's id in a Parquet file."""
MOST_IDS = 1 << 30
"""Half of Parquet's range of ids, so that numbers above the highest remain free."""


@cache
def field_id(path: FieldPath) -> int:
    """Return the id of a field in Parquet files, which depends on its path alone."""
    digest = hashlib.sha256(format_path(path).encode()).digest()
    return 1 + int.from_bytes(digest[:8], "big") % MOST_IDS


def with_field_ids(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose fields carry their ids, at every depth."""
    return pa.schema([_numbered(field, (field.name,)) for field in schema])


def same_ids(fields: Iterable[Field]) -> Iterator[tuple[str, ...]]:
    """Yield paths of different fields with the same id; collisions are very rare."""
    for _, alike in groupby(sorted(paths_by_id(fields), key=itemgetter(0)), key=itemgetter(0)):
        found = tuple(dict.fromkeys(format_path(path) for _id, path in alike))
        if len(found) > 1:
            yield found


def paths_by_id(fields: Iterable[Field], above: FieldPath = ()) -> Iterator[tuple[int, FieldPath]]:
    """Yield the id and the path of every field, at every depth."""
    for field in fields:
        for path, *_ in types_within(field.delta_type(), (*above, field.name)):
            yield field_id(path), path


def _numbered(field: "pa.Field[Any]", path: FieldPath) -> "pa.Field[Any]":
    ids = {FIELD_ID: str(field_id(path)).encode()}
    kind = _numbered_type(field.type, path)
    return pa.field(field.name, kind, field.nullable, metadata={**(field.metadata or {}), **ids})


def _numbered_type(kind: Any, path: FieldPath) -> pa.DataType:  # noqa: ANN401 - pyarrow's stubs know one type at a time
    if pa.types.is_struct(kind):
        inner = [kind.field(place) for place in range(kind.num_fields)]
        return pa.struct([_numbered(one, (*path, one.name)) for one in inner])
    if pa.types.is_map(kind):
        key: Any = _numbered(kind.key_field, (*path, KEY))
        item: Any = _numbered(kind.item_field, (*path, VALUE))
        return cast("pa.DataType", pa.map_(key, item))
    if pa.types.is_list(kind):
        return pa.list_(_numbered(kind.value_field, (*path, ELEMENT)))
    return cast("pa.DataType", kind)
