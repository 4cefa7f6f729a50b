"""Turn tables in YAML into settings, without loading Arrow or Delta."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from lakebed.config.checks import package_faults, program_settings, window_faults, windows_of
from lakebed.config.faults import ConfigFault, options_at
from lakebed.config.files import Given
from lakebed.config.loader import load_document
from lakebed.config.models import (
    Catalog,
    Document,
    KeyPath,
    PartitionBy,
    TableSection,
    place_in,
    plain,
)
from lakebed.config.section import settings_of
from lakebed.locations import ByPlace
from lakebed.partition import Template
from lakebed.storage.options import StorageOptions
from lakebed.types import CatalogType, CommitMode
from penguin.model.settings import CatalogSettings, PenguinSettings, TableSettings

METASTORE = re.compile(r"thrift://[\w.-]+:\d+|thrift://\[[0-9a-fA-F:]+\]:\d+")
NAME = re.compile(r"[a-z0-9_]{1,128}")
NEEDS = {CatalogType.GLUE: ("botocore", "glue"), CatalogType.HIVE: ("thriftpy2", "hive")}
"""The library of a catalog, and the extra that installs it."""


def _catalog_faults(path: KeyPath, name: str, given: Catalog | None) -> Iterator[ConfigFault]:
    """Yield what is wrong with the catalog of a table."""
    if given is None:
        return
    library, extra = NEEDS[given.type]
    yield from package_faults(path, library, library, extra)
    if given.table is None and not NAME.fullmatch(name):
        yield ConfigFault(
            (*path, "table"),
            f"is missing, and {name} cannot name a table of a catalog: use only lower-case "
            "letters, digits and _",
        )
    if given.type is CatalogType.HIVE:
        if given.uri is None or not METASTORE.fullmatch(given.uri):
            yield ConfigFault(
                (*path, "uri"), "must be the address of a metastore: thrift://host:9083"
            )
        for key in ("endpoint", "region", "storage_options"):
            if getattr(given, key):
                yield ConfigFault((*path, key), "belongs to type glue")
    elif given.uri is not None:
        yield ConfigFault((*path, "uri"), "belongs to type hive; Glue has an endpoint")


def _catalog_settings(document: Document, name: str, table: TableSection) -> CatalogSettings | None:
    """Return the catalog settings of a table; None without a catalog."""
    given = table.catalog
    if given is None:
        return None
    here = ("tables", name)
    own = plain(given.storage_options)
    options = options_at(document, here, table.storage_options, place="table_uri")
    return settings_of(
        CatalogSettings,
        given,
        table=given.table or name,
        # Either its own credentials or the table's, never a mixture.
        options=StorageOptions(own) if own else options,
    )


FORGETS = "delta.setTransactionRetentionDuration"

NO_TABLE = """\
no table is configured: penguin needs a section like
tables:
  events:
    table_uri: s3://my-bucket/delta-tables/events
    poll_interval_secs: 10
    storage_options:
      AWS_REGION: us-east-1"""


Refuse = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Returns why table properties are refused, by property."""


def load(
    files: Sequence[Given],
    folders: Sequence[Path],
    environment: Mapping[str, str],
    refused_properties: Refuse = lambda _properties: {},
) -> PenguinSettings:
    """Load a configuration; ConfigInvalid carries all of its faults.

    Only Delta knows which table properties it accepts: a caller that has loaded it passes
    `refused_properties`.
    """
    check = partial(_check, refused_properties=refused_properties)
    document = _with_partitions(load_document(files, folders, environment, check))
    return PenguinSettings(
        unclaimed=dict(_unclaimed(document)),
        tables=tuple(_settings(document, name, table) for name, table in document.tables.items()),
        **program_settings(document, "penguin"),
    )


def _unclaimed(document: Document) -> Iterator[tuple[str, str]]:
    """Yield the pipelines that rely on penguin, but whose sink is the URI of no table."""
    tables: ByPlace[bool] = ByPlace()
    for table in document.tables.values():
        tables.setdefault(place_in(table.table_uri, table.storage_options), value=True)
    for _, name, pipeline in document.named_pipelines():
        sink = pipeline.sink
        if sink is None or sink.uri is None or sink.commit is not CommitMode.PENGUIN:
            continue
        if not tables.get(place_in(sink.uri, sink.storage_options)):
            yield name, sink.uri


def _with_partitions(document: Document) -> Document:
    """Give a table without partitions those of the sink that writes to it."""
    sinks: ByPlace[PartitionBy | None] = ByPlace()
    for _, _, pipeline in document.named_pipelines():
        if (sink := pipeline.sink) is not None and sink.uri is not None:
            sinks.setdefault(place_in(sink.uri, sink.storage_options), sink.partition_by)
    tables = {
        name: table.model_copy(
            update={
                "partition_by": table.partition_by
                or sinks.get(place_in(table.table_uri, table.storage_options))
            }
        )
        for name, table in document.tables.items()
    }
    return document.model_copy(update={"tables": tables})


def _check(written: Document, *, refused_properties: Refuse) -> Iterator[ConfigFault]:
    document = _with_partitions(written)
    if not document.tables:
        yield ConfigFault((), NO_TABLE)
    for name, table in document.tables.items():
        if FORGETS in table.table_properties:
            yield ConfigFault(
                ("tables", name, "table_properties", FORGETS),
                "must not be set: the table would forget which batches it already contains",
            )
        elif table.table_properties:
            for key, why in refused_properties(table.table_properties).items():
                place = ("tables", name, "table_properties", key)
                yield ConfigFault(place, f"a table cannot be created with it: {why}")
        yield from window_faults(
            ("tables", name), table, table.partition_by, divided_by="partition_by"
        )
        yield from _catalog_faults(("tables", name, "catalog"), name, table.catalog)


def _settings(document: Document, name: str, table: TableSection) -> TableSettings:
    template = table.partition_by.prefix_template if table.partition_by else None
    lookback, horizon = windows_of(table, table.partition_by)
    return settings_of(
        TableSettings,
        table,
        name=name,
        storage_options=options_at(
            document, ("tables", name), table.storage_options, place="table_uri"
        ),
        checkpoint_interval=table.delta_checkpoint_interval,
        evolution=table.schema_evolution,
        partition_columns=None if template is None else Template.parse(template).keys,
        partition_template=template,
        properties=dict(table.table_properties),
        partition_filter=lookback,
        sweep_horizon=horizon,
        catalog=_catalog_settings(document, name, table),
    )
