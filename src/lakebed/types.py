"""Enums that both programs share: in YAML, on the command line and in documents. No Arrow.

Pydantic reads them from the configuration, and lists them in messages in this order.
"""

from enum import IntEnum, StrEnum
from typing import Self


class Codec(StrEnum):
    """The compression of a source file, with its suffix and its first bytes."""

    suffix: str
    first_bytes: bytes
    """A regular expression; no line of NDJSON matches it."""

    NONE = "none"
    GZIP = "gzip", ".gz", rb"\x1f\x8b"
    ZSTD = "zstd", ".zst", rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"
    BZIP2 = "bzip2", ".bz2", rb"BZh(?:[1-9]|\Z)"

    def __new__(cls, value: str, suffix: str = "", first_bytes: bytes = b"") -> Self:
        """Create a member, which is a string like those of other enums."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.suffix = suffix
        member.first_bytes = first_bytes
        return member


class Compression(StrEnum):
    """The configured compression of source files; AUTO detects it by name and first bytes."""

    AUTO = "auto"
    NONE = Codec.NONE.value
    GZIP = Codec.GZIP.value
    ZSTD = Codec.ZSTD.value
    BZIP2 = Codec.BZIP2.value


class ParquetCodec(StrEnum):
    """The compression of pages in Parquet files."""

    SNAPPY = "snappy"
    GZIP = "gzip"
    ZSTD = "zstd"
    LZ4 = "lz4"
    UNCOMPRESSED = "uncompressed"


class FieldType(StrEnum):
    """The types of declared fields, each with the Delta type of its column.

    If several have one Delta type, a column of it is read as the first of them.
    """

    delta: str
    """Empty if the Delta type has parameters: digits, or inner fields."""

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
        """Create a member, which is a string like those of other enums."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.delta = delta
        return member


RESCUED = "_rescued"
"""The column of rescued values, as JSON text `{"path": value}`."""
FORBIDDEN_IN_NAMES = frozenset(" ,;{}()=\x7f") | frozenset(map(chr, range(32)))
"""Characters that are not allowed in column names of a Delta table, without column mapping.

Spark's Delta lists only line break and tab; no reader can handle all control characters.
"""
DEEPEST_COLUMN = 30
"""The most levels of fields in one column, itself included. Readers of the Delta log fail on deeper
schemas, from about 40 levels on, and then the whole table is unreadable."""
NESTED_TYPES = frozenset({FieldType.STRUCT, FieldType.LIST, FieldType.MAP})
"""The types that hold fields of their own."""


class OnChange(StrEnum):
    """What to do with a file that changed after it was ingested."""

    ERROR = "error"
    """Report the change, and do not read the new content."""
    IGNORE = "ignore"
    """Do not read the new content, silently."""
    REINGEST = "reingest"
    """Ingest the new content like a new file; the old rows stay."""
    REPLACE = "replace"
    """Replace the old rows by the new content, in one commit."""


class UnknownFields(StrEnum):
    """What to do with a field that is not declared."""

    RESCUE = "rescue"
    """Keep its value as JSON in the column `_rescued`."""
    ADD = "add"
    """Add a column to the table."""
    DROP = "drop"
    """Drop and count its value."""
    FAIL = "fail"
    """Its line is bad."""


KEEPING = frozenset({UnknownFields.RESCUE, UnknownFields.ADD})
"""The modes that keep values of undeclared fields."""


class OnMismatch(StrEnum):
    """What to do with a value that does not fit the type of its column."""

    FAIL = "fail"
    """Its line is bad."""
    RESCUE = "rescue"
    """Keep it as JSON in the column `_rescued`, with null in its column."""


class OnBadRecord(StrEnum):
    """What to do with a line that cannot be read."""

    FAIL = "fail"
    """Its file fails."""
    QUARANTINE = "quarantine"
    """Quarantine the raw line with the reason, and read the rest of its file."""


class Provenance(StrEnum):
    """The provenance that columns of a table may record for a row."""

    FILE = "file"
    LINE = "line"
    BATCH = "batch"
    INGESTED_AT = "ingested_at"

    @property
    def column(self) -> str:
        """Return the name of the column."""
        return f"_{self.value}"


RESERVED = frozenset((RESCUED, *(one.column for one in Provenance)))
"""Names of columns that no field of a record may have, in lower case."""


class Handoff(StrEnum):
    """How blizzard hands files off to penguin."""

    JOURNAL = "journal"
    STAGING = "staging"
    DIRECT = "direct"


class CommitMode(StrEnum):
    """Who commits to the Delta log."""

    PENGUIN = "penguin"
    INLINE = "inline"


class Evolution(StrEnum):
    """How a table's schema may change for files with other columns."""

    STRICT = "strict"
    MERGE = "merge"
    OVERWRITE = "overwrite"


class DiscoverBy(StrEnum):
    """How new files are found; AUTO follows the table directory's hand-off."""

    AUTO = "auto"
    JOURNAL = "journal"
    STAGING = "staging"
    WATERMARK = "watermark"


class SourceFormat(StrEnum):
    """The format of a source file."""

    NDJSON = "ndjson"
    """Lines, one record each."""
    JSON = "json"
    """Documents, one after the other, in any layout."""


class CatalogType(StrEnum):
    """The kind of a catalog."""

    GLUE = "glue"
    HIVE = "hive"


class Level(IntEnum):
    """Levels of events, numbered as in the standard library's logging."""

    TRACE = 5
    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40


class LogFormat(StrEnum):
    """Formats of log lines."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The names of the levels on the command line."""

    TRACE = "trace"
    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"

    @property
    def level(self) -> Level:
        """Return the level of the name."""
        return Level[self.name]
