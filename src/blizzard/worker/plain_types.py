"""Rows of data files in plain types, whoever wrote them.

Other writers note in a footer that texts are views, or large ones. Arrow reads them as that, and
cannot take, compare or count them as it does plain ones.
"""

from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def read_group(
    file: pq.ParquetFile, group: int, columns: Collection[str] | None = None
) -> pa.Table:
    """Return the rows of one row group, or some columns of them, in plain types."""
    chosen = None if columns is None else sorted(columns)
    table = file.read_row_group(group, columns=chosen)
    return table.cast(plain_schema(table.schema))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose texts are plain, those inside of columns included."""
    return pa.schema([one.with_type(plain_type(one.type)) for one in schema])


def plain_type(kind: Any) -> Any:  # noqa: ANN401 - pyarrow's stubs know one type at a time
    """Return a type in which all texts are plain."""
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        inner = (kind.field(place) for place in range(kind.num_fields))
        return pa.struct([one.with_type(plain_type(one.type)) for one in inner])
    if pa.types.is_map(kind):
        item = kind.item_field
        return pa.map_(plain_type(kind.key_type), item.with_type(plain_type(item.type)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    return kind
