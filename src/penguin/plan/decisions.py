"""What a table becomes for files, by the settings: created, evolved, replaced. Pure."""

from collections.abc import Callable
from dataclasses import replace

from lakebed.deltalog.delta_types import DeltaSchema, TableFacts, features_needed
from lakebed.types import Evolution
from penguin.model.settings import TableSettings
from penguin.model.table import Decision, Evolves, Fits, Refused
from penguin.plan import evolution, stats

CREATED_WITH = {
    # penguin writes checkpoints itself, as a step of its own. This keeps the hooks of other
    # writers from doing so at every tenth commit, and still bounds the log if penguin is away.
    "delta.checkpointInterval": "100",
    # A file may wait this long for its commit before a VACUUM may delete it.
    "delta.deletedFileRetentionDuration": "interval 14 days",
}


def may_release(decision: Decision, settings: TableSettings, *, asked: bool) -> bool:
    """Whether a file that was set aside goes in.

    Where newer files replace the schema, an old one does not put the old schema back by itself.
    """
    if settings.evolution is Evolution.OVERWRITE and not asked:
        return isinstance(decision, Fits)
    return not isinstance(decision, Refused)


def created_as(
    schema: DeltaSchema,
    partition_columns: tuple[str, ...],
    settings: TableSettings,
    *,
    floats: bool = True,
) -> TableFacts:
    """Return what a table with these columns is created as; `floats` as in `ListedColumns`."""
    bounded = stats.ListedColumns(settings.skipping, floats).of(schema, partition_columns)
    return TableFacts(
        version=None,
        schema=schema,
        partition_columns=partition_columns,
        configuration={
            **CREATED_WITH,
            stats.SKIPPING_PROPERTY: stats.format_columns(bounded),
            **settings.properties,
        },
        features=features_needed(schema),
    )


def replacement(
    table: TableFacts,
    schema: DeltaSchema,
    partition_columns: tuple[str, ...],
    settings: TableSettings,
    unused: Callable[[], bool],
    *,
    floats: bool = True,
) -> Evolves | None:
    """Return what a table becomes for its first files; None where it may not be replaced."""
    found = evolution.replaced(table, schema, partition_columns)
    if found is None or not unused():
        return None
    name = stats.SKIPPING_PROPERTY
    bounded = stats.ListedColumns(settings.skipping, floats).of(schema, partition_columns)
    listed = {name: settings.properties.get(name, stats.format_columns(bounded))}
    after = replace(found.table, configuration={**found.table.configuration, **listed})
    return replace(found, table=after)


def decide_on(
    table: TableFacts,
    schema: DeltaSchema,
    partition_columns: tuple[str, ...],
    settings: TableSettings,
    *,
    floats: bool = True,
) -> Decision:
    """Whether a table can hold files with these columns, and what it must be for that."""
    found = evolution.decide(settings.evolution, table, schema, partition_columns)
    if not isinstance(found, Evolves):
        return found
    listed = stats.ListedColumns(settings.skipping, floats).after(table, found.table)
    return replace(found, table=replace(found.table, configuration=listed))
