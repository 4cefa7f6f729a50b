"""Tables that ask for more of files and of a change than their schema says. Pure.

A file is bound to the names, and in mode `id` to the ids, that it was written with. Its entry says
which: in the metadata of the schema's fields, as Delta writes it.
"""

from collections.abc import Iterator

from lakebed.columns.column_mapping import (
    COLUMN_ID,
    MODE,
    PHYSICAL_NAME,
    mapping_of,
    maps_columns,
    mode_of,
)
from lakebed.columns.field_path import FieldPath, format_path
from lakebed.columns.nested_types import types_within
from lakebed.columns.row_tracking import row_columns
from lakebed.deltalog.delta_types import (
    DeltaField,
    DeltaSchema,
    TableFacts,
)
from lakebed.deltalog.table_features import (
    CLUSTERING,
    ROW_TRACKING,
    TYPE_WIDENING,
    TYPE_WIDENING_PREVIEW,
    is_on,
)
from lakebed.documents.entry import Entry
from penguin.model.table import Changes
from penguin.plan.widening import ENABLED, may_widen

CHANGE_DATA_FEED = "delta.enableChangeDataFeed"
RECORDS_TYPES = frozenset({TYPE_WIDENING, TYPE_WIDENING_PREVIEW})
ASK_FOR_MORE = RECORDS_TYPES | {CLUSTERING}
"""Features by which the columns of a table are not free to become others."""
OF_CHANGES = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
"""The columns that every reader of a table's changes sees beside the table's own."""
WAY_OUT = (
    "they were written before the table was changed, or by a program that does not know how it "
    "calls its columns. Start blizzard anew and have it read the sources again: blizzard redo"
)


def reasons_against_names(table: TableFacts, entry: DeltaSchema) -> Iterator[str]:
    """Yield why a table that maps its columns does not find those of some files in them."""
    mode = mode_of(table.configuration)
    if mode == "none":
        return
    fields = [one for one in entry["fields"] if one["name"] not in table.partition_columns]
    ours = _names_in_files(table.schema["fields"], by_id=mode == "id")
    theirs = _names_in_files(fields, by_id=mode == "id")
    others = [format_path(path) for path, one in theirs.items() if ours.get(path, one) != one]
    if others:
        what = "names" if mode == "name" else "names or ids"
        yield (
            f"the files hold {', '.join(others)} under other {what} than the table does: {WAY_OUT}"
        )


def reasons_against_rewritten(table: TableFacts, entry: Entry) -> Iterator[str]:
    """Yield why files do not take the place of others: columns have other names since.

    Their statistics go by the names that people saw when they were written, and their rows have the
    ids that they had in other files in the columns that the table named for that.
    """
    kept = row_columns(table.configuration) if ROW_TRACKING in table.features else None
    new = entry.data_files[len(entry.files) :]
    if kept is not None and any(file.row_columns != kept for file in new):
        yield "the table tracks its rows, and did not when the files were written; run it again"
    now = mapping_of(table.schema, table.configuration)
    if now is None:
        return
    then = mapping_of(entry.table_schema, table.configuration) or {}
    others = sorted(format_path(path) for path, one in then.items() if now.get(path) != one)
    if others:
        yield (
            f"columns were renamed or dropped since the files were written: {', '.join(others)}; "
            "run it again"
        )


def reasons_against_change(table: TableFacts, changes: Changes) -> Iterator[str]:
    """Yield why a change of columns is not made: the table asks for more than a new schema."""
    changed = {"add columns to": changes.added, "drop columns of": changes.dropped}
    for verb, columns in changed.items() if maps_columns(table.configuration) else ():
        if columns:
            yield (
                f"{', '.join(sorted(columns))}: {verb} the table with Spark, which assigns the ids "
                f"that they need ({MODE} is set)"
            )
    if CLUSTERING in table.features and changes.dropped:
        yield (
            f"the table is clustered, and a clustering column must stay: drop "
            f"{', '.join(changes.dropped)} with Spark"
        )
    if is_on(table.configuration, CHANGE_DATA_FEED) and (taken := OF_CHANGES & {*changes.added}):
        yield f"{', '.join(sorted(taken))}: readers of the table's changes have such a column"
    records = not table.features.isdisjoint(RECORDS_TYPES)
    if records and changes.widened and not may_widen(table.features, table.configuration):
        yield (
            f"the table records changes of its columns' types, but does not have {TYPE_WIDENING} "
            f"with {ENABLED} set: set it, or change {', '.join(changes.widened)} with Spark"
        )


def _names_in_files(fields: list[DeltaField], *, by_id: bool) -> dict[FieldPath, object]:
    """Return the names, and the ids if they count, under which files hold all fields."""
    return {
        path: (said.get(PHYSICAL_NAME, path[-1]), said.get(COLUMN_ID) if by_id else None)
        for path, _kind, said in types_within({"type": "struct", "fields": fields})
        if said is not None
    }
