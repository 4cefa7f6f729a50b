"""The schema of an adopted table.

No value is cast: a column gets a type as which every reader can read all files, by the rules for
schema changes. The most frequent schema comes first, so that contradictions name the fewest files.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakebed.columns.column_mapping import DeltaType, FieldPath, rebuilt, types_within
from lakebed.deltalog.delta_types import (
    FIELD_TYPES,
    DeltaField,
    DeltaSchema,
    TableFacts,
    by_name,
    features_needed,
    nullable_field,
    reads,
    reasons_against_type,
    struct_of,
    why_no_table,
)
from lakebed.partition import PARTITION_TYPES
from lakebed.types import Evolution
from penguin.adopt.folder import AdoptOptions, SchemaUse, Survey
from penguin.foreign.rules import as_the_table_sees_it, why_no_partitions
from penguin.model.commit import EntryRefused
from penguin.model.settings import FolderUnfit, TableSettings
from penguin.plan import evolution, stats
from penguin.plan.evolution import created_as

WAY_OUT = "write the file again with the type that the others have, or move it out of the folder"
ONLY_PARTITIONS = "it has no columns but partition columns, and neither has any other file"
NEEDS_A_COLUMN = (
    "a table needs another one: write the file again with one, or name fewer partition columns "
    "with --partition-by"
)
PARTITIONS = frozenset(
    delta for delta, kind in FIELD_TYPES.items() if kind in tuple(PARTITION_TYPES)
)
"""The Delta types that partition columns may have."""
MOST_BOUNDED = 32
"""The number of fields with bounds unless configured, which is Delta's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """The table to create, and which of the files' schemas it can hold."""

    facts: TableFacts
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why files do not fit, by schema key."""
    seen: Mapping[str, DeltaSchema] = field(default_factory=dict)
    """By schema key, the columns that readers take from the files."""


def new_table(survey: Survey, wanted: AdoptOptions, settings: TableSettings) -> NewTable:
    """Decide the table's schema and which file schemas it refuses; FolderUnfit if there is none.

    Types of partition columns are those given, else those of such columns in the files, else
    string.
    """
    uses = sorted(survey.schemas.values(), key=lambda use: (-use.files, use.example))
    names = _partition_columns(survey, wanted)
    apart = [_partition_field(name, uses, wanted) for name in names]
    seen = {use.key: as_the_table_sees_it(use.schema, {}, None, names) for use in uses}
    # A table cannot begin with files that have only partition columns, but it can hold them.
    uses.sort(key=lambda use: not seen[use.key]["fields"])
    schema: DeltaSchema | None = None
    refused: dict[str, str] = {}
    for use in uses:
        found = _with(schema, seen[use.key], apart, names, settings)
        if isinstance(found, EntryRefused):
            way_out = WAY_OUT if seen[use.key]["fields"] else NEEDS_A_COLUMN
            refused[use.key] = f"{'; '.join(found.reasons)}; {way_out}"
        else:
            schema = found
    if schema is None:
        schema = struct_of(apart)
    fields = [one for one in schema["fields"] if one["name"] not in names]
    facts = created_as(struct_of([*fields, *apart]), names, settings, floats=False)
    return NewTable(facts=_few_bounds(facts, settings), refused=refused, seen=seen)


def _with(
    schema: DeltaSchema | None,
    seen: DeltaSchema,
    apart: list[DeltaField],
    names: tuple[str, ...],
    settings: TableSettings,
) -> DeltaSchema | EntryRefused:
    """Return a schema that also holds files of one more schema, or every reason against it."""
    needed = features_needed(seen)
    if schema is None:
        first = struct_of([*seen["fields"], *apart])
        wrong = why_no_table(first) if seen["fields"] else ONLY_PARTITIONS
        inside = (reasons_against_type(one["type"], one["name"], needed) for one in seen["fields"])
        reasons = (*((wrong,) if wrong else ()), *(why for one in inside for why in one))
        return EntryRefused(reasons) if reasons else first
    wide = _widest(schema, seen)
    table = created_as(wide, names, settings)
    table = replace(table, features=table.features | needed)
    decision = evolution.decide(Evolution.MERGE, table, seen, names)
    return decision if isinstance(decision, EntryRefused) else decision.table.schema


def _partition_columns(survey: Survey, wanted: AdoptOptions) -> tuple[str, ...]:
    """Return the given partition columns, or those of most files."""
    names = wanted.partition_columns
    if names is None:
        most = max(survey.keys.items(), key=lambda one: (one[1], len(one[0])), default=((), 0))
        names = most[0]
    if (reason := why_no_partitions(names)) is not None:
        raise FolderUnfit(reason)
    return names


def _partition_field(name: str, uses: Sequence[SchemaUse], wanted: AdoptOptions) -> DeltaField:
    kind = wanted.partition_types.get(name)
    inside = (by_name(use.schema).get(name) for use in uses)
    held = next((one["type"] for one in inside if one is not None), None)
    if kind is None and isinstance(held, str) and held in PARTITIONS:
        kind = held
    return nullable_field(name, kind or "string")


def _widest(ours: DeltaSchema, theirs: DeltaSchema) -> DeltaSchema:
    """Return our schema, with their types for fields where those read the files of both."""
    others = {path: kind for path, kind, _said in types_within(theirs)}

    def wider(kind: DeltaType, path: FieldPath) -> DeltaType:
        return others[path] if reads(others.get(path), kind) else kind

    return struct_of(rebuilt(ours, wider)["fields"])


def _few_bounds(facts: TableFacts, settings: TableSettings) -> TableFacts:
    """Limit bounds to the first columns, so that a file's statistics stay short.

    All fields of a struct have bounds, or none has.
    """
    if stats.SKIPPING_PROPERTY in settings.properties:
        return facts
    listed: dict[str, list[tuple[str, ...]]] = {}
    for path in stats.bounded_columns(facts.schema, facts.partition_columns, floats=False):
        listed.setdefault(path[0], []).append(path)
    kept: list[tuple[str, ...]] = []
    for paths in listed.values():
        if len(kept) + len(paths) <= MOST_BOUNDED:
            kept += paths
    named = {stats.SKIPPING_PROPERTY: stats.format_columns(kept)}
    return replace(facts, configuration={**facts.configuration, **named})


def schema_key(schema: DeltaSchema) -> str:
    """Return a key that equal schemas share."""
    return hashlib.sha256(json.dumps(schema).encode()).hexdigest()
