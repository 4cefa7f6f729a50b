"""Decide how a table is created, evolved or replaced for files, by the settings. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lakebed.deltalog.delta_types import DeltaSchema, TableFacts, features_needed, struct_of
from penguin.model.commit import CommitPlan, EntryRefused, Evolves
from penguin.model.settings import TableSettings
from penguin.plan import evolution, stats

CREATED_WITH = {
    # penguin writes checkpoints itself, as a step of its own. This keeps the hooks of other
    # writers from doing so at every tenth commit, and still bounds the log if penguin is away.
    "delta.checkpointInterval": "100",
    # A file may wait this long for its commit before a VACUUM may delete it.
    "delta.deletedFileRetentionDuration": "interval 14 days",
}


NOT_MADE = TableFacts(version=None, schema=struct_of(()), partition_columns=(), configuration={})
"""A table that neither exists nor has been decided on."""


@dataclass(slots=True, kw_only=True)
class CommitDraft:
    """A commit that is being planned."""

    settings: TableSettings
    unused: Callable[[], bool]
    """Whether no row was ever written to the table: then its first files define it."""
    plan: CommitPlan
    has_table: bool
    """Whether the table exists, or the plan creates it."""

    def evolve(self, table: TableFacts, becomes: Evolves, *, replaces: bool = False) -> None:
        """Evolve the planned table for files."""
        plan = self.plan
        self.has_table, plan.table, plan.after = True, table, becomes.table
        plan.changes = plan.changes.then(becomes.changes)
        plan.replaces = plan.replaces or replaces


def empty_plan(table: TableFacts | None) -> CommitPlan:
    """Return an empty commit to a table."""
    before = table or NOT_MADE
    return CommitPlan(table=before, after=before)


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
    """Return what an unused table becomes for its first files; None if it may not be replaced."""
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
) -> Evolves | EntryRefused:
    """Decide what a table must become to hold files with these columns."""
    found = evolution.decide(settings.evolution, table, schema, partition_columns)
    if isinstance(found, EntryRefused) or found.table is table:
        return found
    listed = stats.ListedColumns(settings.skipping, floats).after(table, found.table)
    return replace(found, table=replace(found.table, configuration=listed))
