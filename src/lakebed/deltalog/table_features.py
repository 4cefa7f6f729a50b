"""The table features of the Delta protocol that penguin supports. Pure.

FEATURES decides which tables penguin writes, and docs/table-features.md is generated from it. A
feature that is not listed is refused by name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakebed.columns.column_mapping import (
    COLUMN_ID,
    MODE,
    PHYSICAL_NAME,
    format_path,
    maps_columns,
    mode_of,
    types_within,
)
from lakebed.deltalog.delta_types import DeltaSchema

FORGETS_TRANSACTIONS = "delta.setTransactionRetentionDuration"
ROW_TRACKING_SUSPENDED = "delta.rowTrackingSuspended"
LAST_KNOWN_READER = 3
LAST_KNOWN_WRITER = 7
VERSION_WITH_IDENTITY_COLUMNS = 6
APPEND_ONLY = "delta.appendOnly"
MAPPING_MODES = ("none", "name", "id")
UNSAFE_FIELD_METADATA = (
    "CURRENT_DEFAULT",
    "delta.generationExpression",
    "delta.identity",
    "delta.invariants",
)


def unsafe_protocol(reader: int, writer: int) -> Iterator[str]:
    """Yield the protocol versions that penguin does not know."""
    if reader > LAST_KNOWN_READER:
        yield f"reader version {reader}"
    if writer > LAST_KNOWN_WRITER or writer == VERSION_WITH_IDENTITY_COLUMNS:
        yield f"writer version {writer}"


def unsafe_features(names: frozenset[str]) -> Iterator[str]:
    """Yield the table features that penguin does not support."""
    for name in sorted(names - BY_NAME.keys()):
        yield (
            f"table feature {name}, which penguin does not write: write to this table with the "
            "engine that made it, or give blizzard a table of its own"
        )


def unsafe_properties(configuration: Mapping[str, str]) -> Iterator[str]:
    """Yield the table properties that penguin cannot honour."""
    for name, value in sorted(configuration.items()):
        if name == FORGETS_TRANSACTIONS:
            yield f"{name} is set: the table would forget which entries are committed"
        elif name.startswith("delta.constraints."):
            yield f"{name} is set: constraints are not checked"
        elif name == MODE and mode_of(configuration) not in MAPPING_MODES:
            yield f"{name} is {value}, which this version of penguin does not know"
    if is_on(configuration, ROW_TRACKING_SUSPENDED):
        yield f"{ROW_TRACKING_SUSPENDED} is set: row tracking is being removed from the table"


def unsafe_fields(schema: DeltaSchema, configuration: Mapping[str, str]) -> Iterator[str]:
    """Yield the columns that have requirements beyond their type."""
    mapped = maps_columns(configuration)
    for path, _kind, metadata in types_within(schema):
        if metadata is None:
            continue
        for name in sorted(metadata):
            if name.startswith(UNSAFE_FIELD_METADATA):
                yield f"column {format_path(path)} has {name}"
        if mapped and not {PHYSICAL_NAME, COLUMN_ID} <= metadata.keys():
            yield (
                f"column {format_path(path)} lacks {PHYSICAL_NAME} or {COLUMN_ID}, and columns "
                "are mapped"
            )


INVARIANTS = "invariants"
DELETION_VECTORS = "deletionVectors"
OTHER_CHECKPOINTS = "v2Checkpoint"
ROW_TRACKING = "rowTracking"
TYPE_WIDENING = "typeWidening"
IN_COMMIT_TIMESTAMP = "inCommitTimestamp"
CLUSTERING = "clustering"
CHECKPOINT_PROTECTION = "checkpointProtection"
TYPE_WIDENING_PREVIEW = "typeWidening-preview"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFeature:
    """One table feature of the tables that penguin writes."""

    name: str
    note: str
    """What penguin does, and on which condition."""
    reads: bool = True
    """Whether deltalake reads the rows of such a table, for commands that show rows."""


FEATURES = (
    TableFeature(name="appendOnly", note="No file is removed while `delta.appendOnly` is set."),
    TableFeature(name=INVARIANTS, note="Only while no column has an invariant."),
    TableFeature(name="checkConstraints", note="Only while the table has no constraint."),
    TableFeature(name="generatedColumns", note="Only while no column is generated."),
    TableFeature(name="allowColumnDefaults", note="Only while no column has a default."),
    TableFeature(
        name="changeDataFeed",
        note=(
            "Readers derive inserts from the files. A replaced file shows as deletes of all of "
            "its rows and inserts of those that remain."
        ),
    ),
    TableFeature(
        name="columnMapping",
        note=(
            "blizzard writes files with the table's physical column names and ids. Add, rename "
            "and drop columns with Spark."
        ),
    ),
    TableFeature(
        name=DELETION_VECTORS,
        note=(
            "Vectors are read, never written: a file that replaces another omits the rows that "
            "its vector deletes; all other files keep their vectors."
        ),
    ),
    TableFeature(name="timestampNtz", note="Local times are written without a time zone."),
    TableFeature(name=OTHER_CHECKPOINTS, note="Checkpoints of all kinds are read."),
    TableFeature(name="domainMetadata", note="It is left unchanged."),
    TableFeature(
        name=CLUSTERING,
        note=(
            "New files are not clustered; OPTIMIZE does that. No column is dropped. For bounds of "
            "the clustering columns, name them in `delta.dataSkippingStatsColumns`."
        ),
    ),
    TableFeature(
        name=ROW_TRACKING,
        note=(
            "Every new row gets a new id. A row that moves to another file keeps its id and its "
            "commit version if the table names the columns for both, as Spark does when "
            "`delta.enableRowTracking` is set."
        ),
    ),
    TableFeature(
        name=IN_COMMIT_TIMESTAMP, note="The timestamp of every commit is later than the one before."
    ),
    TableFeature(
        name=TYPE_WIDENING,
        note="Files have the current types. Change types with Spark, which records the change.",
        reads=False,
    ),
    TableFeature(
        name=TYPE_WIDENING_PREVIEW,
        note="Files have the current types. Change types with Spark, which records the change.",
        reads=False,
    ),
    TableFeature(
        name=CHECKPOINT_PROTECTION,
        note="Expired versions of the log are left for Spark to remove.",
    ),
    TableFeature(name="vacuumProtocolCheck", note="It does not affect commits.", reads=False),
)

BY_NAME: Mapping[str, TableFeature] = {feature.name: feature for feature in FEATURES}


def is_on(configuration: Mapping[str, str], name: str) -> bool:
    """Whether a boolean table property is true."""
    return configuration.get(name, "").strip().lower() == "true"
