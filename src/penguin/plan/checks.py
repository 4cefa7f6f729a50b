"""What an entry must be so that any of it may be committed. Pure."""

from collections.abc import Iterable, Mapping

from lakebed.columns.schema import Field
from lakebed.deltalog.delta_types import TableFacts, partition_fields
from lakebed.documents.data_file import FinishedFile
from lakebed.layout import DELTA_LOG, OURS, STAGING, why_unreadable
from lakebed.listing.sort import is_usable
from lakebed.partition import check_value
from penguin.model.backlog import ReadyEntry
from penguin.model.commit import Add
from penguin.model.errors import EntryInvalid, SchemaRefused

RESERVED_FOLDERS = (DELTA_LOG, OURS, STAGING)


def check_configured_partitions(configured: tuple[str, ...] | None, ready: ReadyEntry) -> None:
    """Refuse an entry that is partitioned by other columns than the configuration says."""
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
    """Refuse an entry whose files do not hold as many rows as its source files gave."""
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
        # Where erased rows came from is not known of all of them.
        taken = max(entry.left_out, sum(entry.erased.values()))
    for rows, verb, told, count in (
        (given, "gave", "hold", held),
        (taken, "lose", "lose", entry.left_out),
    ):
        if rows != count:
            raise EntryInvalid(
                f"the row counts of entry {entry.sequence} do not add up: its source files "
                f"{verb} {rows} rows, but its data files {told} {count}",
                path=ready.path,
            )


def check_names(ready: ReadyEntry, others: Mapping[str, Add]) -> None:
    """Refuse an entry that names something other than a data file, or a file twice."""
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
    """Refuse an entry that rewrites a file twice, or files into ones with other rows."""
    seen: set[str] = set()
    for rewrite in ready.entry.rewrites:
        for old, file in zip(rewrite.old, rewrite.old_files(), strict=True):
            if old.path in seen:
                raise invalid(ready, f"{old.path} is rewritten twice", file)
            goes_for_nothing = not rewrite.new and not (old.left_out or old.deleted)
            if old.size <= 0 or min(old.left_out, old.deleted) < 0 or goes_for_nothing:
                raise invalid(ready, f"{old.path} goes with {old.left_out} rows", file)
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
    """Refuse files whose size, rows or partition values the table cannot have."""
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
            # Delta takes an empty string for null.
            check_value(columns[name], value or None)
        except ValueError as reason:
            raise invalid(ready, f"its value of partition column {name}: {reason}", file) from None


def invalid(ready: ReadyEntry, why: str, file: FinishedFile) -> EntryInvalid:
    """Return the error of an entry that names a file which must not be committed."""
    return EntryInvalid(
        f"entry {ready.entry.sequence} must not be committed: {why}",
        file=file.filename,
        path=ready.path,
    )
