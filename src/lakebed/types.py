"""The closed sets that both programs share: in YAML, in settings and in documents. No Arrow.

Pydantic reads them from the configuration as they stand here, in the order in which a message about
a wrong value lists them.
"""

from enum import StrEnum
from typing import Self


class Codec(StrEnum):
    """How a source file is compressed, how its name ends then, and what it begins with."""

    suffix: str
    first_bytes: bytes
    """A regular expression; no line of NDJSON matches it."""

    NONE = "none"
    GZIP = "gzip", ".gz", rb"\x1f\x8b"
    ZSTD = "zstd", ".zst", rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"
    BZIP2 = "bzip2", ".bz2", rb"BZh(?:[1-9]|\Z)"

    def __new__(cls, value: str, suffix: str = "", first_bytes: bytes = b"") -> Self:
        """Make a member, which is a text like that of any other set here."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.suffix = suffix
        member.first_bytes = first_bytes
        return member


class Compression(StrEnum):
    """How source files are compressed; AUTO goes by the file: its name, and its first bytes."""

    AUTO = "auto"
    NONE = Codec.NONE.value
    GZIP = Codec.GZIP.value
    ZSTD = Codec.ZSTD.value
    BZIP2 = Codec.BZIP2.value


class ParquetCodec(StrEnum):
    """How the pages of a Parquet file are compressed."""

    SNAPPY = "snappy"
    GZIP = "gzip"
    ZSTD = "zstd"
    LZ4 = "lz4"
    UNCOMPRESSED = "uncompressed"


class FieldType(StrEnum):
    """The types a field can be declared as, each with the Delta type of its column.

    Where several have one Delta type, a column of that type is read as the first of them.
    """

    delta: str
    """Empty where Delta needs more than a name: digits, or inner fields."""

    STRING = "string", "string"
    INT8 = "int8", "byte"
    INT16 = "int16", "short"
    INT32 = "int32", "integer"
    INT64 = "int64", "long"
    FLOAT32 = "float32", "float"
    FLOAT64 = "float64", "double"
    DECIMAL = "decimal"
    BOOLEAN = "boolean", "boolean"
    TIMESTAMP = "timestamp", "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz", "timestamp_ntz"
    DATE = "date", "date"
    JSON = "json", "string"
    BINARY = "binary", "binary"
    STRUCT = "struct"
    LIST = "list"
    MAP = "map"

    def __new__(cls, value: str, delta: str = "") -> Self:
        """Make a member, which is a text like that of any other set here."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.delta = delta
        return member


RESCUED = "_rescued"
"""The column that keeps what no other column takes, as JSON text `{"path": value}`."""
FORBIDDEN_IN_NAMES = frozenset(" ,;{}()=\x7f") | frozenset(map(chr, range(32)))
"""Characters that no column of a Delta table may have in its name, without column mapping.

Spark's Delta names the line break and the tab alone; no reader can handle all control characters.
"""
DEEPEST_COLUMN = 30
"""Levels of fields in one column, itself included. Readers of the Delta log give up on schemas that
are nested deeper, from about 40 levels on, and then the whole table cannot be read."""
NESTED_TYPES = frozenset({FieldType.STRUCT, FieldType.LIST, FieldType.MAP})
"""The types that hold fields of their own."""


class OnChange(StrEnum):
    """What becomes of a file that changed after it was ingested."""

    ERROR = "error"
    """The change is reported, and the new content is not read."""
    IGNORE = "ignore"
    """Its new content is not read, and nothing is said."""
    REINGEST = "reingest"
    """Its new content is ingested like a new file's; the rows of the old one stay."""
    REPLACE = "replace"
    """Its new content takes the place of the rows of the old one, in one commit."""


class UnknownFields(StrEnum):
    """What becomes of a field that is not declared."""

    RESCUE = "rescue"
    """Its value is kept as JSON in the column `_rescued`."""
    ADD = "add"
    """The table gets a column for it."""
    DROP = "drop"
    """Its value is left out and counted."""
    FAIL = "fail"
    """Its line is a bad one."""


KEEPING = frozenset({UnknownFields.RESCUE, UnknownFields.ADD})
"""What keeps the values of fields that are not declared in the column for them."""


class OnMismatch(StrEnum):
    """What becomes of a value that does not fit the type of its column."""

    FAIL = "fail"
    """Its line is a bad one."""
    RESCUE = "rescue"
    """It is kept as JSON in the column `_rescued`, and the column is null."""


class OnBadRecord(StrEnum):
    """What becomes of a line that cannot be read."""

    FAIL = "fail"
    """Its file fails."""
    QUARANTINE = "quarantine"
    """It is set aside as it stands, with the reason, and the rest of its file is read."""


class Provenance(StrEnum):
    """What columns of a table may say of where a row came from."""

    FILE = "file"
    LINE = "line"
    BATCH = "batch"
    INGESTED_AT = "ingested_at"

    @property
    def column(self) -> str:
        """Return the name of the column."""
        return f"_{self.value}"


class Handoff(StrEnum):
    """How penguin learns of a file."""

    JOURNAL = "journal"
    STAGING = "staging"
    DIRECT = "direct"


class CommitMode(StrEnum):
    """Who commits to the Delta log."""

    PENGUIN = "penguin"
    INLINE = "inline"


class Evolution(StrEnum):
    """What a file whose schema is not the table's may change."""

    STRICT = "strict"
    MERGE = "merge"
    OVERWRITE = "overwrite"


class SkippingColumns(StrEnum):
    """Which columns get bounds that readers skip files by."""

    ALL = "all"
    CAREFUL = "careful"


class DiscoverBy(StrEnum):
    """How new files are found; AUTO obeys what the table directory says of itself."""

    AUTO = "auto"
    JOURNAL = "journal"
    STAGING = "staging"
    WATERMARK = "watermark"


class SourceFormat(StrEnum):
    """What a source file is made of."""

    NDJSON = "ndjson"
    """Lines, one record each."""
    JSON = "json"
    """Documents, one after the other, in any layout."""


class CatalogType(StrEnum):
    """Which kind of catalog names a table for other engines."""

    GLUE = "glue"
    HIVE = "hive"
