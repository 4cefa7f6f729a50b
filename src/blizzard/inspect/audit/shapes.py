"""Whether a table shows files as they were written: their columns, sizes and partitions. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from blizzard.inspect.audit.findings import FindingKind
from lakebed.columns.column_mapping import mapping_of
from lakebed.columns.field_path import FieldPath
from lakebed.columns.nested_types import DeltaType, types_within
from lakebed.deltalog.actions import lines_of
from lakebed.deltalog.delta_types import kind_of, reads
from lakebed.deltalog.lineage import Active
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.reading import parse_json
from lakebed.units import plural

DROPPED_PROPERTY = "penguin.droppedColumns"
"""The table property that holds what files have and the schema does not show, as a schema."""


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
    there = {path: kind for path, kind, _said in types_within(table.schema)}
    unlike: FieldPath | None = None
    for path, kind, _said in types_within({"type": "struct", "fields": shown}):
        if unlike is not None and path[: len(unlike)] == unlike:
            continue  # The column around it is reported.
        name, known = ".".join(path), there.get(path)
        if known is None:
            unlike = path
            yield f"the table does not have column {name}"
        elif not (reads(known, kind) or kind_of(known) == kind_of(kind) != "plain"):
            unlike = path
            yield f"column {name} is {_named(kind)} in the files, {_named(known)} in the table"


def _named(kind: DeltaType) -> str:
    return kind if isinstance(kind, str) else kind_of(kind)


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
