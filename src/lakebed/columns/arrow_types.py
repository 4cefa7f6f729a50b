"""Arrow's types, for the field types that need no more than their name."""

from collections.abc import Mapping

import pyarrow as pa

from lakebed.types import FieldType

ARROW: Mapping[FieldType, pa.DataType] = {
    FieldType.STRING: pa.string(),
    FieldType.INT8: pa.int8(),
    FieldType.INT16: pa.int16(),
    FieldType.INT32: pa.int32(),
    FieldType.INT64: pa.int64(),
    FieldType.FLOAT32: pa.float32(),
    FieldType.FLOAT64: pa.float64(),
    FieldType.BOOLEAN: pa.bool_(),
    FieldType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    FieldType.TIMESTAMP_NTZ: pa.timestamp("us"),
    FieldType.DATE: pa.date32(),
    FieldType.JSON: pa.string(),
    FieldType.BINARY: pa.binary(),
}
