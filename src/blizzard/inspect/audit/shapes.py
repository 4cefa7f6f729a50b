"""Whether a table shows files as they were written: their columns, sizes and partitions. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from blizzard.inspect.audit.findings import FindingKind
from lakebed.columns.column_mapping import mapping_of
from lakebed.deltalog.actions import lines_of
from lakebed.deltalog.lineage import Active
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.reading import parse_json
from lakebed.units import plural

READ_AS: Mapping[str, frozenset[str]] = {
    "long": frozenset({"integer", "short", "byte"}),
    "integer": frozenset({"short", "byte"}),
    "short": frozenset({"byte"}),
    "double": frozenset({"float"}),
}
"""For a table's type, the types of files that every reader reads as it."""
DROPPED_PROPERTY = "penguin.droppedColumns"
"""The table property that holds what files have and the schema does not show, as a schema."""
DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """The columns of a table from a version on."""

    schema: Mapping[str, Any]
    partition_columns: tuple[str, ...]
    hidden: frozenset[str]
    """Columns of data files that the schema shows no more, or not all of them."""
    names: Mapping[str, str]
    """The names of partition columns in the log, where the table maps its columns."""

    @classmethod
    def of(cls, metadata: Mapping[str, Any], where: str) -> "TableShape":
        """Read the metadata of a table from the version of its log that `where` names."""
        with lines_of(where):
            properties: dict[str, Any] = metadata.get("configuration") or {}
            dropped = properties.get(DROPPED_PROPERTY)
            try:
                hidden = parse_json(dropped)["fields"] if dropped else ()
            except (ValueError, KeyError, TypeError):
                hidden = ()
            parsed = parse_json(metadata["schemaString"])
            columns = mapping_of(parsed, properties) or {}
            apart = tuple(metadata.get("partitionColumns") or ())
            return cls(
                schema=parsed,
                partition_columns=apart,
                hidden=frozenset(one["name"] for one in hidden),
                names={name: columns[name,].name for name in apart if (name,) in columns},
            )


def why_not_held(
    written: Mapping[str, Any], partition_columns: tuple[str, ...], table: TableShape
) -> Iterator[str]:
    """Yield what files of a schema have that a table cannot show as it was written."""
    if partition_columns != table.partition_columns:
        yield (
            f"the files are partitioned by {_listed(partition_columns)}, the table by "
            f"{_listed(table.partition_columns)}"
        )
    shown = [one for one in written["fields"] if one["name"] not in table.hidden]
    yield from _fields({"fields": shown}, table.schema, "")


def _fields(written: Mapping[str, Any], table: Mapping[str, Any], above: str) -> Iterator[str]:
    there = {one["name"]: one["type"] for one in table["fields"]}
    for one in written["fields"]:
        name = f"{above}{one['name']}"
        if one["name"] not in there:
            yield f"the table does not have column {name}"
        else:
            yield from _types(one["type"], there[one["name"]], name)


def _types(written: Any, table: Any, name: str) -> Iterator[str]:  # noqa: ANN401 - Delta's types
    match written, table:
        case {"type": "struct"}, {"type": "struct"}:
            yield from _fields(written, table, f"{name}.")
        case {"type": "array", "elementType": mine}, {"type": "array", "elementType": theirs}:
            yield from _types(mine, theirs, f"{name}.element")
        case {"type": "map", "valueType": mine}, {"type": "map", "valueType": theirs}:
            yield from _types(mine, theirs, f"{name}.value")
        case _ if not _reads(table, written):
            yield f"column {name} is {_named(written)} in the files, {_named(table)} in the table"


def _reads(table: Any, written: Any) -> bool:  # noqa: ANN401
    if not isinstance(table, str) or not isinstance(written, str):
        return False
    ours, theirs = DECIMAL.fullmatch(table), DECIMAL.fullmatch(written)
    if ours and theirs:
        return ours[2] == theirs[2] and int(ours[1]) >= int(theirs[1])
    return table == written or written in READ_AS.get(table, ())


def _named(kind: Any) -> str:  # noqa: ANN401
    return kind if isinstance(kind, str) else str(kind["type"])


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"


def disagreements(
    file: FinishedFile, one: Active, shape: TableShape | None
) -> Iterator[tuple[FindingKind, str]]:
    """Yield in what an entry and the log disagree on a data file."""
    if one.size != file.size:
        yield FindingKind.FILE_SIZE_DIFFERS, f"{file.size} bytes; the log says {one.size}"
    if one.rows != file.record_count:
        yield (
            FindingKind.FILE_ROWS_DIFFER,
            (
                f"{plural(file.record_count, 'row')}; the log's statistics say "
                f"{'nothing' if one.rows is None else one.rows}"
            ),
        )
    names = {} if shape is None else shape.names
    values = tuple(
        sorted((names.get(name, name), v or None) for name, v in file.partition_values.items())
    )
    if one.values != values:
        shown = partition_shown(values)
        yield (
            FindingKind.FILE_PARTITION_DIFFERS,
            f"{shown}; the log says {partition_shown(one.values)}",
        )


def partition_shown(values: tuple[tuple[str, str | None], ...]) -> str:
    """Return the partition of a data file, in words."""
    return ", ".join(f"{name}={'null' if v is None else v}" for name, v in values) or "no partition"
