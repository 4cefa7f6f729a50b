"""The leaves of nested columns: what a Parquet file has a column of its own for. Pure."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.columns.schema import ELEMENT, KEY, VALUE

Values = Any
"""A chunked array of whatever type it is; pyarrow's stubs know one at a time."""


def leaves(rows: pa.Table) -> Iterator[tuple[str, Values]]:
    """Yield the path of each leaf as Parquet writes it, and its values: of lists, the elements."""
    for name in rows.column_names:
        yield from _leaves(name, rows[name])


def renamed_leaves(paths: list[str], before: pa.Schema, after: pa.Schema) -> list[str]:
    """Return the paths of leaves by the names of another schema that has the same fields."""
    both = (tuple(path for path, _ in leaves(one.empty_table())) for one in (before, after))
    names = dict(zip(*both, strict=True))
    return [names[path] for path in paths]


def fields_in(kind: Any) -> int:  # noqa: ANN401 - as above
    """Count a field and all fields inside it."""
    inner = range(kind.num_fields) if pa.types.is_nested(kind) else ()
    return 1 + sum(fields_in(kind.field(place).type) for place in inner)


def _leaves(path: str, values: Values) -> Iterator[tuple[str, Values]]:
    kind = values.type
    if pa.types.is_map(kind):
        pairs = pa.struct([pa.field(KEY, kind.key_type), pa.field(VALUE, kind.item_type)])
        for name, inner in zip((KEY, VALUE), _elements(values.cast(pa.list_(pairs))), strict=True):
            yield from _leaves(f"{path}.key_value.{name}", inner)
    elif pa.types.is_struct(kind):
        for place, inner in enumerate(values.flatten()):
            yield from _leaves(f"{path}.{kind.field(place).name}", inner)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.{ELEMENT}", pc.list_flatten(values))
    else:
        yield path, values


def _elements(pairs: Values) -> Any:  # noqa: ANN401 - as above
    elements: Values = pc.list_flatten(pairs)
    return elements.flatten()
