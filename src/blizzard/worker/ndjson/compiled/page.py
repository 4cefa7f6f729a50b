"""What is read in one go, and which of its lines the fast path refuses: those go to the exact path.

A column is made of all of its rows or of none. Where it is of none, this finds out whose fault that
is. To name a row too many does no harm, as the exact path decides what it means; one too few is
found the next time, or makes the whole block one for the exact path.
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
    """The lines that are refused, by their place on the page."""

    def __init__(self) -> None:
        self.line_of: Numbers = np.empty(0, np.int32)
        """The line in which each row stands."""
        self.line_starts: Numbers | None = None
        """Where each line starts; None if never computed."""
        self._lines: list[Numbers] = []

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._lines)

    @property
    def lines(self) -> npt.NDArray[np.int64]:
        """Return them in their order, each once."""
        return np.unique(np.concatenate(self._lines)).astype(np.int64)

    def add(self, lines: Numbers) -> None:
        """Take in lines."""
        self._lines.append(lines)

    def add_rows(self, rows: Numbers, trail: Trail) -> None:
        """Take in the lines in which some rows of a level stand."""
        here: Trail | None = trail
        while here is not None:
            rows, here = here.rows_above(rows), here.parent
        self.add(self.line_of[rows])


@dataclass(frozen=True, slots=True)
class Page:
    """What is read in one go: blocks of lines one after the other, and what becomes of them."""

    data: Bytes
    """The bytes, and after them those of a step."""
    ends: npt.NDArray[np.int64]
    """Where each block has its end."""
    unknown: UnknownFields
    counted: Mapping[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """The values, other than null, of undeclared fields of the blocks that have some."""
    room: Bytes = field(default_factory=lambda: np.empty(MAX_DEPTH, np.uint8))
    refused: Refusals | None = None
    """The lines that are not for this path; None where one of them is enough to give up."""

    @property
    def refusals(self) -> Refusals:
        """Return where to note a refusal, or raise `Doubtful`."""
        if self.refused is None:
            raise Doubtful
        return self.refused


@dataclass(frozen=True, slots=True)
class Found:
    """The tokens of a scan."""

    tokens: Sequence[Tokens]
    """Those of each declared member."""
    counts: npt.NDArray[np.int64]
    others: npt.NDArray[np.int32]
    """Row, slot, start and length of the values of undeclared members."""


def leaf_column(
    page: Page, one: Field, leaf: MakesColumn, tokens: Tokens, trail: Trail
) -> "pa.Array[Any]":
    """Return the column of a field that holds no others, with any value in the rows it refuses.

    A null there would be one too many where the field is required: rows of other files share the
    column, and the writer refuses all of it.
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
    """Return the tokens that are of the field's type, which are there, and how many are not."""
    try:
        return tokens, *valid(tokens, one)
    except Doubtful:
        refused = misfits(tokens, one)
        page.refusals.add_rows(np.flatnonzero(refused), trail)
        tokens = without(tokens, refused)
        return tokens, *valid(tokens, replace(one, nullable=True))


def misfits(tokens: Tokens, field: Field, takes: tuple[int, ...] | None = None) -> Flags:
    """Return which tokens are of a kind that the field does not take, and which it misses."""
    fits = np.zeros(SIZE, np.bool_)
    fits[[ABSENT, *(ACCEPTED[field.type] if takes is None else takes)]] = True
    found: Flags = ~fits[tokens.kinds]
    return found if field.nullable else found | _missing(tokens, tokens.kinds == ABSENT)


def without(tokens: Tokens, which: Flags) -> Tokens:
    """Return the tokens with some of them ABSENT."""
    rows = np.flatnonzero(which)
    rows = rows[tokens.kinds[rows] != ABSENT]
    gone = [*np.bincount(tokens.kinds[rows], minlength=SIZE).tolist(), tokens.lengths[rows].sum()]
    kinds = tokens.kinds.copy()
    kinds[rows] = ABSENT
    counts = [int(count - less) for count, less in zip(tokens.counts, gone, strict=True)]
    return tokens._replace(kinds=kinds, counts=counts)


def _refused(field: Field, data: Bytes, tokens: Tokens) -> tuple[Flags, "pa.Array[Any] | None"]:
    """Return which tokens a field makes no column of, and the column of the rest if it is known.

    Where no column is made and no token can be blamed for it, that is `Doubtful`.
    """
    leaf = leaf_of(replace(field, nullable=True))
    is_usual = isinstance(leaf, Leaf)
    found = misfits(tokens, field, None if is_usual else _PLAIN_VALUES)
    rest = without(tokens, found) if found.any() else tokens
    column = None
    try:
        if is_usual and rest is tokens:
            raise Doubtful  # It is known to be refused.
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
    """Return which rows have no value where a required field should be."""
    return is_null if tokens.around is None else is_null & (tokens.around != ABSENT)


def _suspects(field: Field, leaf: Leaf, data: Bytes, tokens: Tokens) -> Flags:
    """Return which tokens may be those that were refused."""
    if field.type is FieldType.JSON:
        raise Doubtful
    unread = leaf.unread(data, tokens)
    refused = _refused_values(field, data, without(tokens, ~unread))
    return refused if refused.any() else unread


def _halves(data: Bytes, tokens: Tokens) -> Flags:
    """Return which strings may have half a surrogate pair among their escapes."""
    escaped = tokens.kinds == ESCAPED
    written = texts_of(data, tokens_of(tokens, escaped), as_written=True)
    matches: Any = pc.match_substring_regex(written, _HALF)
    found = np.zeros(len(escaped), np.bool_)
    found[escaped] = matches.to_numpy(zero_copy_only=False)
    return found


def _refused_values(field: Field, data: Bytes, tokens: Tokens) -> Flags:
    """Return which values are refused; each distinct one is taken once."""
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
