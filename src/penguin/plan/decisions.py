"""What a table becomes for files, by the settings: created, evolved, replaced. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lakebed.deltalog.delta_types import DeltaSchema, TableFacts, features_needed
from penguin.model.commit import Add, Changes, EntryRefused, Evolves
from penguin.model.settings import TableSettings
from penguin.plan import evolution, stats

CREATED_WITH = {
    # penguin writes checkpoints itself, as a step of its own. This keeps the hooks of other
    # writers from doing so at every tenth commit, and still bounds the log if penguin is away.
    "delta.checkpointInterval": "100",
    # A file may wait this long for its commit before a VACUUM may delete it.
    "delta.deletedFileRetentionDuration": "interval 14 days",
}


@dataclass(slots=True, kw_only=True)
class CommitDraft:
    """A commit in the making: the table before and after it, and the files that it adds."""

    settings: TableSettings
    unused: Callable[[], bool]
    """Whether no row was ever written to the table: the first files decide what it is then."""
    table: TableFacts | None
    after: TableFacts | None
    changes: Changes = field(default_factory=Changes)
    adds: dict[str, Add] = field(default_factory=dict)
    replaces: bool = False

    def evolve(self, table: TableFacts, becomes: Evolves, *, replaces: bool = False) -> None:
        """Let the table become what files need."""
        self.table, self.after = table, becomes.table
        self.changes = self.changes.then(becomes.changes)
        self.replaces = self.replaces or replaces


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
) -> Evolves | EntryRefused:
    """Return what a table must be to hold files with these columns: itself, where they fit."""
    found = evolution.decide(settings.evolution, table, schema, partition_columns)
    if isinstance(found, EntryRefused) or found.table is table:
        return found
    listed = stats.ListedColumns(settings.skipping, floats).after(table, found.table)
    return replace(found, table=replace(found.table, configuration=listed))
