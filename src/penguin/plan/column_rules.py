"""What a table requires of files, entries and schema changes. Pure.

A file is bound to the column names, and in mode `id` to the ids, that it was written with: its
entry has them in the metadata of the schema's fields, as Delta writes it.
"""

from collections.abc import Iterable, Iterator, Mapping

from lakebed.columns.column_mapping import (
    COLUMN_ID,
    MODE,
    PHYSICAL_NAME,
    FieldPath,
    format_path,
    mapping_of,
    maps_columns,
    mode_of,
    types_within,
)
from lakebed.columns.schema import Field
from lakebed.deltalog.delta_types import (
    DeltaField,
    DeltaSchema,
    TableFacts,
    partition_fields,
)
from lakebed.deltalog.table_features import (
    CLUSTERING,
    ROW_TRACKING,
    TYPE_WIDENING,
    TYPE_WIDENING_PREVIEW,
    is_on,
)
from lakebed.documents.entry import Entry
from lakebed.documents.records import FinishedFile, row_columns
from lakebed.layout import DELTA_LOG, OURS, STAGING, why_unreadable
from lakebed.listing.sort import is_usable
from lakebed.partition import check_value
from penguin.model.backlog import ReadyEntry
from penguin.model.commit import Add, Changes
from penguin.model.settings import EntryInvalid, SchemaRefused

CHANGE_DATA_FEED = "delta.enableChangeDataFeed"
RECORDS_TYPES = frozenset({TYPE_WIDENING, TYPE_WIDENING_PREVIEW})
ASK_FOR_MORE = RECORDS_TYPES | {CLUSTERING}
"""Features that restrict changes of a table's columns."""
OF_CHANGES = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
"""The columns that readers of the change data feed see beside the table's own."""
WAY_OUT = (
    "they were written before the table was changed, or by a program that does not know "
    "its column mapping. Restart blizzard and have it read the sources again: blizzard redo"
)


def reasons_against_names(table: TableFacts, entry: DeltaSchema) -> Iterator[str]:
    """Yield why a table with column mapping would not find the columns of some files."""
    mode = mode_of(table.configuration)
    if mode == "none":
        return
    fields = [field for field in entry["fields"] if field["name"] not in table.partition_columns]
    ours = _names_in_files(table.schema["fields"], by_id=mode == "id")
    theirs = _names_in_files(fields, by_id=mode == "id")
    others = [format_path(path) for path, one in theirs.items() if ours.get(path, one) != one]
    if others:
        what = "names" if mode == "name" else "names or ids"
        yield (
            f"the files hold {', '.join(others)} under other {what} than the table does: {WAY_OUT}"
        )


def reasons_against_rewritten(table: TableFacts, entry: Entry) -> Iterator[str]:
    """Yield why files cannot replace others: column names changed since they were written.

    Their statistics use the display names of that time, and row ids of moved rows are in the
    columns that the table named for them.
    """
    kept = row_columns(table.configuration) if ROW_TRACKING in table.features else None
    new = entry.data_files[len(entry.files) :]
    if kept is not None and any(file.row_columns != kept for file in new):
        yield "row tracking was enabled after the files were written; run it again"
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
    """Yield why a change of columns is refused: the table requires more than a new schema."""
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
    if changes.widened and not table.features.isdisjoint(RECORDS_TYPES):
        yield (
            "the table records changes of its columns' types: change "
            f"{', '.join(changes.widened)} with Spark (ALTER TABLE ... ALTER COLUMN ... TYPE)"
        )


def _names_in_files(fields: list[DeltaField], *, by_id: bool) -> dict[FieldPath, object]:
    """Return the names of all fields in files, with ids if they matter."""
    return {
        path: (said.get(PHYSICAL_NAME, path[-1]), said.get(COLUMN_ID) if by_id else None)
        for path, _kind, said in types_within({"type": "struct", "fields": fields})
        if said is not None
    }


RESERVED_FOLDERS = (DELTA_LOG, OURS, STAGING)


def check_configured_partitions(configured: tuple[str, ...] | None, ready: ReadyEntry) -> None:
    """Raise if an entry is partitioned by other columns than configured."""
    if configured is not None and configured != ready.entry.partition_columns:
        why = (
            f"partition_by names {', '.join(configured) or 'nothing'}, the files are "
            f"partitioned by {', '.join(ready.entry.partition_columns) or 'nothing'}"
        )
        raise SchemaRefused(
            ready.entry.sequence,
            (why,),
            path=ready.path,
        )


def check_books(ready: ReadyEntry) -> None:
    """Raise if an entry's files and its source files have different row counts."""
    for source in ready.entry.sources:
        counted = source.blank + source.filtered + source.quarantined + source.rows
        if (source.rows if source.failure else source.lines - counted) != 0:
            raise EntryInvalid(
                f"the row counts of entry {ready.entry.sequence} do not add up: {source.key} has "
                f"{source.lines} lines, of which {source.blank} blank, {source.filtered} "
                f"filtered, {source.quarantined} quarantined and {source.rows} rows"
                + (", and failed" if source.failure else ""),
                path=ready.path,
            )
    entry = ready.entry
    given = sum(source.rows for source in entry.sources if not source.retracted)
    given += sum(one.rows for one in entry.resolved)
    held = sum(file.record_count for file in entry.files)
    taken = sum(source.rows for source in entry.sources if source.retracted)
    if entry.kind == "erase":
        # The sources of some erased rows are unknown.
        taken = max(entry.left_out, sum(entry.erased.values()))
    for rows, verb, other_verb, count in (
        (given, "gave", "hold", held),
        (taken, "lose", "lose", entry.left_out),
    ):
        if rows != count:
            raise EntryInvalid(
                f"the row counts of entry {entry.sequence} do not add up: its source files "
                f"{verb} {rows} rows, but its data files {other_verb} {count}",
                path=ready.path,
            )


def check_names(ready: ReadyEntry, others: Mapping[str, Add]) -> None:
    """Raise if an entry names something other than a data file, or a file twice."""
    seen: set[str] = set()
    for file in ready.entry.data_files:
        segments = file.filename.split("/")
        if not is_usable(file.filename, remote=True) or segments[0] in RESERVED_FOLDERS:
            raise invalid(ready, "this is not the name of a data file", file)
        unreadable = why_unreadable(file.filename)
        if unreadable is not None:
            raise invalid(ready, unreadable, file)
        if file.filename in seen or file.filename in others:
            raise invalid(ready, "this file is named twice", file)
        seen.add(file.filename)


def check_rewrites(ready: ReadyEntry) -> None:
    """Raise if an entry rewrites a file twice, or its row counts do not match."""
    seen: set[str] = set()
    for rewrite in ready.entry.rewrites:
        for old, file in zip(rewrite.old, rewrite.old_files(), strict=True):
            if old.path in seen:
                raise invalid(ready, f"{old.path} is rewritten twice", file)
            has_no_effect = not rewrite.new and not (old.left_out or old.deleted)
            if old.size <= 0 or min(old.left_out, old.deleted) < 0 or has_no_effect:
                raise invalid(ready, f"{old.path} is rewritten without {old.left_out} rows", file)
            seen.add(old.path)
        left, held = rewrite.rows - rewrite.left_out, sum(file.record_count for file in rewrite.new)
        partitions = {tuple(sorted(file.partition_values.items())) for file in rewrite.new}
        if left != held or len(partitions) > 1:
            raise EntryInvalid(
                f"entry {ready.entry.sequence} must not be committed: files with {left} rows are "
                f"rewritten into ones of {len(partitions)} partitions with {held}",
                path=ready.path,
            )


def check_files(files: Iterable[FinishedFile], table: TableFacts, ready: ReadyEntry) -> None:
    """Raise if the table cannot have a file's size, rows or partition values."""
    try:
        columns = partition_fields(table)
    except ValueError as reason:
        raise SchemaRefused(ready.entry.sequence, (str(reason),), path=ready.path) from None
    for file in files:
        _check_file(file, columns, ready)


def _check_file(file: FinishedFile, columns: dict[str, Field], ready: ReadyEntry) -> None:
    if file.size <= 0 or file.record_count < 0:
        raise invalid(ready, f"{file.size} bytes and {file.record_count} rows are impossible", file)
    if set(file.partition_values) != set(columns):
        raise invalid(
            ready,
            f"it has partition values for {', '.join(file.partition_values) or 'nothing'}, "
            f"the table is partitioned by {', '.join(columns) or 'nothing'}",
            file,
        )
    for name, value in file.partition_values.items():
        try:
            # Delta treats an empty string as null.
            check_value(columns[name], value or None)
        except ValueError as reason:
            raise invalid(ready, f"its value of partition column {name}: {reason}", file) from None


def invalid(ready: ReadyEntry, why: str, file: FinishedFile) -> EntryInvalid:
    """Return the error for an entry with a file that must not be committed."""
    return EntryInvalid(
        f"entry {ready.entry.sequence} must not be committed: {why}",
        file=file.filename,
        path=ready.path,
    )
