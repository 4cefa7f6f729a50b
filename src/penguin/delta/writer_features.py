"""What a table may require of its writers that penguin does not do. Pure."""

from collections.abc import Iterator, Mapping

from penguin.model.delta_types import inner_structs
from penguin.model.table import DeltaField

FORGETS_TRANSACTIONS = "delta.setTransactionRetentionDuration"
LAST_KNOWN_READER = 3
LAST_KNOWN_WRITER = 7
VERSION_WITH_IDENTITY_COLUMNS = 6
INVARIANTS = "invariants"
DELETION_VECTORS = "deletionVectors"
OTHER_CHECKPOINTS = "v2Checkpoint"
APPEND_ONLY = "delta.appendOnly"
SAFE_FEATURES = frozenset(
    {
        "appendOnly",  # only adds are written
        "changeDataFeed",  # readers derive inserts from adds
        "checkConstraints",  # while no constraint is set, see below
        "columnMapping",  # while its mode is none, see below
        DELETION_VECTORS,  # adds carry none, and a checkpoint keeps those of others
        "generatedColumns",  # while no column is one, see below
        INVARIANTS,  # while no column has one, see below
        "timestampNtz",
        OTHER_CHECKPOINTS,  # a checkpoint of the classic kind stays allowed
    }
)
UNSAFE_FIELD_METADATA = (
    "delta.columnMapping",
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


def unsafe_properties(configuration: Mapping[str, str]) -> Iterator[str]:
    """Yield the properties that penguin cannot keep to."""
    for name, value in sorted(configuration.items()):
        if name == FORGETS_TRANSACTIONS:
            yield f"{name} is set: the table would forget which entries are committed"
        elif name.startswith("delta.constraints."):
            yield f"{name} is set: constraints are not checked"
        elif name == "delta.columnMapping.mode" and value != "none":
            yield f"{name} is {value}"


def unsafe_fields(fields: list[DeltaField], inside: str = "") -> Iterator[str]:
    """Yield the columns of which more is asked than their type."""
    for field in fields:
        shown = f"{inside}{field['name']}"
        for name in sorted(field.get("metadata") or ()):
            if name.startswith(UNSAFE_FIELD_METADATA):
                yield f"column {shown} has {name}"
        for inner in inner_structs(field["type"]):
            yield from unsafe_fields(inner["fields"], f"{shown}.")
