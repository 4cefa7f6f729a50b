"""The columns of a file that another program wrote, as the table sees them. Pure.

What a file allows or forbids of nulls is held against the table's column: a required column is
satisfied by a column that is required in the file, or that the footer's counts show to have no
null.
"""

from collections.abc import Mapping

from lakebed.columns.field_path import FieldPath, format_path
from lakebed.columns.nested_types import DeltaType, rebuilt
from lakebed.deltalog.delta_types import DeltaField, DeltaSchema, kind_of
from lakebed.documents.data_file import ColumnStatistics

FORBIDDEN = frozenset(" ,;{}()=\x7f") | frozenset(map(chr, range(32)))
"""Characters that no column of a Delta table may have in its name, without column mapping.

Spark's Delta names the line break and the tab alone; no reader can handle all control characters.
"""


def as_the_table_sees_it(
    schema: DeltaSchema,
    statistics: Mapping[str, ColumnStatistics],
    table: DeltaSchema | None,
    partition_columns: tuple[str, ...],
) -> DeltaSchema:
    """Return the columns that a file brings: without partition columns, with nulls as they are.

    Values of partition columns are in the path, and readers do not look for them in the file.
    """
    known = {} if table is None else {one["name"]: one for one in table["fields"]}
    return {
        "type": "struct",
        "fields": [
            _nulls_proved(one, statistics) if one["name"] in known else _relaxed_field(one)
            for one in schema["fields"]
            if one["name"] not in partition_columns
        ],
    }


def _nulls_proved(one: DeltaField, statistics: Mapping[str, ColumnStatistics]) -> DeltaField:
    facts = statistics.get(format_path((one["name"],)))
    proved = facts is not None and facts.null_count == 0
    return {**one, "nullable": one["nullable"] and not proved}


def _relaxed_field(one: DeltaField) -> DeltaField:
    """Let a new column be null, and all within it: other files do not have it."""
    return {**one, "nullable": True, "type": rebuilt(one["type"], _relaxed)}


def _relaxed(kind: DeltaType, _path: FieldPath) -> DeltaType:
    match kind_of(kind):
        case "struct":
            return {**kind, "fields": [{**one, "nullable": True} for one in kind["fields"]]}
        case "array":
            return {**kind, "containsNull": True}
        case "map":
            return {**kind, "valueContainsNull": True}
    return kind
