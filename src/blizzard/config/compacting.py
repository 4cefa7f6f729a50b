"""`sink.compact` as settings, and what is wrong with it, held against the columns. Pure."""

from collections.abc import Iterator

from blizzard.config.columns import schema_of
from blizzard.model.settings import CompactSettings
from lakebed.config.faults import Fault, columns_of
from lakebed.config.models import Compact, KeyPath, Sink
from lakebed.config.schema import DeclaredSchema
from lakebed.partition import Template
from lakebed.types import FieldType, Provenance
from lakebed.units import mebibytes

UNSORTED = (FieldType.STRUCT, FieldType.LIST, FieldType.MAP)


def settings_of(compact: Compact | None) -> CompactSettings:
    """Return the settings of a section; one that is not there says nothing of its own."""
    compact = compact or Compact()
    return CompactSettings(
        enabled=compact.enabled,
        every=compact.every_secs,
        min_files=compact.min_files,
        quiet=compact.quiet_secs,
        max_bytes=mebibytes(compact.max_mb),
        cluster_by=tuple(compact.cluster_by),
    )


def faults(path: KeyPath, sink: Sink, schema: DeclaredSchema | None) -> Iterator[Fault]:
    """Yield the columns that rows cannot be sorted by."""
    wanted = [] if sink.compact is None else sink.compact.cluster_by
    if not wanted:
        return
    here = (*path, "sink", "compact", "cluster_by")
    if len(set(wanted)) < len(wanted):
        yield Fault(here, "names a column twice")
    if schema is None or Provenance.FILE not in schema.provenance:
        yield Fault(
            here,
            "needs schema.provenance: [file, line]: once rows are sorted, only these columns say "
            "where they came from; leave cluster_by out to keep the order of the rows",
            near=(here, (*path, "schema", "provenance")),
        )
    kinds = {} if schema is None else {one.name: one.type for one in schema_of(schema).fields}
    is_whole = schema is not None and not schema.is_inferred
    parts = _partition_columns(sink)
    for name in wanted:
        if name in parts:
            yield Fault(here, f"names {name}, which is a partition column already")
        elif kinds.get(name) in UNSORTED:
            yield Fault(here, f"names {name}, whose values have no order: it is nested")
        elif is_whole and name not in kinds and not _is_added(name, schema):
            told = f"names {name}, which is no column of the schema"
            yield Fault(here, told, near=(here, *columns_of(path)))


def _is_added(name: str, schema: DeclaredSchema | None) -> bool:
    return schema is not None and name in {which.column for which in schema.provenance}


def _partition_columns(sink: Sink) -> tuple[str, ...]:
    if sink.partition_by is None:
        return ()
    try:
        return Template.parse(sink.partition_by.prefix_template).keys
    except ValueError:
        return ()  # It is reported where the template is checked.
