"""Read the footer of a foreign Parquet file by ranged reads, never the whole file.

The end of the file is read, pinned by the e-tag if the store has one. A longer footer costs a
second read. Pages are not read.

Footers are tried in a separate process first: Arrow aborts the whole process when some parts of a
footer contradict each other. One damaged byte is enough, Python cannot catch it, and such a file
would end every penguin that reads it.
"""

import atexit
import base64
import binascii
import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Protocol, cast

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.deltalog.delta_types import DeltaField, DeltaSchema
from lakebed.documents.parquet_footer import (
    FRAME,
    LONGEST_FOOTER,
    MAGIC,
    TAIL,
    footer_length,
    leaf_paths,
    metadata_in,
    statistics,
)
from lakebed.documents.records import ColumnStatistics
from lakebed.listing.sort import readable
from lakebed.storage.options import ObjectFacts
from lakebed.types import FORBIDDEN_IN_NAMES
from penguin.model.settings import FileUnfit

PLAIN: Mapping[pa.DataType, str] = {
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
}
ARROW_SCHEMA = b"ARROW:schema"
"""The key of the writer's own types; some readers use them instead of the file's."""
LEGACY_TIMESTAMP = "INT96"


class BadType(Exception):
    """A type that a table cannot hold; the message says why."""


def file_schema(metadata: pq.FileMetaData) -> tuple[DeltaSchema, tuple[str, ...]]:
    """Return a file's columns in Delta types, and the reasons against columns without one."""
    arrow = metadata.schema.to_arrow_schema()
    stored = _stored_types(metadata)
    fields, reasons = [], []
    seen: set[str] = set()
    leaf = 0
    for one in arrow:
        walk = _FooterWalk(metadata, iter(range(leaf, metadata.num_columns)))
        leaf += len([*leaf_paths(one)])
        try:
            if one.name in seen:
                raise BadType("the file has two columns of this name")
            seen.add(one.name)
            if one.name in stored:
                _check_stored(stored[one.name])
            fields.append(walk.field(one))
        except BadType as reason:
            reasons.append(f"{readable(one.name)}: {reason}")
    return {"type": "struct", "fields": fields}, tuple(reasons)


def _stored_types(metadata: pq.FileMetaData) -> dict[str, pa.DataType]:
    """Return the writer's types by column; empty if the file does not record them."""
    body = (metadata.metadata or {}).get(ARROW_SCHEMA)
    if body is None:
        return {}
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(body)))
    except (pa.ArrowException, OSError, binascii.Error):
        return {}  # Then no reader uses it.
    return {one.name: one.type for one in schema}


def _check_stored(arrow: pa.DataType) -> None:
    """Refuse types that some reader cannot handle, at any depth."""
    if pa.types.is_dictionary(arrow):
        _check_stored(arrow.value_type)
    if pa.types.is_date64(arrow):
        raise BadType(
            "type date64: polars reads it as a timestamp, and Delta as a date; write the file "
            "with date32"
        )
    zone = arrow.tz or "" if pa.types.is_timestamp(arrow) else ""
    if zone.startswith(("+", "-")) and zone[1:] != "00:00":
        raise BadType(
            f"type {arrow}: polars cannot read a time zone that is an offset; write the file with "
            "UTC"
        )
    for index in range(arrow.num_fields if pa.types.is_nested(arrow) else 0):
        inner = arrow.field(index)
        try:
            _check_stored(inner.type)
        except BadType as reason:
            raise BadType(f"{readable(inner.name)}: {reason}") from None


class _FooterWalk:
    """One walk through the columns of a file; leaves come in the footer's order."""

    def __init__(self, metadata: pq.FileMetaData, leaves: Iterator[int]) -> None:
        self._metadata = metadata
        self._leaves = leaves

    def field(self, one: "pa.Field[Any]") -> DeltaField:
        bad = sorted({char for char in one.name if char in FORBIDDEN_IN_NAMES})
        kind = self.kind(one.type)
        if bad or not one.name:
            raise BadType(f"a column's name must not contain {bad!r}" if bad else "it has no name")
        return {"name": one.name, "type": kind, "nullable": one.nullable, "metadata": {}}

    def kind(self, arrow: pa.DataType) -> Any:  # noqa: ANN401 - one answer for each kind
        if pa.types.is_struct(arrow):
            inner = [self._inside(arrow.field(index)) for index in range(arrow.num_fields)]
            return {"type": "struct", "fields": inner}
        if pa.types.is_map(arrow):
            return {
                "type": "map",
                "keyType": self.kind(arrow.key_type),
                "valueType": self.kind(arrow.item_type),
                "valueContainsNull": arrow.item_field.nullable,
            }
        if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
            return {
                "type": "array",
                "elementType": self.kind(arrow.value_type),
                "containsNull": arrow.value_field.nullable,
            }
        if pa.types.is_nested(arrow):
            raise BadType(f"type {arrow} cannot be held by a Delta table")
        return self._leaf(arrow, self._metadata.schema.column(next(self._leaves)).physical_type)

    def _inside(self, one: "pa.Field[Any]") -> DeltaField:
        try:
            return self.field(one)
        except BadType as reason:
            raise BadType(f"{readable(one.name)}: {reason}") from None

    def _leaf(self, arrow: pa.DataType, physical: str) -> str:
        if pa.types.is_dictionary(arrow):
            arrow = arrow.value_type
        if physical == LEGACY_TIMESTAMP:
            return "timestamp"  # an instant, in UTC; it has no statistics
        if pa.types.is_timestamp(arrow):
            if arrow.unit not in ("ms", "us"):
                raise BadType(
                    f"type {arrow}: Delta keeps microseconds, and readers do not agree on more; "
                    "write the file with microseconds"
                )
            return "timestamp_ntz" if arrow.tz is None else "timestamp"
        if pa.types.is_decimal(arrow) and arrow.precision <= 38:
            return f"decimal({arrow.precision},{arrow.scale})"
        found = PLAIN.get(arrow)
        if found is None:
            raise BadType(f"type {arrow} cannot be held by a Delta table")
        return found


OUR_MARK = b"blizzard.journal"


class Parts(Protocol):
    """The part of a store that reading a footer needs."""

    def part(self, path: str, start: int, end: int, *, etag: str | None) -> bytes:
        """Read some bytes of an object."""

    def describe(self, path: str) -> str:
        """Return how messages name an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """The parsed footer of a file."""

    rows: int
    schema: DeltaSchema
    reasons: tuple[str, ...]
    """Why no table can hold some of its columns."""
    statistics: dict[str, ColumnStatistics]
    ours: bool
    """Whether blizzard wrote it: then only a journal entry may add it."""


def read_footer(store: Parts, facts: ObjectFacts) -> Footer:
    """Read a file's footer; FileUnfit says why it is not a complete Parquet file."""
    where, size = store.describe(facts.path), facts.size
    if size < len(MAGIC) + FRAME:
        raise FileUnfit(f"{size} bytes are too few for a Parquet file", file=where)
    start = max(0, size - TAIL)
    tail = store.part(facts.path, start, size, etag=facts.etag)
    length = _length(tail, size, where)
    if length > len(tail):
        tail = store.part(facts.path, size - length, size, etag=facts.etag)
    footer = tail[-length:]
    if not TRIAL.survives(footer):
        raise FileUnfit("the Parquet footer contradicts itself", file=where)
    return parse_footer(footer, where)


def parse_footer(footer: bytes, where: str) -> Footer:
    """Parse a footer with its frame.

    Arrow may abort the process if the footer was not tried before.
    """
    try:
        metadata = metadata_in(footer)
        schema, reasons = file_schema(metadata)
    except MemoryError:
        raise  # ArrowException includes Arrow's own, which says nothing about the file.
    except (pa.ArrowException, OSError, ValueError) as cause:
        raise FileUnfit("the Parquet footer cannot be read", file=where) from cause
    return Footer(
        rows=metadata.num_rows,
        schema=schema,
        reasons=reasons,
        statistics=statistics(metadata),
        ours=OUR_MARK in (metadata.metadata or {}),
    )


def _length(tail: bytes, size: int, where: str) -> int:
    """Return the length of a footer, frame included."""
    length = footer_length(tail)
    if length is None:
        raise FileUnfit("the file does not end like a Parquet file", file=where)
    if length > min(size - len(MAGIC), LONGEST_FOOTER):
        raise FileUnfit(f"a Parquet footer of {length} bytes is impossible", file=where)
    return length


LENGTH_BYTES = 4
SURVIVED = b"+"


class FooterTrial:
    """A process that reads the footers it is sent; if it dies, the next question starts another."""

    def __init__(self, *command: str) -> None:
        self.command = command
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def survives(self, footer: bytes) -> bool:
        """Whether a process that reads this footer survives, accepting it or not.

        Being killed says nothing about the footer: MemoryError, since the system does so when it
        runs out of memory.
        """
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(  # noqa: S603 - our own program, nothing of the file's
                    self.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            question, answer = cast("IO[bytes]", self._process.stdin), self._process.stdout
            # A broken pipe: it died before it had read everything.
            with contextlib.suppress(BrokenPipeError):
                question.write(len(footer).to_bytes(LENGTH_BYTES, "little") + footer)
                question.flush()
            if answer is not None and answer.read(1) == SURVIVED:
                return True
            if self._end() == -signal.SIGKILL:
                raise MemoryError("the process that tries Parquet footers was ended")
            return False

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _end(self) -> int:
        """Let the process end, which it does without further questions; return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with contextlib.suppress(BrokenPipeError):  # Unsent bytes are lost.
            process.communicate()
        return process.returncode


# Without the working directory on its path: a module there may have a library's name.
TRIAL = FooterTrial(sys.executable, "-P", "-m", "penguin.foreign.footer")
"""Shared by all tables; started by the first question and ended with the program."""
atexit.register(TRIAL.close)


def main() -> None:
    """Read footers from standard input, each after its length; answer each one survived."""
    while head := sys.stdin.buffer.read(LENGTH_BYTES):
        footer = sys.stdin.buffer.read(int.from_bytes(head, "little"))
        # The asking process judges the footer itself.
        with contextlib.suppress(Exception):
            parse_footer(footer, "")
        sys.stdout.buffer.write(SURVIVED)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
