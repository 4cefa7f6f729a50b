"""What a run is, as its entries tell it."""

from collections.abc import Mapping
from typing import Any

from blizzard.model.locations import source_uris_of
from blizzard.model.settings import PipelineSettings
from lakebed.dataclass import dataclass
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
