"""Decide how a table is created, evolved or replaced for files, by the settings. Pure.

The table's schema is the contract: every file in the table stays readable by every reader. So a
type changes only if all readers read earlier files as the new type, and every new column is
nullable. A column that `overwrite` drops is remembered in a table property: files still hold it, so
it may come back only as a type that reads them.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from lakebed.columns.column_mapping import DeltaType, FieldPath, maps_columns, rebuilt, types_within
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
    may_widen,
    reasons_against_change,
    reasons_against_names,
    recorded,
    widens,
)


def decide(
    mode: Evolution, table: TableFacts, entry: DeltaSchema, entry_partitions: tuple[str, ...]
) -> Decision:
    """Decide whether a table can hold files of an entry's schema, and how it must change."""
    hidden = dropped_columns(table)
    if hidden is None:
        return EntryRefused((f"the table property {DROPPED_PROPERTY} cannot be read",))
    records = may_widen(table.features, table.configuration)
    walk = _SchemaWalk(mode, frozenset(table.partition_columns), table.features, records)
    schema, hidden = walk.struct(table.schema, hidden, entry, inside="")
    reasons = (
        *_partition_reasons(table.partition_columns, entry_partitions),
        *reasons_against_names(table, entry),
        *walk.reasons,
    )
    if reasons:
        return EntryRefused(reasons)
    after = replace(table, schema=schema, configuration=_remembering(table, hidden))
    if (after.schema, after.configuration) == (table.schema, dict(table.configuration)):
        return Evolves(table, Changes())
    against = tuple(reasons_against_change(table, walk.changes()))
    return EntryRefused(against) if against else Evolves(after, walk.changes())


def replaced(
    table: TableFacts, schema: DeltaSchema, partition_columns: tuple[str, ...]
) -> Evolves | None:
    """Return the table with another schema, if it never had a row, so that none is lost.

    None if a change of the schema alone is not enough: some types need table features.
    """
    against = (
        reasons_against_type(one["type"], one["name"], table.features) for one in schema["fields"]
    )
    if why_no_table(schema) is not None or any(True for reasons in against for _ in reasons):
        return None
    if maps_columns(table.configuration) or not table.features.isdisjoint(ASK_FOR_MORE):
        return None
    before, now = by_name(table.schema), by_name(schema)
    after = replace(
        table,
        schema=schema,
        partition_columns=partition_columns,
        configuration=_remembering(table, struct_of(())),
    )
    return Evolves(
        after,
        Changes(
            added=tuple(name for name in now if now[name] != before.get(name)),
            dropped=tuple(name for name in before if before[name] != now.get(name)),
        ),
    )


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
    records: bool = False
    """Whether the table records type changes for its readers."""
    reasons: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    widened: list[str] = field(default_factory=list)

    def changes(self) -> Changes:
        return Changes(tuple(self.added), tuple(self.dropped), tuple(self.widened))

    def struct(
        self, table: DeltaSchema, hidden: DeltaSchema | None, entry: DeltaSchema, *, inside: str
    ) -> tuple[DeltaSchema, DeltaSchema]:
        """Return the merged struct, and the hidden fields that files hold besides it.

        Fields keep the table's order; new ones come last. Values of partition columns are in paths:
        such a column is never missing or dropped, and its nulls are checked value by value.
        """
        ours = by_name(table)
        ghosts = by_name(hidden) if hidden else {}
        theirs = by_name(entry)
        self._check_case([*ours, *ghosts], entry, inside)
        kept, gone = [], dict(ghosts)
        for name, mine in ours.items():
            partition = not inside and name in self.partitions
            if name in theirs:
                known, ghost = self._field(
                    mine, ghosts.get(name), theirs[name], inside + name, partition=partition
                )
                kept.append(known)
                gone.pop(name, None)
                if ghost is not None:
                    gone[name] = ghost
            elif inside and self.mode is Evolution.OVERWRITE:
                kept.append(self._stays(mine, inside + name))
            elif partition or self._may_lack(mine, inside + name):
                kept.append(mine)
            else:
                gone[name] = _hide(mine, ghosts.get(name))
        for name, new in theirs.items():
            if name in ours:
                continue
            made, ghost = self._new(new, ghosts.get(name), inside + name)
            kept.append(made)
            gone.pop(name, None)
            if ghost is not None:
                gone[name] = ghost
        return struct_of(kept), struct_of(gone.values())

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
        self,
        mine: DeltaField,
        ghost: DeltaField | None,
        theirs: DeltaField,
        shown: str,
        *,
        partition: bool,
    ) -> tuple[DeltaField, DeltaField | None]:
        kind, hidden = self.kind(
            mine["type"], ghost and ghost["type"], theirs["type"], shown, fixed=partition
        )
        nullable = mine["nullable"]
        if theirs["nullable"] and not nullable and not partition:
            nullable = self._may_relax(
                shown,
                f"{shown}: type {type_name(theirs['type'])} may be null in the files, "
                f"the table requires it",
            )
        known = recorded(mine, kind) if self.records else {**mine, "type": kind}
        return {**known, "nullable": nullable}, _ghost(mine["name"], hidden)

    def _may_relax(self, shown: str, reason: str) -> bool:
        if self.mode is Evolution.OVERWRITE:
            self.widened.append(shown)
            return True
        self.reasons.append(reason)
        return False

    def _new(
        self, theirs: DeltaField, ghost: DeltaField | None, shown: str
    ) -> tuple[DeltaField, DeltaField | None]:
        """Add a field: nullable at all depths, and able to read what files already hold of it."""
        name, kind = theirs["name"], theirs["type"]
        hidden: DeltaType = None
        if self.mode is Evolution.STRICT:
            self.reasons.append(
                f"{shown}: the table does not have it, the files have type {type_name(kind)}, "
                f"and strict accepts no difference; {_way_in(shown)}"
            )
        else:
            self.reasons += reasons_against_adding(theirs, shown, self.features)
        if ghost is not None:
            again = _SchemaWalk(Evolution.OVERWRITE, frozenset())
            kind, hidden = again.kind(ghost["type"], None, kind, shown, fixed=False)
            self.reasons += [f"{reason} (it was dropped before)" for reason in again.reasons]
        self.added.append(shown)
        return nullable_field(name, clean(kind)), _ghost(name, hidden)

    def kind(
        self, table: DeltaType, hidden: DeltaType, entry: DeltaType, shown: str, *, fixed: bool
    ) -> tuple[DeltaType, DeltaType]:
        """Return the type that reads files of both, and the hidden rest that files hold."""
        match kind_of(table), kind_of(entry):
            case "struct", "struct":
                kind, rest = self.struct(table, hidden, entry, inside=f"{shown}.")
                return kind, rest if rest["fields"] else None
            case "array", "array":
                return self._inside(table, hidden, entry, shown, "elementType", "containsNull")
            case "map", "map" if clean(table["keyType"]) == clean(entry["keyType"]):
                return self._map(table, hidden, entry, shown)
        if self._reads(table, entry):
            return table, None
        if not fixed and self._may_widen(table, entry):
            self.widened.append(shown)
            return clean(entry), None
        self.reasons.append(
            f"{shown}: the table has type {type_name(table)}, "
            f"the files have type {type_name(entry)}"
        )
        return table, None

    def _map(
        self, table: DeltaType, hidden: DeltaType, entry: DeltaType, shown: str
    ) -> tuple[DeltaType, DeltaType]:
        """Merge the values of two maps: structs in them must have the same fields.

        deltalake fails on other fields, or returns the values of one for those of another.
        """
        if same_fields(table["valueType"], entry["valueType"]):
            return self._inside(table, hidden, entry, shown, "valueType", "valueContainsNull")
        self.reasons.append(
            f"{shown}: the table has type {type_name(table)}, the files have type "
            f"{type_name(entry)}; structs inside a map must have the same fields in every file, "
            "because deltalake does not match them by name"
        )
        return table, None

    def _inside(
        self, table: DeltaType, hidden: DeltaType, entry: DeltaType, shown: str, *keys: str
    ) -> tuple[DeltaType, DeltaType]:
        """Merge the elements of two lists, or the values of two maps."""
        inner, nullable = keys
        kind, rest = self.kind(
            table[inner], hidden and hidden[inner], entry[inner], f"{shown}[]", fixed=False
        )
        may = table[nullable]
        if entry[nullable] and not may:
            may = self._may_relax(
                shown,
                f"{shown}: type {type_name(entry)} may hold nulls in the files, "
                "the table allows none",
            )
        after = {**table, inner: kind, nullable: may}
        return after, None if rest is None else {**table, inner: rest}

    def _reads(self, table: DeltaType, entry: DeltaType) -> bool:
        same = clean(table) == clean(entry)
        return same or (self.mode is not Evolution.STRICT and reads(table, entry))

    def _may_widen(self, table: DeltaType, entry: DeltaType) -> bool:
        """Whether a column gets the wider type of the files."""
        if self.records:
            return self.mode is not Evolution.STRICT and widens(table, entry, self.features)
        return self.mode is Evolution.OVERWRITE and reads(entry, table)


def _way_in(column: str) -> str:
    """Return how to add a column to a strict table, or do without it."""
    add = "add it with ALTER TABLE, or let it in once with schema_evolution: merge"
    if column != RESCUED:
        return add
    return f"{add}; unknown_fields: drop leaves such values out instead"


def _remembering(table: TableFacts, hidden: DeltaSchema) -> dict[str, str]:
    others = {name: text for name, text in table.configuration.items() if name != DROPPED_PROPERTY}
    if not hidden["fields"]:
        return others
    text = json.dumps(hidden, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return {**others, DROPPED_PROPERTY: text}


def _hide(mine: DeltaField, ghost: DeltaField | None) -> DeltaField:
    """Return a hidden field, with what was already hidden inside it."""
    kind = clean(mine["type"])
    return nullable_field(mine["name"], kind if ghost is None else _united(kind, ghost["type"]))


def _united(shown: DeltaType, hidden: DeltaType) -> DeltaType:
    """Merge the hidden fields of a nested type with the visible ones."""
    inside = {path: kind for path, kind, _said in types_within(hidden)}

    def unite(kind: DeltaType, path: FieldPath) -> DeltaType:
        if kind_of(kind) != "struct" or path not in inside:
            return kind
        return struct_of({**by_name(inside[path]), **by_name(kind)}.values())

    return rebuilt(shown, unite)


def _ghost(name: str, hidden: DeltaType) -> DeltaField | None:
    return None if hidden is None else nullable_field(name, clean(hidden))


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
    found = replaced(table, schema, partition_columns)
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
    found = decide(settings.evolution, table, schema, partition_columns)
    if isinstance(found, EntryRefused) or found.table is table:
        return found
    listed = stats.ListedColumns(settings.skipping, floats).after(table, found.table)
    return replace(found, table=replace(found.table, configuration=listed))
