"""Ids of fields in Parquet files, and the columns that keep the ids of moved rows. Pure.

The id of a field follows from its path alone. Readers that go by ids (Iceberg's, and Delta's where
columns are mapped) find a field under the same id in every file, whichever pipeline wrote it.

A Delta table that tracks its rows numbers those of a file from the file's first id on, unless the
file gives a row an id itself: in two columns that no schema names, whose names are properties of
the table. A row that is moved to another file keeps its id, and the version that wrote it, by them.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, cast

import pyarrow as pa

from lakebed.columns.column_mapping import FieldPath, format_path, types_within
from lakebed.columns.schema import ELEMENT, KEY, VALUE, Field

FIELD_ID = b"PARQUET:field_id"
"""Where Arrow keeps the id that a field gets in a Parquet file."""
MOST_IDS = 1 << 30
"""Half of the ids that Parquet can hold: numbering on from the highest finds room."""


@cache
def field_id(path: FieldPath) -> int:
    """Return the id of a field in Parquet files: the same wherever and whenever it is written."""
    digest = hashlib.sha256(format_path(path).encode()).digest()
    return 1 + int.from_bytes(digest[:8], "big") % MOST_IDS


def with_field_ids(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose fields carry their ids, at every depth."""
    return pa.schema([_numbered(field, (field.name,)) for field in schema])


def same_ids(fields: Iterable[Field]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of different fields that would have one id; hardly ever are there any."""
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


FIRST_ROW_ID = "baseRowId"
ROW_VERSION = "defaultRowCommitVersion"
"""What the action of a file calls the two."""
ROW_IDS = "delta.rowTracking.materializedRowIdColumnName"
ROW_VERSIONS = "delta.rowTracking.materializedRowCommitVersionColumnName"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumns:
    """What the two columns are called in files."""

    ids: str
    versions: str

    @property
    def names(self) -> tuple[str, str]:
        """Name both."""
        return self.ids, self.versions


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRow:
    """What a log says of the rows of a file that does not say it itself."""

    id: int
    """The id of the first row; those of the others follow it, in their order."""
    version: int
    """The version that wrote them."""


def row_columns(configuration: Mapping[str, str]) -> RowColumns | None:
    """Return what the columns are called; None where a table does not say."""
    ids, versions = configuration.get(ROW_IDS), configuration.get(ROW_VERSIONS)
    return RowColumns(ids=ids, versions=versions) if ids and versions else None
