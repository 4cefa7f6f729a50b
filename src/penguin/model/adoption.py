"""A folder of Parquet files that is to become a table: what is asked for, and what was found."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebed.deltalog.delta_types import DeltaSchema, TableFacts
from penguin.model.foreign_file import Candidate, ForeignFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the one who adopts a folder says of it."""

    partition_columns: tuple[str, ...] | None = None
    """In this order; None: those that the folders name."""
    partition_types: Mapping[str, str] = field(default_factory=dict)
    """Delta types, by partition column."""
    infer_types: bool = False
    """Whether partition columns whose values are all dates, or all integers, get that type."""
    skip_unreadable: bool = False
    """Whether files that cannot be read as Parquet are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A file that cannot be in the table as it is, and why."""

    file: str
    code: str
    reason: str
    skippable: bool = False
    """Whether it is left out if the one who adopts says so: there are no rows to be read in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """What was found of one file: its footer, or why it has none that counts."""

    found: Candidate
    file: ForeignFile | None = None
    schema_key: str = ""
    """Names the schema among all that were found."""
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaUse:
    """A schema that some files have."""

    key: str
    schema: DeltaSchema
    files: int
    example: str
    """One of these files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """The table that files are to become, and which of their schemas it can hold."""

    facts: TableFacts
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why files of a schema do not fit, by the key of the schema."""
    seen: Mapping[str, DeltaSchema] = field(default_factory=dict)
    """The columns of each schema that are read from files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What is adopted, or would be."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    empty_files: tuple[str, ...] = ()
    """Files without rows; they are adopted as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What else is in the folder, by name."""

    hidden: tuple[str, ...] = ()
    """Files and folders that begin with `_` or `.`, which hold no data by convention, and objects
    of other names that are empty, such as the markers of folders in a bucket."""
    troubles: tuple[Trouble, ...] = ()
    """Names that are not those of Parquet files, or cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What became of a folder, or would."""

    totals: Totals = field(default_factory=Totals)
    table: TableFacts | None = None
    troubles: tuple[Trouble, ...] = ()
    """Why the folder is not adopted; nothing if it is, or can be."""
    skipped: tuple[Trouble, ...] = ()
    """Files that are left out because that was asked for."""
    hidden: tuple[str, ...] = ()
    footers_read: int = 0
    """How many footers this run has read; the others were known from an earlier one."""
    version: int | None = None
    """The version that holds the files; None while there is no table."""
    before: bool = False
    """Whether it was adopted before, or by another process meanwhile."""
    checkpoint_error: str | None = None
    """Why no checkpoint could be written; the table is there all the same."""
