"""Lines in quarantine for which a condition holds, or may hold: most of them cannot be read whole.

A line is read as far as it can be: values that do not fit are left out. Where a value of the
condition stands somewhere else in it, or where it is no JSON at all, it may be meant.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa

from blizzard.model.predicate import Combined, Comparison, Operator, Predicate, PredicateInvalid
from blizzard.model.settings import MAX_LINE_BYTES
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import Block
from blizzard.worker.quarantine.reader import QuarantinedLine
from blizzard.worker.table_file import Columns, matches
from lakebed.columns.schema import Field, Schema
from lakebed.types import OnBadRecord, OnMismatch, UnknownFields


class LineMatch(StrEnum):
    """How far a condition holds for a line that was set aside."""

    HOLDS = "holds"
    MAY_HOLD = "may_hold"
    """A value of the condition stands somewhere in it, or it cannot be read."""


@dataclass(slots=True)
class Counted:
    """How many lines are meant, and how many may be."""

    lines: int = 0
    maybe: int = 0
    places: set[tuple[int | None, int | None, bytes]] = field(default_factory=set)
    """Where they are in the source file, and what they read: of one line in two files, the same."""


@dataclass(slots=True)
class LineSearch:
    """Searches lines for a condition."""

    predicate: Predicate
    columns: Schema
    """The columns as records give them."""
    _path: ExactPath = field(init=False)
    _values: re.Pattern[bytes] | None = field(init=False)
    _kinds: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the reading of lines."""
        self._path = ExactPath(
            # A required value that does not fit must not keep the others from being read.
            Schema(tuple(map(_optional, self.columns.fields))),
            max_line_bytes=MAX_LINE_BYTES,
            unknown=UnknownFields.DROP,
            on_mismatch=OnMismatch.RESCUE,
            on_bad_record=OnBadRecord.QUARANTINE,
        )
        self._values = values_in(self.predicate)
        self._kinds = {one.name: one.arrow_type() for one in self.columns.fields}

    def count(self, lines: Iterable[QuarantinedLine]) -> dict[str, Counted]:
        """Count the lines that are meant or may be, by the keys of their source files."""
        found: dict[str, Counted] = {}
        for line in lines:
            how = self.match(line.raw)
            if how is None:
                continue
            counted = found.setdefault(line.key, Counted())
            counted.lines += how is LineMatch.HOLDS
            counted.maybe += how is LineMatch.MAY_HOLD
            counted.places.add((line.line, line.offset, line.raw))
        return found

    def match(self, raw: bytes) -> LineMatch | None:
        """Return how far the condition holds for a line; None if it does not."""
        holds = self._holds(raw)
        if holds:
            return LineMatch.HOLDS
        return LineMatch.MAY_HOLD if self._may_hold(raw, unread=holds is None) else None

    def _holds(self, raw: bytes) -> bool | None:
        """Whether the condition holds for a line; None where it cannot be read."""
        rows = self._path.read(Block(text=raw + b"\n", first_line=1, lines=1)).batch
        if rows.num_rows != 1:
            return None
        table: pa.Table = pa.Table.from_batches([rows])
        try:
            found: Any = matches(self.predicate, Columns(table, 1, {}, self._kinds))
        except PredicateInvalid:
            return None  # The table has another type by now than records give.
        return bool(found[0].as_py())

    def _may_hold(self, raw: bytes, *, unread: bool) -> bool:
        if self._values is None:
            return unread
        return self._values.search(raw) is not None


def _optional(column: Field) -> Field:
    return replace(column, nullable=True, fields=tuple(map(_optional, column.fields)))


def values_in(predicate: Predicate) -> re.Pattern[bytes] | None:
    """Return what finds the values that a condition asks for in a line; None without any. Pure."""
    found = set(_texts(predicate))
    return re.compile(b"|".join(sorted(found))) if found else None


def _texts(predicate: Predicate) -> Iterator[bytes]:
    match predicate:
        case Combined(parts=parts):
            for part in parts:
                yield from _texts(part)
        case Comparison(operator=Operator.EQUAL, value=str(value)) if value:
            yield re.escape(value.encode())
            # As JSON writes it, with or without escapes for other than ASCII.
            for ascii_only in (True, False):
                text = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
                yield re.escape(text.encode())
        case Comparison(operator=Operator.EQUAL, value=value) if not isinstance(value, bool | str):
            yield rb"(?<![\d.])" + re.escape(str(value).encode()) + rb"(?![\d.])"
        case _:
            pass
