"""Partition columns as they are written on a command line. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebed.columns.schema import DELTA
from lakebed.config.ddl import schema_from
from lakebed.partition import PARTITION_TYPES, Template
from lakebed.types import FieldType


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumns:
    """Partition columns in their order, and the Delta types of those that have one."""

    names: tuple[str, ...]
    types: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_template(cls, template: str | None) -> "PartitionColumns | None":
        """Return those that a `prefix_template` of the configuration names."""
        if template is None:
            return None
        parts = Template.parse(template).parts
        types = {part.key: DELTA[part.field.type] for part in parts}
        return cls(names=tuple(types), types=types)


def parse_partition_columns(text: str) -> PartitionColumns:
    """Read `date:date,region:string`; a column without a type is text, or what the files say.

    A ValueError says what is wrong with it.
    """
    names: list[str] = []
    types: dict[str, str] = {}
    for part in text.split(","):
        name, colon, kind = (piece.strip() for piece in part.partition(":"))
        if not name or (colon and not kind):
            raise ValueError(f"{part!r} is not of the form column or column:type")
        if name in names:
            raise ValueError(f"column {name} appears twice")
        names.append(name)
        if kind:
            types[name] = _type(name, kind)
    return PartitionColumns(names=tuple(names), types=types)


def _type(name: str, kind: str) -> str:
    allowed = tuple(PARTITION_TYPES)
    found = FieldType(kind) if kind in allowed else _from_ddl(kind)
    if found is None or found not in allowed:
        raise ValueError(
            f"{name} cannot be of type {kind}; a partition column is one of "
            f"{', '.join(one.value for one in allowed)}"
        )
    return DELTA[found]


def _from_ddl(kind: str) -> FieldType | None:
    """Return a type by the name that Spark has for it; None for one that is no plain type."""
    try:
        (declared,) = schema_from(f"c {kind}")
        return FieldType(declared["type"])
    except (ValueError, KeyError):
        return None
