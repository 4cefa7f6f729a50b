"""The settings of a penguin run, and its errors. Plain values, built by `penguin.config.load`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebed.errors import LakeError, ObjectMissing, Whose
from lakebed.listing.lookback import Window
from lakebed.storage.options import StorageOptions
from lakebed.telemetry.settings import ProgramSettings
from lakebed.types import CatalogType, DiscoverBy, Evolution


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSettings:
    """Where a table is registered."""

    type: CatalogType
    database: str
    table: str
    location: str | None = None
    """The table's location in the catalog; None for the table's own URI."""
    uri: str | None = None
    """The address of a Hive metastore."""
    endpoint: str | None = None
    """The address of Glue; None for that of its region."""
    region: str | None = None
    options: StorageOptions = field(default_factory=StorageOptions)
    """The credentials for the catalog."""

    @property
    def name(self) -> str:
        """Return the table's name in the catalog."""
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """One table, and how files are committed to it."""

    name: str
    table_uri: str
    storage_options: StorageOptions = field(default_factory=StorageOptions)
    poll_interval: float = 10.0
    """Seconds between two polls of the table directory."""
    checkpoint_interval: int | None = None
    """Commits between two Delta checkpoints; None to derive it from the table's size."""
    evolution: Evolution = Evolution.MERGE
    discovery: DiscoverBy = DiscoverBy.AUTO
    max_files_per_commit: int = 10_000
    """Entries share a commit up to this many files; one entry is never split."""
    partition_columns: tuple[str, ...] | None = None
    """The configured partition columns; None if not configured."""
    partition_template: str | None = None
    """The `prefix_template` of `partition_by`, which gives a new table's column types."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Delta table properties."""
    partition_filter: Window | None = None
    """The folders of a first listing; None for all."""
    late_window: float = 3600.0
    """How many seconds of names below a folder's watermark are listed at every poll."""
    sweep_interval: float = 3600.0
    """Seconds between two sweeps."""
    sweep_horizon: Window | None = None
    """How far back a sweep goes; None for all folders."""
    file_pattern: str | None = None
    """Which files a scan takes besides `{uuidv7}.parquet`."""
    catalog: CatalogSettings | None = None
    """The catalog for other engines; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PenguinSettings(ProgramSettings):
    """The settings of one penguin process."""

    tables: tuple[TableSettings, ...]
    unclaimed: Mapping[str, str] = field(default_factory=dict)
    """The sinks without a configured table, by the pipelines that write to them."""


class TableMissing(ObjectMissing):
    """There is neither a table nor a journal at a table's URI."""


class TableExists(LakeError, code="table_exists", whose=Whose.EXTERNAL, retryable=True):
    """Another writer created the table first."""


class LogRolledBack(LakeError, code="log_rolled_back", whose=Whose.USER):
    """The Delta log does not know of entries that were committed to it."""


class JournalBroken(LakeError, code="journal_broken", whose=Whose.USER):
    """The entries of a journal are not the unbroken chain that blizzard wrote."""


class SchemaRefused(LakeError, code="schema_refused", whose=Whose.USER):
    """An entry's columns do not fit the table's, for each of these reasons."""

    def __init__(self, entry: int, reasons: tuple[str, ...], **facts: object) -> None:
        super().__init__(f"entry {entry} does not fit the table: {'; '.join(reasons)}", **facts)
        self.reasons = reasons


class EntryInvalid(LakeError, code="entry_invalid", whose=Whose.INTERNAL):
    """An entry names something that must not be committed."""


class FileUnfit(LakeError, code="file_unfit", whose=Whose.USER):
    """A file that another program wrote cannot be committed."""


class FolderUnfit(LakeError, code="folder_unfit", whose=Whose.USER):
    """A folder cannot become a table as it is."""


class FileReleased(LakeError, code="file_released", whose=Whose.USER):
    """An entry reads sources again whose rows are in the table already."""
