"""The settings of a penguin run, and its errors. Plain values, built by `penguin.config.load`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebed.errors import LakeError, ObjectMissing, Whose
from lakebed.listing.lookback import Window
from lakebed.storage.options import StorageOptions
from lakebed.telemetry.guard import ProgramSettings
from lakebed.types import CatalogType, DiscoverBy, Evolution, SkippingColumns


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
    """The address of Glue, where it is not that of its region."""
    region: str | None = None
    options: StorageOptions = field(default_factory=StorageOptions)
    """By whose credentials it is asked."""

    @property
    def name(self) -> str:
        """Return the name by which engines know the table."""
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """One table, and how files are committed to it."""

    name: str
    table_uri: str
    storage_options: StorageOptions = field(default_factory=StorageOptions)
    poll_interval: float = 10.0
    """Seconds between two looks at the table directory."""
    checkpoint_interval: int | None = None
    """Commits between two Delta checkpoints; None for as many as the size of the table asks for."""
    evolution: Evolution = Evolution.MERGE
    discovery: DiscoverBy = DiscoverBy.AUTO
    max_files_per_commit: int = 10_000
    """Entries share a commit up to this many files; one entry is never split."""
    partition_columns: tuple[str, ...] | None = None
    """What the configuration says of the partition columns; None where it says nothing."""
    partition_template: str | None = None
    """The `prefix_template` of `partition_by`, of which a new table's column types are taken."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Delta table properties."""
    skipping: SkippingColumns = SkippingColumns.ALL
    """Which columns get bounds that readers skip files by."""
    partition_filter: Window | None = None
    """Which folders a first look reaches back to."""
    late_window: float = 3600.0
    """How many seconds of names below a folder's watermark are listed at every poll."""
    sweep_interval: float = 3600.0
    """Seconds between two full comparisons."""
    sweep_horizon: Window | None = None
    """How far back a full comparison goes; None for all the way."""
    file_pattern: str | None = None
    """Which files a scan takes besides `{uuidv7}.parquet`."""
    catalog: CatalogSettings | None = None
    """Where the table is registered for other engines; None for nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PenguinSettings(ProgramSettings):
    """Everything one penguin process does."""

    tables: tuple[TableSettings, ...]
    unclaimed: Mapping[str, str] = field(default_factory=dict)
    """The sinks that no table of the configuration is at, by the pipelines that write to them."""


class TableMissing(ObjectMissing):
    """There is neither a table nor a journal at the place of a table."""


class TableExists(LakeError, code="table_exists", whose=Whose.EXTERNAL, retryable=True):
    """Somebody else created the table first."""


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
    """An entry reads the sources of a file again that is in the table."""
