"""A table as a catalog names it: what is wanted, and what the catalog says. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakebed.errors import LakeError, Whose
from lakebed.storage.options import StorageOptions
from lakebed.types import CatalogType


class CatalogUnavailable(LakeError):
    """The catalog does not answer, or cannot at the moment."""

    code = "catalog_unavailable"
    whose = Whose.EXTERNAL
    retryable = True


class CatalogDenied(LakeError):
    """The catalog refused us: credentials or permissions."""

    code = "catalog_denied"
    whose = Whose.EXTERNAL


class CatalogMissing(LakeError):
    """The catalog has no such database."""

    code = "catalog_missing"
    whose = Whose.USER


class CatalogConflict(LakeError):
    """The catalog has something else under the table's name."""

    code = "catalog_conflict"
    whose = Whose.USER


CATALOG_ERRORS = ("catalog_conflict", "catalog_denied", "catalog_missing", "catalog_unavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSettings:
    """Where a table is registered."""

    type: CatalogType
    database: str
    table: str
    location: str | None = None
    """What the catalog is told of where the table is; None for the table's own URI."""
    uri: str | None = None
    """The address of a Hive metastore."""
    endpoint: str | None = None
    """The address of Glue, where it is not that of its region."""
    region: str | None = None
    options: StorageOptions = field(default_factory=StorageOptions)
    """By whose credentials it is asked."""

    @property
    def name(self) -> str:
        """Return the name by which engines know the table."""
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True)
class Column:
    """A column as catalogs write it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """What a catalog should say of a table, or says."""

    location: str
    columns: tuple[Column, ...]
    parameters: Mapping[str, str] = field(default_factory=dict)


class CatalogState(StrEnum):
    """What a catalog says of a table, held against what it should."""

    REGISTERED = "registered"
    OUTDATED = "outdated"
    MISSING = "missing"
    CONFLICT = "conflict"
    """Something else has the table's name there."""
    UNREACHABLE = "unreachable"
