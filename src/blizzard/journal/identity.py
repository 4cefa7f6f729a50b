"""What a run is, as its entries tell it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blizzard.model.locations import source_uris_of
from blizzard.model.settings import PipelineSettings
from lakebed.columns.schema import Schema
from lakebed.documents.entry import Entry, Kind
from lakebed.types import Handoff


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryColumns:
    """The columns of a batch's files."""

    table_schema: dict[str, Any]
    """As Delta writes them."""
    found: Schema | None = None
    """As the next batch is to know them; None where the configuration says them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a run puts into each of its entries."""

    pipeline: str
    run: str
    handoff: Handoff
    source_uris: Mapping[str, str]
    table_schema: dict[str, Any]
    partition_columns: tuple[str, ...]

    def entry(
        self,
        kind: Kind,
        columns: EntryColumns,
        *,
        journal: str,
        created: str,
        sequence: int = 0,
        previous: str | None = None,
    ) -> Entry:
        """Return an entry of the run, without any action; the first of a journal by default."""
        return Entry(
            kind=kind,
            pipeline=self.pipeline,
            journal=journal,
            sequence=sequence,
            run=self.run,
            created=created,
            previous=previous,
            handoff=self.handoff,
            source_uris=self.source_uris,
            table_schema=columns.table_schema,
            partition_columns=self.partition_columns,
            columns=columns.found,
        )


def identity_of(settings: PipelineSettings, run_id: str) -> Identity:
    """Return the identity of the entries' writer: pipeline, sources, schema."""
    template = settings.sink.template
    return Identity(
        pipeline=settings.name,
        run=run_id,
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
