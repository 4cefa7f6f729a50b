"""Decide how a table is created, evolved or replaced for files, by the settings. Pure.

The table's schema is the contract: every file in the table stays readable by every reader. So a
type changes only if all readers read earlier files as the new type, and every new column is
nullable. A column that `overwrite` drops is remembered in a table property: files still hold it, so
it may come back only as a type that reads them.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from lakebed.columns.column_mapping import DeltaType, maps_columns
from lakebed.deltalog.delta_types import (
    DROPPED_PROPERTY,
    DeltaField,
    DeltaSchema,
    TableFacts,
    by_name,
    clean,
    dropped_columns,
    features_needed,
    kind_of,
    nullable_field,
    reads,
    reasons_against_adding,
    reasons_against_type,
    same_fields,
    struct_of,
    type_name,
    why_no_table,
)
from lakebed.types import RESCUED, Evolution
from penguin.model.commit import Changes, Decision, EntryRefused, Evolves
from penguin.model.settings import TableSettings
from penguin.plan import stats
from penguin.plan.column_rules import (
    ASK_FOR_MORE,
    reasons_against_change,
    reasons_against_names,
)


def decide(
    mode: Evolution, table: TableFacts, entry: DeltaSchema, entry_partitions: tuple[str, ...]
) -> Decision:
    """Decide whether a table can hold files of an entry's schema, and how it must change."""
    hidden = dropped_columns(table)
    if hidden is None:
        return EntryRefused((f"the table property {DROPPED_PROPERTY} cannot be read",))
    walk = _SchemaWalk(mode, frozenset(table.partition_columns), table.features, by_name(hidden))
    schema = walk.struct(table.schema, entry, inside="")
    reasons = (
        *_partition_reasons(table.partition_columns, entry_partitions),
        *reasons_against_names(table, entry),
        *walk.reasons,
    )
    if reasons:
        return EntryRefused(reasons)
    after = replace(table, schema=schema, configuration=_remembering(table, walk.hidden))
    if (after.schema, after.configuration) == (table.schema, dict(table.configuration)):
        return Evolves(table, Changes())
    against = tuple(reasons_against_change(table, walk.changes()))
    return EntryRefused(against) if against else Evolves(after, walk.changes())


def _partition_reasons(table: tuple[str, ...], entry: tuple[str, ...]) -> Iterator[str]:
    if table != entry:
        yield (
            f"the table is partitioned by {_listing(table)}, the files by {_listing(entry)}; "
            "both must be the same columns in the same order"
        )


@dataclass(slots=True)
class _SchemaWalk:
    """One walk through both schemas: merges them, or collects the reasons against it."""

    mode: Evolution
    partitions: frozenset[str]
    features: frozenset[str] = frozenset()
    hidden: dict[str, DeltaField] = field(default_factory=dict)
    """The dropped columns that files still hold."""
    reasons: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    widened: list[str] = field(default_factory=list)

    def changes(self) -> Changes:
        return Changes(tuple(self.added), tuple(self.dropped), tuple(self.widened))

    def struct(self, table: DeltaSchema, entry: DeltaSchema, *, inside: str) -> DeltaSchema:
        """Return the merged struct.

        Fields keep the table's order; new ones come last. Values of partition columns are in paths:
        such a column is never missing or dropped, and its nulls are checked value by value.
        """
        ours, theirs = by_name(table), by_name(entry)
        hidden = {} if inside else self.hidden
        self._check_case([*ours, *hidden], entry, inside)
        kept = []
        for name, mine in ours.items():
            partition = not inside and name in self.partitions
            if name in theirs:
                kept.append(self._field(mine, theirs[name], inside + name, partition=partition))
            elif inside and self.mode is Evolution.OVERWRITE:
                kept.append(self._stays(mine, inside + name))
            elif partition or self._may_lack(mine, inside + name):
                kept.append(mine)
            else:
                hidden[name] = nullable_field(name, clean(mine["type"]))
        for name, new in theirs.items():
            if name not in ours:
                kept.append(self._new(new, hidden.pop(name, None), inside + name))
        return struct_of(kept)

    def _check_case(self, known: list[str], entry: DeltaSchema, inside: str) -> None:
        """Refuse names that differ only in case: many readers treat them as one."""
        seen = {name.casefold(): name for name in known}
        for one in entry["fields"]:
            twin = seen.setdefault(one["name"].casefold(), one["name"])
            if twin != one["name"]:
                self.reasons.append(
                    f"{inside}{one['name']}: differs from {inside}{twin} only in case"
                )

    def _stays(self, mine: DeltaField, shown: str) -> DeltaField:
        """Return a struct field that the files lack: it is not dropped, and null for them.

        deltalake cannot scan a struct if a file has none of its fields, and which fields each
        earlier file has is unknown.
        """
        if not mine["nullable"]:
            self.widened.append(shown)
        return {**mine, "nullable": True}

    def _may_lack(self, mine: DeltaField, shown: str) -> bool:
        """Whether a column that the files lack stays in the table.

        Files have `_rescued` only if something was rescued, so it always stays.
        """
        kind = type_name(mine["type"])
        if shown == RESCUED and mine["nullable"]:
            return True
        match self.mode:
            case Evolution.OVERWRITE:
                self.dropped.append(shown)
                return False
            case Evolution.STRICT:
                self.reasons.append(
                    f"{shown}: the table has type {kind}, the files do not have it, "
                    "and strict accepts no difference"
                )
            case Evolution.MERGE if not mine["nullable"]:
                self.reasons.append(
                    f"{shown}: the table has type {kind} and requires it, the files do not have it"
                )
        return True

    def _field(
        self, mine: DeltaField, theirs: DeltaField, shown: str, *, partition: bool
    ) -> DeltaField:
        kind = self.kind(mine["type"], theirs["type"], shown, fixed=partition)
        nullable = mine["nullable"]
        if theirs["nullable"] and not nullable and not partition:
            nullable = self._may_relax(
                shown,
                f"{shown}: type {type_name(theirs['type'])} may be null in the files, "
                f"the table requires it",
            )
        return {**mine, "type": kind, "nullable": nullable}

    def _may_relax(self, shown: str, reason: str) -> bool:
        if self.mode is Evolution.OVERWRITE:
            self.widened.append(shown)
            return True
        self.reasons.append(reason)
        return False

    def _new(self, theirs: DeltaField, dropped: DeltaField | None, shown: str) -> DeltaField:
        """Add a field: nullable at all depths, and able to read what files already hold of it."""
        kind = theirs["type"]
        if self.mode is Evolution.STRICT:
            self.reasons.append(
                f"{shown}: the table does not have it, the files have type {type_name(kind)}, "
                f"and strict accepts no difference; {_way_in(shown)}"
            )
        else:
            self.reasons += reasons_against_adding(theirs, shown, self.features)
        if dropped is not None:
            again = _SchemaWalk(Evolution.OVERWRITE, frozenset())
            kind = again.kind(dropped["type"], kind, shown, fixed=False)
            self.reasons += [f"{reason} (it was dropped before)" for reason in again.reasons]
        self.added.append(shown)
        return nullable_field(theirs["name"], clean(kind))

    def kind(self, table: DeltaType, entry: DeltaType, shown: str, *, fixed: bool) -> DeltaType:
        """Return the type that reads files of both."""
        match kind_of(table), kind_of(entry):
            case "struct", "struct":
                return self.struct(table, entry, inside=f"{shown}.")
            case "array", "array":
                return self._inside(table, entry, shown, "elementType", "containsNull")
            case "map", "map" if clean(table["keyType"]) == clean(entry["keyType"]):
                if same_fields(table["valueType"], entry["valueType"]):
                    return self._inside(table, entry, shown, "valueType", "valueContainsNull")
                # deltalake fails on other fields, or returns the values of one for another's.
                self.reasons.append(
                    f"{shown}: the table has type {type_name(table)}, the files have type "
                    f"{type_name(entry)}; structs inside a map must have the same fields in every "
                    "file, because deltalake does not match them by name"
                )
                return table
        return self._plain(table, entry, shown, fixed=fixed)

    def _plain(self, table: DeltaType, entry: DeltaType, shown: str, *, fixed: bool) -> DeltaType:
        if clean(table) == clean(entry):
            return table
        if self.mode is not Evolution.STRICT and reads(table, entry):
            return table
        if not fixed and self.mode is Evolution.OVERWRITE and reads(entry, table):
            self.widened.append(shown)
            return clean(entry)
        self.reasons.append(
            f"{shown}: the table has type {type_name(table)}, "
            f"the files have type {type_name(entry)}"
        )
        return table

    def _inside(
        self, table: DeltaType, entry: DeltaType, shown: str, inner: str, nullable: str
    ) -> DeltaType:
        """Merge the elements of two lists, or the values of two maps."""
        kind = self.kind(table[inner], entry[inner], f"{shown}[]", fixed=False)
        may = table[nullable]
        if entry[nullable] and not may:
            may = self._may_relax(
                shown,
                f"{shown}: type {type_name(entry)} may hold nulls in the files, "
                "the table allows none",
            )
        return {**table, inner: kind, nullable: may}


def _way_in(column: str) -> str:
    """Return how to add a column to a strict table, or do without it."""
    add = "add it with ALTER TABLE, or let it in once with schema_evolution: merge"
    if column != RESCUED:
        return add
    return f"{add}; unknown_fields: drop leaves such values out instead"


def _remembering(table: TableFacts, hidden: Mapping[str, DeltaField]) -> dict[str, str]:
    others = {name: text for name, text in table.configuration.items() if name != DROPPED_PROPERTY}
    if not hidden:
        return others
    schema = struct_of(hidden.values())
    text = json.dumps(schema, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return {**others, DROPPED_PROPERTY: text}


def _listing(names: tuple[str, ...]) -> str:
    return ", ".join(names) if names else "nothing"


CREATED_WITH = {
    # penguin writes checkpoints itself, as a step of its own. This keeps the hooks of other
    # writers from doing so at every tenth commit, and still bounds the log if penguin is away.
    "delta.checkpointInterval": "100",
    # A file may wait this long for its commit before a VACUUM may delete it.
    "delta.deletedFileRetentionDuration": "interval 14 days",
}


def created_as(
    schema: DeltaSchema,
    partition_columns: tuple[str, ...],
    settings: TableSettings,
    *,
    floats: bool = True,
) -> TableFacts:
    """Return what a table with these columns is created as; `floats` as in `bounded_columns`."""
    bounded = stats.bounded_columns(schema, partition_columns, floats=floats)
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
) -> Evolves | None:
    """Return what a table that never had a row becomes for its first files; None if it may not be.

    A change of the schema alone must be enough: some types need table features.
    """
    against = (
        reasons_against_type(one["type"], one["name"], table.features) for one in schema["fields"]
    )
    if why_no_table(schema) is not None or any(True for reasons in against for _ in reasons):
        return None
    if maps_columns(table.configuration) or not table.features.isdisjoint(ASK_FOR_MORE):
        return None
    if not unused():
        return None
    before, now, name = by_name(table.schema), by_name(schema), stats.SKIPPING_PROPERTY
    bounded = stats.bounded_columns(schema, partition_columns)
    listed = {name: settings.properties.get(name, stats.format_columns(bounded))}
    after = replace(
        table,
        schema=schema,
        partition_columns=partition_columns,
        configuration={**_remembering(table, {}), **listed},
    )
    return Evolves(
        after,
        Changes(
            added=tuple(name for name in now if now[name] != before.get(name)),
            dropped=tuple(name for name in before if before[name] != now.get(name)),
        ),
    )


def decide_on(
    table: TableFacts,
    schema: DeltaSchema,
    partition_columns: tuple[str, ...],
    settings: TableSettings,
    *,
    floats: bool = True,
) -> Evolves | EntryRefused:
    """Decide what a table must become to hold files with these columns."""
    found = decide(settings.evolution, table, schema, partition_columns)
    if isinstance(found, EntryRefused) or found.table is table:
        return found
    listed = stats.relisted(table, found.table, floats=floats)
    return replace(found, table=replace(found.table, configuration=listed))
