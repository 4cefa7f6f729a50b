"""Promote: fill a column from `_rescued` for rows that are already in the table.

The data files with such values are rewritten, and one `promote` entry supersedes them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from blizzard.answers.entries import FileOrigins, RowOrigins
from blizzard.config.columns import columns_from, schema_of
from blizzard.execute.runner import Rewriter
from blizzard.model.bad_lines import steps
from blizzard.model.columns import with_found
from blizzard.model.rewriting import ActiveFile, FillColumn, FillTarget, find_target, with_target
from blizzard.model.seen import is_column_name
from blizzard.model.settings import PipelineSettings
from blizzard.rewrite.transaction import (
    RewriteDone,
    RewritePlan,
    TableState,
    commit,
    entries_of_table,
    superseded,
    table_state,
    tries_again,
)
from blizzard.worker.ndjson.decoder import OTHER_FIELDS
from lakebed.clock import Clock
from lakebed.columns.schema import Field, Schema
from lakebed.config.schema import DeclaredSchema
from lakebed.documents.entry import Entry
from lakebed.documents.records import FinishedFile
from lakebed.errors import LakeError, Whose
from lakebed.storage.store import Reader, Store
from lakebed.types import RESCUED, Provenance, UnknownFields

SchemaCheck = Callable[[dict[str, Any], tuple[str, ...]], None]
"""Raises if the table would not take this schema and these partition columns."""


class FieldNotPromotable(LakeError, code="field_not_promotable", whose=Whose.USER):
    """The configuration has no column for this field that could be filled from `_rescued`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotedField:
    """The requested field, and its type if no column has it yet."""

    field: str
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionPlan(RewritePlan):
    """The files that may hold values of the field."""

    target: FillTarget
    files: tuple[ActiveFile, ...]
    unknown: frozenset[str]
    """The files that no journal names, which other programs wrote, for example by OPTIMIZE."""
    waiting: int
    """The number of uncommitted entries, whose rows are not changed."""
    columns: Schema | None
    """The columns that the next batch starts with."""
    table_schema: dict[str, Any]
    """The table's schema including the field's column."""

    @property
    def requires(self) -> FillTarget:
        """Return the field as the next batch reads it."""
        return self.target


def plan_promotion(
    store: Reader, settings: PipelineSettings, wanted: PromotedField, check: SchemaCheck
) -> PromotionPlan:
    """Find the data files of the table that may hold values of a field in `_rescued`."""
    state = table_state(store, settings)
    history, schema = state.history, state.snapshot.facts.schema
    known = with_found(settings.schema, history.columns)
    target = target_of(settings, known, columns_from(schema), wanted)
    if find_target(known, wanted.field) is None:
        known = Schema((*known.fields, target.field))
    adds = settings.unknown_fields is UnknownFields.ADD
    table_schema = with_target(schema, target)
    check(table_schema, state.last.partition_columns)
    origins = RowOrigins(keeps=lambda _entry, file: _rescues(file))
    for entry, _in_use in entries_of_table(store):
        origins.take(entry)
    files = tuple(_candidates(state, origins, target))
    state.refuse_contested(files)
    return PromotionPlan(
        state=state,
        target=target,
        files=files,
        unknown=frozenset(file.path for file in files if not origins.is_traced(file.path)),
        waiting=max(0, state.last.sequence - state.committed),
        # If batches add columns, they must not find this column with another type.
        columns=known if adds else history.columns,
        table_schema=table_schema,
    )


@tries_again
def promote(
    store: Store,
    settings: PipelineSettings,
    wanted: PromotedField,
    check: SchemaCheck,
    rewriter: Rewriter,
    *,
    clock: Clock,
) -> RewriteDone[PromotionPlan]:
    """Rewrite the files that hold values of a field, and append the entry that replaces them."""
    plan = plan_promotion(store, settings, wanted, check)
    rewritten = plan.state.rewrite_each(rewriter, plan.files, FillColumn(plan.target), clock)
    replaced = tuple(superseded(one.old, one.new) for one in rewritten if one.new)
    if not replaced:
        return RewriteDone(found=plan, rewritten=rewritten)

    def entry(now: PromotionPlan) -> Entry:
        following = now.state.next_entry("promote", clock)
        columns = following.columns if now.columns is None else now.columns
        return replace(following, rewrites=replaced, table_schema=now.table_schema, columns=columns)

    now, number = commit(
        store,
        plan,
        rewritten,
        entry,
        replan=lambda: plan_promotion(store, settings, wanted, check),
    )
    return RewriteDone(found=now, rewritten=rewritten, entry=number)


def target_of(
    settings: PipelineSettings, known: Schema, table: Schema | None, wanted: PromotedField
) -> FillTarget:
    """Return the requested field as the next batch will read it. Pure."""
    name = wanted.field
    given = None if wanted.type is None else _declared(name, wanted.type)
    target = find_target(known, name)
    if target is None:
        target = FillTarget(_new(settings, known, table, name, given))
    elif given is not None and given.shown != target.field.shown:
        raise FieldNotPromotable(
            f"{target.name} is {target.field.shown}, not {given.shown}; leave out --type",
            field=name,
        )
    template = settings.sink.template
    if target.name in (template.keys if template else ()):
        raise FieldNotPromotable(
            f"{target.name} is a partition column: its values determine the partition", field=name
        )
    if not target.field.nullable:
        raise FieldNotPromotable(
            f"{target.name} is required, but rows without a value are in the table; declare it "
            "with nullable: true",
            field=name,
        )
    return target


def _new(
    settings: PipelineSettings,
    known: Schema,
    table: Schema | None,
    name: str,
    given: Field | None,
) -> Field:
    """Return an undeclared column; raise unless columns are added automatically."""
    (step, *inner) = steps(name) or [""]
    ours = {which.column for which in Provenance}
    taken = ours | {one.name.casefold() for one in known.fields}
    if inner or not isinstance(step, str) or not is_column_name(step) or step.casefold() in taken:
        raise FieldNotPromotable(
            f"{name} is not a name for a new column; a field inside a struct, a list or a map "
            "cannot be filled: declare a column that reads its values from this path, or use an "
            "UPDATE of another engine",
            field=name,
        )
    if settings.unknown_fields is not UnknownFields.ADD:
        raise FieldNotPromotable(
            f"{name} is not declared: add it to schema.fields of pipeline {settings.name}, so "
            "that later batches also fill the column, and run this again",
            field=name,
        )
    there = next((one for one in (table.fields if table else ()) if one.name == step), None)
    if there is not None and (given is None or given.shown == there.shown):
        return replace(there, nullable=True)
    if given is None:
        raise FieldNotPromotable(f"{name} has no column yet; give its type with --type", field=name)
    return given


def _declared(name: str, kind: str) -> Field:
    try:
        document = {"fields": [{"name": "value", "type": kind}]}
        (field,) = schema_of(DeclaredSchema.model_validate(document)).fields
    except ValueError:
        raise FieldNotPromotable(
            f"--type {kind} is not possible here; a struct, list or map has to be declared in the "
            "configuration",
            field=name,
        ) from None
    last = steps(name)[-1:]
    return replace(field, name=str(*last))


def _candidates(state: TableState, origins: RowOrigins, target: FillTarget) -> Iterator[ActiveFile]:
    """Yield the files that may hold values of a field, with the origins of their rows."""
    for path, file in sorted(state.files.items()):
        found = origins.find(path)
        if found is not None and _may_hold(found, target):
            named = replace(file, partition_values=found.file.partition_values)
            yield named.with_origins(found.file)
        elif not origins.is_traced(path):
            yield file


def _may_hold(found: FileOrigins, target: FillTarget) -> bool:
    """Whether `_rescued` may have values of a field in a data file."""
    if not _rescues(found.file):
        return False
    names = frozenset(found.file.source_files)
    # Other entries have no source records that count rescued values.
    return not found.entry.is_batch or any(
        path == OTHER_FIELDS or target.holds(path)
        for record in found.entry.sources
        if record.key in names
        for path in record.rescued
    )


def _rescues(file: FinishedFile) -> bool:
    known = file.statistics.get(RESCUED)
    return known is not None and known.null_count < file.record_count
