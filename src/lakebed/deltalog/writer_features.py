"""What a table may require of its writers that penguin does not do. Pure."""

from collections.abc import Iterator, Mapping

from lakebed.columns.column_mapping import COLUMN_ID, MODE, PHYSICAL_NAME, mode_of
from lakebed.deltalog.delta_types import inner_structs
from lakebed.deltalog.table_facts import DeltaField
from lakebed.deltalog.table_features import is_on, refused

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
    """Yield the table features that penguin does not write, each with what to do."""
    for name in sorted(names):
        why = refused(name)
        if why is not None:
            yield why


def unsafe_properties(configuration: Mapping[str, str]) -> Iterator[str]:
    """Yield the properties that penguin cannot keep to."""
    for name, value in sorted(configuration.items()):
        if name == FORGETS_TRANSACTIONS:
            yield f"{name} is set: the table would forget which entries are committed"
        elif name.startswith("delta.constraints."):
            yield f"{name} is set: constraints are not checked"
        elif name == MODE and mode_of(configuration) not in MAPPING_MODES:
            yield f"{name} is {value}, which this version of penguin does not know"
    if is_on(configuration, ROW_TRACKING_SUSPENDED):
        yield f"{ROW_TRACKING_SUSPENDED} is set: somebody is taking row tracking off the table"


def unsafe_fields(
    fields: list[DeltaField], configuration: Mapping[str, str], inside: str = ""
) -> Iterator[str]:
    """Yield the columns of which more is asked than their type."""
    mapped = mode_of(configuration) != "none"
    for field in fields:
        shown = f"{inside}{field['name']}"
        metadata = field.get("metadata") or {}
        for name in sorted(metadata):
            if name.startswith(UNSAFE_FIELD_METADATA):
                yield f"column {shown} has {name}"
        if mapped and not {PHYSICAL_NAME, COLUMN_ID} <= metadata.keys():
            yield f"column {shown} lacks {PHYSICAL_NAME} or {COLUMN_ID}, and columns are mapped"
        for inner in inner_structs(field["type"]):
            yield from unsafe_fields(inner["fields"], configuration, f"{shown}.")
