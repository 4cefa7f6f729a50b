"""Tables as written in YAML, made into settings. Neither Arrow nor Delta is needed for it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lake.config.loader import Fault, load_document, not_acted_on
from lake.config.models import Document, Table, storage_options, template_keys
from penguin.settings import METRICS_ADDRESS, DiscoverBy, Evolution, PenguinSettings, TableSettings

NOT_YET: Mapping[str, str] = {
    "tables.*.partition_by.timestamp_field": "partition values come from the files' folders",
    "tables.*.partition_filter": "every journal entry is looked at, from the first one on",
    "tables.*.file_pattern": "only files that a journal names are committed",
    "tables.*.late_window_secs": "files are found by the journal, which has none that are late",
    "tables.*.sweep_interval_secs": "files are found by the journal, without a sweep",
    "tables.*.sweep_horizon": "files are found by the journal, without a sweep",
}
"""Keys that are read and do nothing so far, with what happens instead."""

FORGETS = "delta.setTransactionRetentionDuration"

NO_TABLE = """\
no table is configured: penguin needs a section like
tables:
  events:
    table_uri: s3://my-bucket/delta-tables/events
    poll_interval_secs: 10
    storage_options:
      AWS_REGION: us-east-1"""


def load(
    files: Sequence[Path], folders: Sequence[Path], environment: Mapping[str, str]
) -> PenguinSettings:
    """Read a configuration; ConfigInvalid carries every fault of it."""
    document = load_document(files, folders, environment, _check)
    return PenguinSettings(
        tables=tuple(_settings(name, table) for name, table in document.tables.items()),
        metrics_enabled=document.metrics.enabled,
        metrics_address=document.metrics.address or METRICS_ADDRESS,
        warnings=tuple(warnings(document)),
    )


def warnings(document: Document) -> list[str]:
    """Give a line for each of penguin's keys that is present and not acted on yet."""
    return not_acted_on(document, NOT_YET)


def _check(document: Document) -> Iterator[Fault]:
    if not document.tables:
        yield Fault((), NO_TABLE, near=(("tables",),))
    for name, table in document.tables.items():
        if FORGETS in table.table_properties:
            yield Fault(
                ("tables", name, "table_properties", FORGETS),
                "must not be set: the table would forget which batches it already holds",
            )


def _settings(name: str, table: Table) -> TableSettings:
    template = table.partition_by.prefix_template if table.partition_by else None
    return TableSettings(
        name=name,
        table_uri=table.table_uri,
        storage_options=storage_options(table.storage_options),
        poll_interval=table.poll_interval_secs,
        checkpoint_interval=table.delta_checkpoint_interval,
        evolution=Evolution(table.schema_evolution),
        discovery=DiscoverBy(table.discovery),
        max_files_per_commit=table.max_files_per_commit,
        partition_columns=None if template is None else template_keys(template),
        properties=dict(table.table_properties),
    )
