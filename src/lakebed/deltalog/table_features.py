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
    """Yield the table features that penguin does not support, each with the way out."""
    yield from filter(None, map(refused, sorted(names)))


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
        yield f"{ROW_TRACKING_SUSPENDED} is set: somebody is taking row tracking off the table"


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
APPENDS_ELSEWHERE = "Write to this table with Spark, or give blizzard a table of its own."


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFeature:
    """One table feature, and whether penguin writes tables that have it."""

    name: str
    note: str
    """What penguin does for it and on which condition, or the way out of the refusal."""
    appends: bool = True
    reads: bool = True
    """Whether deltalake reads the rows of such a table, for commands that show rows."""


FEATURES = (
    TableFeature(name="appendOnly", note="No file is taken out while `delta.appendOnly` is set."),
    TableFeature(name=INVARIANTS, note="As long as no column has an invariant."),
    TableFeature(name="checkConstraints", note="As long as the table has no constraint."),
    TableFeature(name="generatedColumns", note="As long as no column is generated."),
    TableFeature(name="allowColumnDefaults", note="As long as no column has a default."),
    TableFeature(
        name="changeDataFeed",
        note=(
            "Readers derive inserts from the files. A file that is replaced shows as deletes of "
            "its rows and inserts of those that stay."
        ),
    ),
    TableFeature(
        name="columnMapping",
        note=(
            "blizzard writes files under the names and ids that the table has for its columns. "
            "Columns are added, renamed and dropped with Spark."
        ),
    ),
    TableFeature(
        name=DELETION_VECTORS,
        note=(
            "Vectors are read, never written: a file that is replaced loses the rows that its "
            "vector deletes, the other files keep their vectors."
        ),
    ),
    TableFeature(name="timestampNtz", note="Local times are written as such."),
    TableFeature(name=OTHER_CHECKPOINTS, note="Checkpoints of all kinds are read."),
    TableFeature(name="domainMetadata", note="It stays as it is."),
    TableFeature(
        name=CLUSTERING,
        note=(
            "New files are not clustered; OPTIMIZE does that. No column is dropped. Name the "
            "clustering columns in `delta.dataSkippingStatsColumns` for files to carry their "
            "bounds."
        ),
    ),
    TableFeature(
        name=ROW_TRACKING,
        note=(
            "Every row gets an id that no row had before. One that is moved to another file keeps "
            "its id, and the version that wrote it, as long as the table names the columns for "
            "both: Spark does so where `delta.enableRowTracking` is set."
        ),
    ),
    TableFeature(
        name=IN_COMMIT_TIMESTAMP, note="Every commit is later than the one before, by what it says."
    ),
    TableFeature(
        name=TYPE_WIDENING,
        note=(
            "With `schema_evolution: merge`, a column gets the wider type of new files, and the "
            "change is recorded, as long as `delta.enableTypeWidening` is set."
        ),
        reads=False,
    ),
    TableFeature(
        name=TYPE_WIDENING_PREVIEW,
        note="Files have the types of now. Types are changed with Spark, which records it.",
        reads=False,
    ),
    TableFeature(
        name=CHECKPOINT_PROTECTION,
        note="Versions of the log that have expired are left to Spark to remove.",
    ),
    TableFeature(name="vacuumProtocolCheck", note="Asks nothing of a commit.", reads=False),
    TableFeature(
        name="catalogManaged",
        appends=False,
        reads=False,
        note="A catalog makes its commits. Write to it with an engine that knows the catalog.",
    ),
    TableFeature(
        name="coordinatedCommits-preview",
        appends=False,
        note=(
            "A coordinator makes its commits. Write to it with an engine that knows the "
            "coordinator, or drop the feature with Spark."
        ),
    ),
    TableFeature(
        name="identityColumns",
        appends=False,
        note=f"Its values are counted by the writer. {APPENDS_ELSEWHERE}",
    ),
    TableFeature(
        name="icebergCompatV1",
        appends=False,
        note=f"Its files need column ids, which blizzard does not write. {APPENDS_ELSEWHERE}",
    ),
    TableFeature(
        name="icebergCompatV2",
        appends=False,
        note=f"Its files need column ids, which blizzard does not write. {APPENDS_ELSEWHERE}",
    ),
    TableFeature(
        name="variantType",
        appends=False,
        note=(
            "No file of blizzard's holds such a type, and its values are shown as bytes. "
            f"{APPENDS_ELSEWHERE}"
        ),
    ),
    TableFeature(
        name="materializePartitionColumns",
        appends=False,
        note=f"blizzard's files do not hold partition columns. {APPENDS_ELSEWHERE}",
    ),
)

BY_NAME: Mapping[str, TableFeature] = {feature.name: feature for feature in FEATURES}


def refused(name: str) -> str | None:
    """Return why penguin refuses tables with a feature, and the way out; None if it writes them."""
    feature = BY_NAME.get(name)
    if feature is None:
        return f"table feature {name}, which this version of penguin does not know"
    return None if feature.appends else f"table feature {name}. {feature.note}"


def is_on(configuration: Mapping[str, str], name: str) -> bool:
    """Whether a boolean table property is true."""
    return configuration.get(name, "").strip().lower() == "true"
