"""Whether a table shows files as they were written: their columns, sizes and partitions. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from blizzard.inspect.audit.findings import FindingKind
from lakebed.columns.field_path import FieldPath
from lakebed.columns.nested_types import DeltaType, types_within
from lakebed.deltalog.delta_types import (
    TableFacts,
    by_name,
    dropped_columns,
    kind_of,
    names_in_log,
    reads,
    struct_of,
)
from lakebed.deltalog.lineage import Active
from lakebed.documents.data_file import FinishedFile
from lakebed.units import plural


def why_not_held(
    written: Mapping[str, Any], partition_columns: tuple[str, ...], table: TableFacts
) -> Iterator[str]:
    """Yield what files of a schema have that a table cannot show as it was written."""
    if partition_columns != table.partition_columns:
        yield (
            f"the files are partitioned by {_listed(partition_columns)}, the table by "
            f"{_listed(table.partition_columns)}"
        )
    hidden = by_name(dropped_columns(table) or struct_of(()))
    shown = [one for one in written["fields"] if one["name"] not in hidden]
    there = {path: kind for path, kind, _said in types_within(table.schema)}
    unlike: FieldPath | None = None
    for path, kind, _said in types_within(struct_of(shown)):
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
    file: FinishedFile, one: Active, shape: TableFacts | None
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
    names = names_in_log(shape) if shape is not None and file.partition_values else {}
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
