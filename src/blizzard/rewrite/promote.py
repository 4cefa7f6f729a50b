"""A column filled from `_rescued`, for the rows that are already in the table.

The data files that hold such values are written anew beside the old ones, and one `promote` entry
names which file takes the place of which. Until it is appended nothing has happened, and the new
files are garbage like those of any attempt that died; from then on penguin replaces all of the
files in one version or, where one of them is not in the table any more, none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from blizzard.config.columns import columns_from, schema_of
from blizzard.execute.runner import Rewriter
from blizzard.model.columns import with_found
from blizzard.model.json_path import steps
from blizzard.model.locations import sink_location
from blizzard.model.rewriting import (
    ActiveFile,
    Promotion,
    Rewritten,
    Target,
    find_target,
    with_target,
)
from blizzard.model.seen import is_column_name
from blizzard.model.settings import PipelineSettings
from blizzard.rewrite.transaction import (
    Overtaken,
    TableLog,
    append_replacement,
    entries_of_table,
    journal_and_table,
    refuse_collected_since,
    refuse_contested,
    refuse_renamed,
    refuse_waiting,
    rewritten_all,
    tries_again,
)
from blizzard.worker.ndjson.decoder import OTHER_FIELDS
from lakebed import layout
from lakebed.clock import Clock
from lakebed.columns.column_mapping import ColumnMapping
from lakebed.columns.row_tracking import RowColumns
from lakebed.columns.schema import Field, Schema
from lakebed.config.schema import DeclaredSchema
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.entry import Entry
from lakebed.documents.replacement import Replacement
from lakebed.errors import LakeError, Whose
from lakebed.storage.store import Reader, Store
from lakebed.types import RESCUED, UnknownFields


class FieldNotPromotable(LakeError):
    """No column can be filled from `_rescued` for this field, as things are configured."""

    code = "field_not_promotable"
    whose = Whose.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What an operator asks for."""

    field: str
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The files that may hold values of the field, and where the journal stands."""

    target: Target
    files: tuple[ActiveFile, ...]
    unknown: frozenset[str]
    """Those of them that no journal names: other programs wrote them, say by OPTIMIZE."""
    waiting: int
    """Entries that are not committed yet: their rows are left as they are."""
    last: Entry
    digest: str | None
    columns: Schema | None
    """The columns as the next batch is to know them."""
    table_schema: dict[str, Any]
    """The table's columns with that of the field."""
    mapping: ColumnMapping | None = None
    row_columns: RowColumns | None = None
    """How files of the table hold its columns; None where it maps none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """What was rewritten, and the entry that puts it into the table."""

    found: Found
    rewritten: tuple[Rewritten, ...] = ()
    entry: int | None = None
    """None where no value fits."""


def look(store: Reader, settings: PipelineSettings, wanted: Wanted, log: TableLog) -> Found:
    """Find the data files of the table that may hold values of a field in `_rescued`."""
    pipeline = settings.name
    standing = journal_and_table(store, pipeline, log)
    history, last, table = standing.history, standing.last, standing.table
    known = with_found(settings.schema, history.columns)
    target = target_of(settings, known, columns_from(table.schema), wanted)
    if find_target(known, wanted.field) is None:
        known = Schema((*known.fields, *target.chain))
    adds = settings.unknown_fields is UnknownFields.ADD
    table_schema = with_target(table.schema, target)
    log.check(table_schema, last.partition_columns)
    named, promotions = _named(store, target)
    refuse_waiting(store, settings, standing.committed)
    files = [
        replace(file, partition_values=named[path].partition_values) if path in named else file
        for path, file in sorted(table.files.items())
        if path not in named or named[path].holds
    ]
    refuse_contested([one for one in promotions if one.pipeline != pipeline], files, table)
    return Found(
        target=target,
        files=tuple(files),
        unknown=frozenset(file.path for file in files if file.path not in named),
        waiting=max(0, last.sequence - standing.committed),
        last=last,
        digest=history.digest,
        # Where columns are found, a batch must not find this one with another type.
        columns=known if adds else history.columns,
        table_schema=table_schema,
        mapping=table.mapping,
        row_columns=table.row_columns,
    )


@tries_again
def promote(
    store: Store,
    settings: PipelineSettings,
    wanted: Wanted,
    log: TableLog,
    rewriter: Rewriter,
    *,
    clock: Clock,
) -> Promoted:
    """Rewrite the files that hold values of a field, and append the entry that replaces them."""
    found = look(store, settings, wanted, log)
    if not found.files:
        return Promoted(found=found)
    work = Promotion(
        target=found.target,
        sink=sink_location(settings),
        codec=settings.sink.rolling.codec,
        upload=settings.sink.upload,
        marks={"pipeline": settings.name, "journal": found.last.journal},
        clock=clock,
        mapping=found.mapping,
        row_columns=found.row_columns,
    )
    rewritten = rewritten_all(rewriter, _with_origins(found.files, log), work)
    replaced = tuple(
        Replacement(
            old=one.old.path,
            old_size=one.old.size,
            new=one.new,
            vector=one.old.vector_key,
            deleted=one.old.deleted,
        )
        for one in rewritten
        if one.new is not None
    )
    if not replaced:
        return Promoted(found=found, rewritten=rewritten)

    def look_again() -> tuple[Found, Entry]:
        now = look(store, settings, wanted, log)
        refuse_renamed(found.mapping, now.mapping, store.uri)
        entry = now.last.successor(
            "promote",
            previous=now.digest,
            run=str(clock.fresh_id()),
            created=clock.now().isoformat(),
            replaced=replaced,
            table_schema=now.table_schema,
            columns=now.columns,
        )
        _refuse_overtaken(store, found, now, entry)
        return now, entry

    now, entry = append_replacement(store, settings.name, replaced, look_again)
    return Promoted(found=now, rewritten=rewritten, entry=None if entry is None else entry.sequence)


def _with_origins(files: Sequence[ActiveFile], log: TableLog) -> tuple[ActiveFile, ...]:
    """Return files, those with deleted rows along with the origins of their rows.

    A file that takes such a one's place has fewer rows, so it needs origins of its own.
    """
    known = log.origins([file.path for file in files if file.vector is not None])
    return tuple(
        replace(file, source_files=known[file.path].source_files, runs=known[file.path].runs)
        if file.path in known
        else file
        for file in files
    )


def target_of(
    settings: PipelineSettings, known: Schema, table: Schema | None, wanted: Wanted
) -> Target:
    """Return the field that is meant, as the next batch will read it. Pure."""
    name = wanted.field
    given = None if wanted.type is None else _declared(name, wanted.type)
    target = find_target(known, name)
    if target is None:
        target = Target((_new(settings, known, table, name, given),))
    elif given is not None and given.shown != target.field.shown:
        raise FieldNotPromotable(
            f"{target.shown} is {target.field.shown}, not {given.shown}; leave out --type",
            field=name,
        )
    template = settings.sink.template
    if target.chain[0].name in (template.keys if template else ()):
        raise FieldNotPromotable(
            f"{target.shown} is a partition column: its values decide where a row is", field=name
        )
    if not target.field.nullable:
        raise FieldNotPromotable(
            f"{target.shown} is required, but rows without a value are in the table; declare it "
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
    """Return a column that is not declared: only where columns are added by themselves."""
    if settings.unknown_fields is not UnknownFields.ADD:
        raise FieldNotPromotable(
            f"{name} is not declared: add it to schema.fields of pipeline {settings.name}, so "
            "that later batches fill the column, too, and run this again",
            field=name,
        )
    (step, *inner) = steps(name) or [""]
    ours = {which.column for which in settings.provenance}
    taken = ours | {one.name.casefold() for one in known.fields}
    if inner or not isinstance(step, str) or not is_column_name(step) or step.casefold() in taken:
        raise FieldNotPromotable(
            f"{name} is not a name for a new column; a field inside a struct has to be declared, "
            "and one inside a list or a map cannot be filled",
            field=name,
        )
    there = next((one for one in (table.fields if table else ()) if one.name == step), None)
    if there is not None and (given is None or given.shown == there.shown):
        return replace(there, nullable=True)
    if given is None:
        raise FieldNotPromotable(
            f"{name} has no column yet; say which type it is to have with --type", field=name
        )
    return given


def _declared(name: str, kind: str) -> Field:
    try:
        document = {"fields": [{"name": "value", "type": kind}]}
        (field,) = schema_of(DeclaredSchema.model_validate(document)).fields
    except ValueError:
        raise FieldNotPromotable(
            f"--type {kind} is not a type that can be given here; a struct, list or map has to be "
            "declared in the configuration",
            field=name,
        ) from None
    last = steps(name)[-1:]
    return replace(field, name=str(*last))


@dataclass(frozen=True, slots=True)
class _Named:
    """A data file that an entry names."""

    partition_values: Mapping[str, str | None]
    holds: bool
    """Whether `_rescued` may have values of the field in it."""


def _named(store: Reader, target: Target) -> tuple[dict[str, _Named], list[Entry]]:
    """Return what all journals say of the data files, and the entries in use that replace some."""
    found: dict[str, _Named] = {}
    promotions: list[Entry] = []
    for entry, in_use in entries_of_table(store):
        found |= _in_entry(entry, target)
        if entry.replaces and in_use:
            promotions.append(entry)
    return found, promotions


def _in_entry(entry: Entry, target: Target) -> dict[str, _Named]:
    hold = {record.key for record in entry.sources if _mentions(record.rescued, target)}
    # These have no sources to say what is in `_rescued`.
    is_unsaid = entry.kind in ("promote", "replay", "retract", "erase", "compact")
    return {
        file.filename: _Named(
            file.partition_values,
            _rescues(file) and (is_unsaid or not hold.isdisjoint(file.source_files)),
        )
        for file in entry.data_files
    }


def _mentions(rescued: Iterable[str], target: Target) -> bool:
    return any(path == OTHER_FIELDS or target.holds(path) for path in rescued)


def _rescues(file: FinishedFile) -> bool:
    known = file.statistics.get(RESCUED)
    return known is not None and known.null_count < file.record_count


def _refuse_overtaken(store: Reader, before: Found, now: Found, entry: Entry) -> None:
    """Raise where what was rewritten is not what is to be replaced any more."""
    path = store.describe(layout.journal_folder(entry.pipeline))
    there = {file.path: (file.size, file.vector_key) for file in now.files}
    if now.target != before.target or now.last.journal != before.last.journal:
        raise Overtaken(
            "the columns changed while files were rewritten; nothing was done, try again", path=path
        )
    if any(there.get(one.old) != (one.old_size, one.vector) for one in entry.replaced):
        raise Overtaken(
            "files of the table were rewritten by somebody else meanwhile; nothing was done, try "
            "again",
            path=path,
        )
    refuse_collected_since(store, before.last.sequence, entry)
