"""How the columns of a Parquet file are encoded, by a sample of its first rows. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.columns.schema import ELEMENT, KEY, VALUE
from lakebed.types import ParquetCodec

Values = Any
"""A chunked array of any type; pyarrow's stubs know one at a time."""


def leaves(rows: pa.Table) -> Iterator[tuple[str, Values]]:
    """Yield the path of each leaf as Parquet writes it, and its values: of lists, the elements."""
    for name in rows.column_names:
        yield from _leaves(name, rows[name])


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


SAMPLE_ROWS = 10_000
MOST_DISTINCT = 0.5
"""A column repeats if at most every second value of the sample is a new one."""
FEW_ROWS = 2_048
HARDLY_REPEATS = 0.9
"""What so few rows say of most columns is what the whole sample would say: a column of which every
second of 10,000 values is a new one has about 85 % new ones among 2,048."""
LEAST_SAVED = 0.15
"""A column is compressed if that takes so much off the sample at least. Times and measurements
hardly get any smaller, and trying costs as much as all the rest of writing them."""
SHORTEST_BITS = 32
"""Shorter numbers are written as 32 bits each, most of which are the same."""

Codec = Literal["snappy", "gzip", "zstd", "lz4", "none"]
PARQUET_CODEC: Mapping[ParquetCodec, Codec] = {
    ParquetCodec.SNAPPY: "snappy",
    ParquetCodec.GZIP: "gzip",
    ParquetCodec.ZSTD: "zstd",
    ParquetCodec.LZ4: "lz4",
    ParquetCodec.UNCOMPRESSED: "none",
}


@dataclass(frozen=True, slots=True)
class Encoding:
    """The leaves of a file, by their paths, that are not encoded as the others are."""

    repeating: tuple[str, ...] = ()
    """Those with a dictionary."""
    incompressible: tuple[str, ...] = ()
    """Those that are left as they are."""

    def options(
        self, schema: pa.Schema, codec: ParquetCodec, named: pa.Schema | None = None
    ) -> dict[str, Any]:
        """Return the options of Parquet's writer for a file with these columns.

        The file may lack some columns of the sample, and have them `named` otherwise.
        """
        paths, names = (
            [path for path, _values in leaves(one.empty_table())]
            for one in (schema, named or schema)
        )
        # A column that is not named would not be compressed at all.
        compression = {
            name: "none" if path in self.incompressible else PARQUET_CODEC[codec]
            for path, name in zip(paths, names, strict=True)
        }
        repeating = [
            name for path, name in zip(paths, names, strict=True) if path in self.repeating
        ]
        return {"compression": compression, "use_dictionary": repeating}


LookAt = Callable[[pa.Table], Encoding]
"""Returns how some rows are best encoded."""


def encoding_of(table: pa.Table, codec: ParquetCodec) -> Encoding:
    """Return how the columns of a file are encoded that begins with these rows.

    Only where values repeat does a dictionary save time and space. Parquet falls back by itself
    where a dictionary grows too large, but only after the cost of building it.
    """
    sample = list(leaves(table.slice(0, SAMPLE_ROWS)))
    repeating = tuple(
        path for path, values in sample if not pa.types.is_boolean(values.type) and _repeats(values)
    )
    return Encoding(
        repeating,
        tuple(
            path
            for path, values in sample
            if path not in repeating and _is_incompressible(values, codec)
        ),
    )


def _repeats(values: Values) -> bool:
    few = _distinct(values.slice(0, FEW_ROWS))
    return few <= MOST_DISTINCT or (few <= HARDLY_REPEATS and _distinct(values) <= MOST_DISTINCT)


def _distinct(values: Values) -> float:
    return float(pc.count_distinct(values, mode="all").as_py()) / max(1, len(values))


def _is_incompressible(values: Values, codec: ParquetCodec) -> bool:
    """Whether numbers or times hardly get smaller by compression; fewer than some say nothing."""
    if codec is ParquetCodec.UNCOMPRESSED or not _is_written_as_it_is(values.type):
        return False
    present = pc.drop_null(values.slice(0, 2 * FEW_ROWS)).slice(0, FEW_ROWS)
    if len(present) < FEW_ROWS:
        return False
    together: Values = pa.concat_arrays(present.chunks)
    width = together.type.bit_width // 8
    size = len(together) * width
    # Parquet means another LZ4 than Arrow does.
    by: Any = "lz4_raw" if codec is ParquetCodec.LZ4 else PARQUET_CODEC[codec]
    compressed = pa.Codec(by).compress(together.buffers()[1].slice(together.offset * width, size))
    return bool(len(compressed) > (1 - LEAST_SAVED) * size)


def _is_written_as_it_is(kind: Any) -> bool:  # noqa: ANN401 - any column type
    return pa.types.is_primitive(kind) and kind.bit_width >= SHORTEST_BITS
