"""What a run of penguin is told: plain values, built from YAML by `penguin.config`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lake.options import StorageOptions

METRICS_ADDRESS = "127.0.0.1:9091"


class Evolution(StrEnum):
    """What a file whose schema is not the table's may change."""

    STRICT = "strict"
    MERGE = "merge"
    OVERWRITE = "overwrite"


class DiscoverBy(StrEnum):
    """How new files are found; AUTO obeys what the table directory says of itself."""

    AUTO = "auto"
    JOURNAL = "journal"
    STAGING = "staging"
    WATERMARK = "watermark"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """One table, and how files are committed to it."""

    name: str
    table_uri: str
    storage_options: StorageOptions = field(default_factory=StorageOptions)
    poll_interval: float = 10.0
    """Seconds between two looks at the table directory."""
    checkpoint_interval: int = 10
    """Commits between two Delta checkpoints."""
    evolution: Evolution = Evolution.MERGE
    discovery: DiscoverBy = DiscoverBy.AUTO
    max_files_per_commit: int = 10_000
    """Entries share a commit up to this many files; one entry is never split."""
    partition_columns: tuple[str, ...] | None = None
    """What the configuration says of the partition columns; None where it says nothing."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Delta table properties."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PenguinSettings:
    """Everything one penguin process does."""

    tables: tuple[TableSettings, ...]
    metrics_enabled: bool = False
    metrics_address: str = METRICS_ADDRESS
    warnings: tuple[str, ...] = ()
    """One line for each key that is present and not acted on yet."""
