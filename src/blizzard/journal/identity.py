"""What a run is, as its entries tell it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
