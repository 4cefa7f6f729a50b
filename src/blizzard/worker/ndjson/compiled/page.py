"""Pages of lines read in one scan, and the lines that the fast path refuses.

A column is built for all of its rows or for none. If that fails, this module finds the rows at
fault. One row too many is harmless, since the exact path decides; one too few is found in the next
scan or sends the whole block to the exact path.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.worker.ndjson.compiled.columns import (
    ACCEPTED,
    Bytes,
    Doubtful,
    Leaf,
    Tokens,
    required,
    texts_of,
    tokens_of,
    valid,
)
from blizzard.worker.ndjson.compiled.leftovers import MakesColumn, Numbers, Trail, kinds_of, leaf_of
from blizzard.worker.ndjson.compiled.syntax import ABSENT, ESCAPED, MAX_DEPTH, OBJECT, SIZE
from blizzard.worker.ndjson.fields import converter
from blizzard.worker.ndjson.values import JsonValue, ValueRefused
from lakebed.columns.schema import Field
from lakebed.types import FieldType, UnknownFields

Flags = npt.NDArray[np.bool_]

_PLAIN_VALUES = tuple(range(ABSENT + 1, OBJECT))
_HALF = r"\\u[dD][89a-fA-F]"
"""A surrogate, which may be half a pair."""


class Refusals:
    """The refused lines of a page, by line index."""

    def __init__(self) -> None:
        self.line_of: Numbers = np.empty(0, np.int32)
        """The line of each row."""
        self.line_starts: Numbers | None = None
        """The start of each line; None if never computed."""
        self._lines: list[Numbers] = []

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._lines)

    @property
    def lines(self) -> npt.NDArray[np.int64]:
        """Return them sorted, without duplicates."""
        return np.unique(np.concatenate(self._lines)).astype(np.int64)

    def add(self, lines: Numbers) -> None:
        """Refuse lines."""
        self._lines.append(lines)

    def add_rows(self, rows: Numbers, trail: Trail) -> None:
        """Refuse the lines of some rows of a level."""
        here: Trail | None = trail
        while here is not None:
            rows, here = here.rows_above(rows), here.parent
        self.add(self.line_of[rows])


@dataclass(frozen=True, slots=True)
class Page:
    """Consecutive blocks of lines that are scanned at once."""

    data: Bytes
    """The bytes, padded with one vector step."""
    ends: npt.NDArray[np.int64]
    """The end of each block."""
    unknown: UnknownFields
    counted: Mapping[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Non-null values of undeclared fields, by block and path."""
    room: Bytes = field(default_factory=lambda: np.empty(MAX_DEPTH, np.uint8))
    refused: Refusals | None = None
    """The lines that need the exact path; None to give up at the first one."""

    @property
    def refusals(self) -> Refusals:
        """Return the collected refusals; raise `Doubtful` without a collector."""
        if self.refused is None:
            raise Doubtful
        return self.refused


@dataclass(frozen=True, slots=True)
class Scanned:
    """The tokens of a scan."""

    tokens: Sequence[Tokens]
    """By declared member."""
    counts: npt.NDArray[np.int64]
    others: npt.NDArray[np.int32]
    """Row, slot, start and length of the values of undeclared members."""


def leaf_column(
    page: Page, one: Field, leaf: MakesColumn, tokens: Tokens, trail: Trail
) -> "pa.Array[Any]":
    """Return the column of a field without nested fields; refused rows may hold any value.

    They must not be null in a required field: rows of other files share the column, and the
    writer would refuse all of it.
    """
    try:
        return leaf.column(page.data, tokens)
    except (Doubtful, ValueRefused, pa.ArrowException):
        refusals = page.refusals
        refused, column = _refused(one, page.data, tokens)
        refusals.add_rows(np.flatnonzero(refused), trail)
        if column is None:
            column = leaf_of(replace(one, nullable=True)).column(
                page.data, without(tokens, refused)
            )
        if not one.nullable:
            nulls: Any = column.is_null()
            refused |= _missing(tokens, nulls.to_numpy(zero_copy_only=False))
            refusals.add_rows(np.flatnonzero(refused), trail)
        if not refused.any():
            raise Doubtful from None
        return required(column, one)


def fitting(
    page: Page, one: Field, tokens: Tokens, trail: Trail
) -> tuple[Tokens, pa.Buffer | None, int]:
    """Return the tokens of the field's type, their validity bitmap and the null count."""
    try:
        return tokens, *valid(tokens, one)
    except Doubtful:
        refused = misfits(tokens, one)
        page.refusals.add_rows(np.flatnonzero(refused), trail)
        tokens = without(tokens, refused)
        return tokens, *valid(tokens, replace(one, nullable=True))


def misfits(tokens: Tokens, field: Field, takes: tuple[int, ...] | None = None) -> Flags:
    """Return a mask of tokens of the wrong kind, or missing in a required field."""
    fits = np.zeros(SIZE, np.bool_)
    fits[[ABSENT, *(ACCEPTED[field.type] if takes is None else takes)]] = True
    found: Flags = ~fits[tokens.kinds]
    return found if field.nullable else found | _missing(tokens, tokens.kinds == ABSENT)


def without(tokens: Tokens, which: Flags) -> Tokens:
    """Return the tokens with some of them marked ABSENT."""
    rows = np.flatnonzero(which)
    rows = rows[tokens.kinds[rows] != ABSENT]
    gone = [*np.bincount(tokens.kinds[rows], minlength=SIZE).tolist(), tokens.lengths[rows].sum()]
    kinds = tokens.kinds.copy()
    kinds[rows] = ABSENT
    counts = [int(count - less) for count, less in zip(tokens.counts, gone, strict=True)]
    return tokens._replace(kinds=kinds, counts=counts)


def _refused(field: Field, data: Bytes, tokens: Tokens) -> tuple[Flags, "pa.Array[Any] | None"]:
    """Return a mask of the tokens that a field refuses, and the column of the rest if known.

    Raise `Doubtful` if no column can be built and no token is at fault.
    """
    leaf = leaf_of(replace(field, nullable=True))
    is_usual = isinstance(leaf, Leaf)
    found = misfits(tokens, field, None if is_usual else _PLAIN_VALUES)
    rest = without(tokens, found) if found.any() else tokens
    column = None
    try:
        if is_usual and rest is tokens:
            raise Doubtful  # The caller has tried these tokens already.
        column = leaf.column(data, rest)
    except (Doubtful, ValueRefused, pa.ArrowException):
        if isinstance(leaf, Leaf):
            found |= _suspects(field, leaf, data, rest)
        else:
            found |= _refused_values(field, data, rest)
        if not found.any():
            raise
    return found, column


def _missing(tokens: Tokens, is_null: Flags) -> Flags:
    """Return a mask of the rows whose object lacks a required value."""
    return is_null if tokens.around is None else is_null & (tokens.around != ABSENT)


def _suspects(field: Field, leaf: Leaf, data: Bytes, tokens: Tokens) -> Flags:
    """Return a mask of the tokens that may have been refused."""
    if field.type is FieldType.JSON:
        raise Doubtful
    unread = leaf.unread(data, tokens)
    refused = _refused_values(field, data, without(tokens, ~unread))
    return refused if refused.any() else unread


def _halves(data: Bytes, tokens: Tokens) -> Flags:
    """Return a mask of the strings whose escapes may hold half a surrogate pair."""
    escaped = tokens.kinds == ESCAPED
    written = texts_of(data, tokens_of(tokens, escaped), as_written=True)
    matches: Any = pc.match_substring_regex(written, _HALF)
    found = np.zeros(len(escaped), np.bool_)
    found[escaped] = matches.to_numpy(zero_copy_only=False)
    return found


def _refused_values(field: Field, data: Bytes, tokens: Tokens) -> Flags:
    """Return a mask of the refused values; each distinct one is converted once."""
    found, take = _halves(data, tokens), converter(field)
    for which, as_value in kinds_of(without(tokens, found)):
        encoded = texts_of(data, tokens_of(tokens, which)).dictionary_encode()
        refused = [_is_refused(take, as_value(text)) for text in encoded.dictionary.to_pylist()]
        found[which] = np.array(refused, np.bool_)[encoded.indices.to_numpy()]
    return found


def _is_refused(take: Callable[[JsonValue], Any], value: JsonValue) -> bool:
    try:
        take(value)
    except ValueRefused:
        return True
    return False
