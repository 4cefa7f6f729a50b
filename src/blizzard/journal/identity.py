"""What a run is, as its entries tell it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blizzard.model.locations import source_uris_of
from blizzard.model.settings import PipelineSettings
from lakebed.columns.schema import Schema
from lakebed.documents.entry import Entry
from lakebed.types import Handoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a run puts into each of its entries."""

    pipeline: str
    run: str
    handoff: Handoff
    source_uris: Mapping[str, str]
    table_schema: dict[str, Any]
    partition_columns: tuple[str, ...]


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


def learn_sources(entry: Entry, names: dict[str, str], uris: dict[str, str]) -> None:
    """Record where an entry says that sources are: all names by URI so far, and URIs by name."""
    gone = entry.moved
    if gone is not None and entry.source_uris.get(gone) != uris.get(gone):
        # Its files are not where they were: whoever reads that folder reads others.
        for left in [uri for uri, name in names.items() if name == gone]:
            del names[left]
        uris.pop(gone, None)
    for name, uri in entry.source_uris.items():
        names[uri] = name
        uris[name] = uri


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
