"""Arrow's types, for the field types that need no more than their name."""

from collections.abc import Mapping

import pyarrow as pa

from lakebed.types import FieldType

_STORED_AS: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "date": pa.date32(),
    "binary": pa.binary(),
}
"""Arrow's types by the names of Delta's."""
ARROW = {kind: _STORED_AS[kind.delta] for kind in FieldType if kind.delta}
