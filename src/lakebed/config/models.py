"""The document as written in YAML: sections of both programs, closed, with units in the keys.

Each program validates the whole document and uses its part. Nothing here touches Arrow or Delta, so
that reading a configuration stays cheap. Values arrive as text, from the file or from the
environment; the types below convert them. A message about a value never repeats it: it may be a
secret.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
)

from lakebed.config.schema import DeclaredSchema
from lakebed.config.section import Flag, Section, Text, local, location, prefix, source_location
from lakebed.listing.lookback import compiled
from lakebed.locations import Place, place_of
from lakebed.partition import Template
from lakebed.storage.options import bare
from lakebed.telemetry.settings import NAMESPACE, token
from lakebed.types import (
    CatalogType,
    CommitMode,
    Compression,
    DiscoverBy,
    Evolution,
    Handoff,
    OnBadRecord,
    OnChange,
    ParquetCodec,
    SourceFormat,
)
from lakebed.units import mebibytes


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be a URL that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a password; put credentials into the headers")
    return text


Url = Annotated[Text, AfterValidator(_url)]


class Telemetry(Section):
    """Where traces and lineage are sent."""

    otlp_endpoint: Url | None = None
    otlp_headers: dict[str, SecretStr] = {}
    openlineage_url: Url | None = None
    openlineage_headers: dict[str, SecretStr] = {}
    openlineage_namespace: Text = NAMESPACE


KeyPath = tuple[str | int, ...]
DEFAULT_NAME = "default"

TEMPLATE_CODES = ("%s", "%Y", "%y", "%m", "%d", "%j", "%G", "%V", "%H", "%M", "%S")
"""The codes of a `prefix_template`: any value, or a part of a time."""
_CODE = re.compile("%.?", re.DOTALL)


def place_in(uri: str, options: Mapping[str, SecretStr]) -> Place:
    """Return the place of a URI, with the account from the options."""
    named = (value for name, value in options.items() if bare(name.lower()) == "account_name")
    account = next(named, None)
    return place_of(uri, account="" if account is None else account.get_secret_value())


def plain(secrets: Mapping[str, SecretStr]) -> dict[str, str]:
    """Return the plain values of secrets."""
    return {name: value.get_secret_value() for name, value in secrets.items()}


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    return text


def _a_byte_at_least(count: float) -> float:
    if mebibytes(count) < 1:
        raise ValueError("must be at least one byte")
    return count


def _template(text: str) -> str:
    for number, part in enumerate(Template.parse(text).parts, start=1):
        if not set(_CODE.findall(part.pattern)) <= set(TEMPLATE_CODES):
            known = f"{', '.join(TEMPLATE_CODES[:-1])} and {TEMPLATE_CODES[-1]}"
            raise ValueError(f"part {number} of it has an unknown % code; the codes are {known}")
    return text.strip("/")


def _pattern(text: str) -> str:
    compiled(text)
    return text


def _address(text: str) -> str:
    found = re.fullmatch(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):(\d{1,5})", text)
    if not found or not int(found[1]) < 65_536:
        raise ValueError("must be host:port, as in 127.0.0.1:9090")
    return text


def _folder(text: str) -> str:
    if not (text := local(text)).startswith("/"):
        raise ValueError("must be a full path of a local disk, as in /mnt/lake")
    return text


def _token(given: SecretStr) -> SecretStr:
    token(given.get_secret_value())
    return given


Count = Annotated[int, Field(gt=0)]
CountOrZero = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
SecondsOrZero = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Ratio = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Megabytes = Annotated[
    float,
    Field(gt=0, allow_inf_nan=False),
    AfterValidator(_a_byte_at_least),
]
CatalogName = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,128}$")]
"""Lower case, as Glue, Athena and Hive require."""
Location = Annotated[Text, AfterValidator(_without_nul), AfterValidator(location)]
SourceLocation = Annotated[Text, AfterValidator(_without_nul), AfterValidator(source_location)]
Prefix = Annotated[Text, AfterValidator(_without_nul), AfterValidator(prefix)]
Address = Annotated[str, AfterValidator(_address)]
Folder = Annotated[Text, AfterValidator(_folder)]
Port = Annotated[int, Field(ge=0, le=65_535)]
Token = Annotated[SecretStr, AfterValidator(_token)]
LocalFile = Annotated[Text, AfterValidator(_without_nul), AfterValidator(local)]


class PartitionBy(Section):
    """The partition folders of the table."""

    prefix_template: Annotated[Text, AfterValidator(_template)]
    timestamp_field: Text | None = None


class PartitionFilter(Section):
    """The folders that a first listing covers."""

    prefix_template: Text
    lookback: Count


class Discovering(Section):
    """How late files are found, both source files and scanned Parquet files."""

    partition_filter: PartitionFilter | None = None
    late_window_secs: Seconds = 3600
    sweep_interval_secs: Seconds = 3600
    sweep_horizon: Count | None = None


class SkipRecords(Section):
    """Records to skip: those that match any of these rules."""

    only_key: list[Text] = []
    with_key: list[Text] = []
    without_key: list[Text] = []


class Notifications(Section):
    """A queue in which an object store announces new objects."""

    queue: Text
    storage_options: dict[str, SecretStr] = {}


class Source(Discovering):
    """A location of source files."""

    located = "storage_options", "path"
    path: SourceLocation
    storage_options: dict[str, SecretStr] = {}
    compression: Compression = Compression.AUTO
    format: SourceFormat = SourceFormat.NDJSON
    records: Text | None = None
    skip_records: SkipRecords | None = None
    max_concurrent_files: Count = 16
    batch_size: Count = 8192
    poll_interval_secs: Seconds = 10
    max_files_per_batch: Count = 10_000
    max_bytes_per_batch: Count = 16 * 1024**3
    min_age_secs: SecondsOrZero = 0
    on_change: OnChange = OnChange.ERROR
    notifications: Notifications | None = None


class Compact(Section):
    """Which small data files are merged, and when a run does so by itself."""

    enabled: Flag = False
    every_secs: Seconds = 3600
    min_files: Annotated[Count, Field(ge=2)] = 4
    quiet_secs: SecondsOrZero = 600
    max_mb: Megabytes = 10_240


class Sink(Section):
    """The table directory, and how files are written to it."""

    located = "storage_options", "uri"
    path: Location | None = None
    table_uri: Location | None = None
    storage_options: dict[str, SecretStr] = {}
    file_size_mb: Megabytes = 128
    row_group_size_bytes: Count = 134_217_728
    compression: ParquetCodec = ParquetCodec.SNAPPY
    inactivity_timeout_secs: Seconds = 60
    rollover_timeout_secs: Seconds = 300
    max_concurrent_uploads: Count = 4
    part_size_mb: Megabytes = 32
    min_multipart_size_mb: Megabytes = 5
    max_concurrent_parts: Count = 8
    handoff: Handoff = Handoff.JOURNAL
    commit: CommitMode = CommitMode.PENGUIN
    late_after_secs: Seconds = 900
    partition_by: PartitionBy | None = None
    compact: Compact | None = None

    @property
    def uri(self) -> str | None:
        """Return the table directory, given as `table_uri` or `path`."""
        return self.table_uri or self.path

    @property
    def template(self) -> Template | None:
        """Return the template of the table's partition folders; None without partitions."""
        return Template.parse(self.partition_by.prefix_template) if self.partition_by else None


class ErrorHandling(Section):
    """How unreadable lines and failed files are handled."""

    located = "dlq_storage_options", "dlq_path"
    max_failures: CountOrZero = 0
    dlq_path: Location | None = None
    dlq_storage_options: dict[str, SecretStr] = {}
    on_bad_record: OnBadRecord = OnBadRecord.FAIL
    max_bad_records: Count | None = None
    max_bad_ratio: Ratio | None = None
    show_values: Flag = False


class PipelineSection(Section):
    """One pipeline: an entry of `pipelines`."""

    source: Source | None = None
    sources: dict[str, Source] = {}
    sink: Sink | None = None
    schema_: DeclaredSchema | None = Field(default=None, alias="schema")
    error_handling: ErrorHandling = Field(default_factory=ErrorHandling)

    def named_sources(self) -> Iterator[tuple[KeyPath, str, Source]]:
        """Yield every source with its key path below the pipeline, and its name."""
        if self.source is not None:
            yield ("source",), DEFAULT_NAME, self.source
        for name, source in self.sources.items():
            yield ("sources", name), name, source


class Catalog(Section):
    """A catalog that names a table for other engines."""

    type: CatalogType
    database: CatalogName
    table: CatalogName | None = None
    location: Text | None = None
    uri: Text | None = None
    endpoint: Text | None = None
    region: Text | None = None
    storage_options: dict[str, SecretStr] = {}


class TableSection(Discovering):
    """One table that penguin commits to."""

    located = "storage_options", "table_uri"
    table_uri: Location
    storage_options: dict[str, SecretStr] = {}
    poll_interval_secs: Seconds = 10
    delta_checkpoint_interval: Count | None = None
    schema_evolution: Evolution = Evolution.MERGE
    discovery: DiscoverBy = DiscoverBy.AUTO
    partition_by: PartitionBy | None = None
    max_files_per_commit: Count = 10_000
    file_pattern: Annotated[Text, AfterValidator(_pattern)] | None = None
    table_properties: dict[str, str] = {}
    catalog: Catalog | None = None


class StorageProfile(Section):
    """Options for the stores at locations that begin with a prefix."""

    prefix: Prefix
    options: dict[str, SecretStr]


class Global(Section):
    """Settings that all pipelines of a process share."""

    total_concurrency: Count | None = None
    poll_jitter_secs: SecondsOrZero = 0


class Spark(Section):
    """Where Spark runs."""

    master: Text = "local[*,4]"
    conf: dict[str, SecretStr] = {}
    shared_paths: list[Folder] = []
    line_port: Port = 0


class Metrics(Section):
    """The addresses and access control of the metrics server; `checks` assigns the addresses."""

    enabled: Flag = False
    page: Flag = True
    address: Address | None = None
    blizzard_address: Address | None = None
    penguin_address: Address | None = None
    token: Token | None = None
    token_file: LocalFile | None = None
    tls_cert_file: LocalFile | None = None
    tls_key_file: LocalFile | None = None


class Document(Section):
    """The merged content of all configuration files."""

    source: Source | None = None
    sink: Sink | None = None
    schema_: DeclaredSchema | None = Field(default=None, alias="schema")
    error_handling: ErrorHandling | None = None
    pipelines: dict[str, PipelineSection] = {}
    tables: dict[str, TableSection] = {}
    storage: list[StorageProfile] = []
    global_: Global = Field(default=Global(), alias="global")
    spark: Spark = Field(default_factory=Spark)
    metrics: Metrics = Field(default_factory=Metrics)
    telemetry: Telemetry = Field(default_factory=Telemetry)

    @property
    def has_single_form(self) -> bool:
        """Whether there is a pipeline at the top level of the document."""
        return any((self.source, self.sink, self.schema_, self.error_handling))

    def named_pipelines(self) -> Iterator[tuple[KeyPath, str, PipelineSection]]:
        """Yield every pipeline with its key path and name; the single form is `default`."""
        if self.has_single_form:
            yield (
                (),
                DEFAULT_NAME,
                PipelineSection(
                    source=self.source,
                    sink=self.sink,
                    schema=self.schema_,
                    error_handling=self.error_handling or ErrorHandling(),
                ),
            )
        for name, pipeline in self.pipelines.items():
            yield ("pipelines", name), name, pipeline
