"""The table that files of several schemas become. Pure.

Nothing is cast: a column gets a type that every reader reads the files of all schemas as, by the
rules for schema changes. The schema that most files have comes first, so that it is the few that
are named where files contradict each other.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.columns.field_path import FieldPath
from lakebed.columns.nested_types import DeltaType, rebuilt, types_within
from lakebed.deltalog.actions import lines_of
from lakebed.deltalog.delta_types import (
    FIELD_TYPES,
    DeltaField,
    DeltaSchema,
    TableFacts,
    by_name,
    features_needed,
    reasons_against_type,
    struct_of,
    type_name,
    why_no_table,
)
from lakebed.documents.reading import parse_json
from lakebed.errors import ObjectMissing
from lakebed.layout import ADOPTION_STEP, DELTA_LOG, log_version
from lakebed.partition import ESCAPED, PARTITION_TYPES
from lakebed.storage.store import Reader
from lakebed.types import Evolution
from penguin.adopt.survey import Survey
from penguin.delta.version import added, encoded
from penguin.foreign.columns import FORBIDDEN, as_the_table_sees_it
from penguin.model.adoption import NewTable, SchemaUse, Totals, Wanted
from penguin.model.commit import Add
from penguin.model.errors import FolderUnfit
from penguin.model.settings import TableSettings
from penguin.model.table import Evolves, Refused
from penguin.plan import evolution, stats
from penguin.plan.decisions import created_as
from penguin.plan.widening import reads

PART = 8 << 20
FIRST_LINE = 64 * 1024
"""Bytes that are sure to hold the first line of a version that adopts a folder."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """Files of one attempt."""

    adds: Path
    """Where the actions go that add files."""
    body: Path
    """Where the whole version goes."""
    checkpoint: Path

    @classmethod
    def in_folder(cls, folder: str) -> "Workplace":
        """Name the files in a folder."""
        return cls(*(Path(folder) / name for name in ("adds", "version", "checkpoint")))

    def put_together(self, begin: bytes) -> Path:
        """Put the first actions before those that add files."""
        with self.body.open("wb") as whole, self.adds.open("rb") as adds:
            whole.write(begin)
            shutil.copyfileobj(adds, whole, PART)
        return self.body

    def fetch(self, store: Reader) -> Path:
        """Read version 0 from the store, some megabytes at a time."""
        path = log_version(0)
        facts = store.head(path)
        if facts is None:
            raise ObjectMissing("version 0 of the log is gone", path=store.describe(path))
        with self.body.open("wb") as whole:
            for start in range(0, facts.size, PART):
                end = min(start + PART, facts.size)
                whole.write(store.part(path, start, end, etag=facts.etag))
        return self.body


def add_line(add: Add) -> bytes:
    """Return the line of a version that adds a file."""
    return encoded([added(add)])


def told_of(token: str, totals: Totals) -> dict[str, object]:
    """Return what the version says of itself, for whoever reads the log."""
    return {
        "step": ADOPTION_STEP,
        "token": token,
        "entries": {},
        "others": {"files": totals.files},
        "adopted": {"files": totals.files, "rows": totals.rows, "bytes": totals.bytes},
    }


def read_first_version(store: Reader) -> tuple[str, Totals] | None:
    """Return the token and totals of a table's adoption; None where its log has none."""
    facts = store.head(log_version(0))
    if facts is None:
        return None
    end = min(facts.size, FIRST_LINE)
    line, _, _ = store.part(facts.path, 0, end, etag=facts.etag).partition(b"\n")
    try:
        told = parse_json(line)
    except ValueError:
        return None
    match told:
        case {"commitInfo": {"penguin": {"step": step, "token": str(token), "adopted": totals}}}:
            files, rows, size = (int(totals.get(key, 0)) for key in ("files", "rows", "bytes"))
            found = Totals(files=files, rows=rows, bytes=size)
            return (token, found) if step == ADOPTION_STEP else None
    return None


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
"""Fields that bounds are kept for, unless the configuration names them: as many as Delta's."""


def new_table(survey: Survey, wanted: Wanted, settings: TableSettings) -> NewTable:
    """Decide what the table is, and which schemas it cannot hold; FolderUnfit where there is none.

    The types of partition columns are those that were given, or else those that the files have for
    these columns, or else text.
    """
    uses = sorted(survey.schemas.values(), key=lambda use: (-use.files, use.example))
    names = _partition_columns(survey, wanted)
    apart = [_partition_field(name, uses, survey, wanted) for name in names]
    seen = {use.key: as_the_table_sees_it(use.schema, {}, None, names) for use in uses}
    # A table cannot begin with files that have only partition columns, but it can hold them.
    uses.sort(key=lambda use: not seen[use.key]["fields"])
    schema: DeltaSchema | None = None
    refused: dict[str, str] = {}
    for use in uses:
        found = _with(schema, seen[use.key], apart, names, settings)
        if isinstance(found, Refused):
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
) -> DeltaSchema | Refused:
    """Return a schema that holds files of one more schema, or every reason against it."""
    needed = features_needed(seen)
    if schema is None:
        first = struct_of([*seen["fields"], *apart])
        wrong = why_no_table(first) if seen["fields"] else ONLY_PARTITIONS
        inside = (reasons_against_type(one["type"], one["name"], needed) for one in seen["fields"])
        reasons = (*((wrong,) if wrong else ()), *(why for one in inside for why in one))
        return Refused(reasons) if reasons else first
    wide = _widest(schema, seen)
    table = created_as(wide, names, settings)
    table = replace(table, features=table.features | needed)
    decision = evolution.decide(Evolution.MERGE, table, seen, names)
    if isinstance(decision, Refused):
        return decision
    return decision.table.schema if isinstance(decision, Evolves) else wide


def _partition_columns(survey: Survey, wanted: Wanted) -> tuple[str, ...]:
    """Return the partition columns: those that were given, or those that most files are in."""
    names = wanted.partition_columns
    if names is None:
        most = max(survey.keys.items(), key=lambda one: (one[1], len(one[0])), default=((), 0))
        names = most[0]
    for name in names:
        bad = sorted(set(name) & (ESCAPED | FORBIDDEN))
        if bad:
            raise FolderUnfit(f"partition column {name}: a column's name must not contain {bad!r}")
    return names


def _partition_field(
    name: str, uses: Sequence[SchemaUse], survey: Survey, wanted: Wanted
) -> DeltaField:
    kind = wanted.partition_types.get(name)
    inside = (by_name(use.schema).get(name) for use in uses)
    held = next((one["type"] for one in inside if one is not None), None)
    if kind is None and isinstance(held, str) and held in PARTITIONS:
        kind = held
    if kind is None and wanted.infer_types:
        kind = survey.inferred(name)
    return {"name": name, "type": kind or "string", "nullable": True, "metadata": {}}


def _widest(ours: DeltaSchema, theirs: DeltaSchema) -> DeltaSchema:
    """Return a schema with the types of another where these read files of both."""
    others = {path: kind for path, kind, _said in types_within(theirs)}

    def wider(kind: DeltaType, path: FieldPath) -> DeltaType:
        return others[path] if reads(others.get(path), kind) else kind

    return struct_of(rebuilt(ours, wider)["fields"])


def _few_bounds(facts: TableFacts, settings: TableSettings) -> TableFacts:
    """Return a table that keeps bounds for the first columns only: a file's statistics stay short.

    All fields of a struct have bounds or none has.
    """
    if stats.SKIPPING_PROPERTY in settings.properties:
        return facts
    listed: dict[str, list[tuple[str, ...]]] = {}
    columns = stats.ListedColumns(settings.skipping, floats=False)
    for path in columns.of(facts.schema, facts.partition_columns):
        listed.setdefault(path[0], []).append(path)
    kept: list[tuple[str, ...]] = []
    for paths in listed.values():
        if len(kept) + len(paths) <= MOST_BOUNDED:
            kept += paths
    named = {stats.SKIPPING_PROPERTY: stats.format_columns(kept)}
    return replace(facts, configuration={**facts.configuration, **named})


def describe(schema: DeltaSchema) -> dict[str, str]:
    """Return the types of columns as a person writes them."""
    return {one["name"]: type_name(one["type"]) for one in schema["fields"]}


AT_A_TIME = 8192
TEXTS = pa.map_(pa.string(), pa.string())
NAMES = pa.list_(pa.field("element", pa.string()))
FORMAT = pa.struct([("provider", pa.string()), ("options", TEXTS)])
SCHEMA = pa.schema(
    [
        pa.field("txn", pa.struct([("appId", pa.string()), ("version", pa.int64())])),
        pa.field(
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", TEXTS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                ]
            ),
        ),
        pa.field(
            "remove",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("deletionTimestamp", pa.int64()),
                    ("dataChange", pa.bool_()),
                ]
            ),
        ),
        pa.field(
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", FORMAT),
                    ("schemaString", pa.string()),
                    ("partitionColumns", NAMES),
                    ("createdTime", pa.int64()),
                    ("configuration", TEXTS),
                ]
            ),
        ),
        pa.field(
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", NAMES),
                    ("writerFeatures", NAMES),
                ]
            ),
        ),
    ]
)


def write_first_checkpoint(lines: Iterable[bytes], file: Path) -> bytes:
    """Write the checkpoint of a first version to a file, and return the note that names it."""
    actions = files = 0
    with pq.ParquetWriter(file, SCHEMA, compression="snappy") as writer:
        rest = _actions(lines)
        while some := list(islice(rest, AT_A_TIME)):
            actions += len(some)
            files += sum("add" in action for action in some)
            writer.write_batch(pa.RecordBatch.from_pylist(some, schema=SCHEMA))
    note = {
        "version": 0,
        "size": actions,
        "sizeInBytes": file.stat().st_size,
        "numOfAddFiles": files,
    }
    return json.dumps(note, separators=(",", ":")).encode()


def _actions(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    with lines_of(DELTA_LOG):
        for line in lines:
            action = parse_json(line)
            if "commitInfo" not in action:
                yield {kind: _row(body) for kind, body in action.items()}


def _row(body: dict[str, Any]) -> dict[str, Any]:
    """Return an action with its maps as Arrow takes them."""
    return {
        name: [*value.items()] if name in ("partitionValues", "configuration") else _nested(value)
        for name, value in body.items()
    }


def _nested(value: object) -> object:
    if isinstance(value, dict):
        return {**value, "options": [*value.get("options", {}).items()]}
    return value
