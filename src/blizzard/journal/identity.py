"""What a run is, as its entries tell it."""

from dataclasses import dataclass
from typing import Any

from blizzard.model.locations import source_uris_of
from blizzard.model.settings import PipelineSettings
from lakebed.columns.schema import Schema
from lakebed.documents.entry import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryColumns:
    """The columns of a batch's files."""

    table_schema: dict[str, Any]
    """As Delta writes them."""
    found: Schema | None = None
    """As the next batch is to know them; None where the configuration says them all."""


def identity_of(settings: PipelineSettings, run_id: str) -> Entry:
    """Return what a run puts into each of its entries: pipeline, sources, schema.

    Journal, time, number and actions are those of the entry that is made of it.
    """
    template = settings.sink.template
    return Entry(
        kind="open",
        pipeline=settings.name,
        journal="",
        sequence=0,
        run=run_id,
        created="",
        previous=None,
        handoff=settings.sink.handoff,
        source_uris=source_uris_of(settings),
        table_schema=settings.table_schema.delta(),
        partition_columns=template.keys if template else (),
    )


def columns_after(last: Entry | None, declared: dict[str, Any]) -> EntryColumns:
    """Return the columns for an entry without data files: those that were found stay known.

    `last` is the last entry with data files, `declared` the table's schema as it is configured.
    """
    if last is not None and last.columns is not None:
        return EntryColumns(table_schema=last.table_schema, found=last.columns)
    return EntryColumns(table_schema=declared)
