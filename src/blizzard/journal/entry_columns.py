"""What an entry says of the columns. Pure."""

from dataclasses import dataclass
from typing import Any

from lakebed.columns.schema import Schema
from lakebed.documents.entry import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryColumns:
    """The columns of a batch's files."""

    table_schema: dict[str, Any]
    """As Delta writes them."""
    found: Schema | None = None
    """As the next batch is to know them; None where the configuration says them all."""


def columns_after(last: Entry | None, declared: dict[str, Any]) -> EntryColumns:
    """Return the columns for an entry without data files: those that were found stay known.

    `last` is the last entry with data files, `declared` the table's schema as it is configured.
    """
    if last is not None and last.columns is not None:
        return EntryColumns(table_schema=last.table_schema, found=last.columns)
    return EntryColumns(table_schema=declared)
