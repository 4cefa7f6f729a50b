"""What no column takes of some rows: counted, and written down as the exact path does."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.model.json_path import any_element, member_path
from blizzard.worker.ndjson.compiled.text import compose
from blizzard.worker.ndjson.compiled.vector import WIDTH

Numbers = npt.NDArray[np.integer[Any]]


class Trail(NamedTuple):
    """The way to the objects of a level: their path, in which elements and keys are the row's."""

    parent: "Trail | None" = None
    name: str = ""
    """The member that the way leads through, unless it leads through elements or keys."""
    offsets: npt.NDArray[np.int32] | None = None
    """Where the elements of each row of the parent begin."""
    keys: "pa.Array[Any] | None" = None
    """The names of the elements, if they have some."""
    is_keyed: bool = False
    """Whether the path depends on keys, which are data."""

    def member(self, name: str) -> "Trail":
        """Return the way on through a member."""
        return Trail(parent=self, name=name, is_keyed=self.is_keyed)

    def elements(self, offsets: npt.NDArray[np.int32]) -> "Trail":
        """Return the way on through the elements of lists."""
        return Trail(parent=self, offsets=offsets, is_keyed=self.is_keyed)

    def entries(self, offsets: npt.NDArray[np.int32], keys: "pa.Array[Any]") -> "Trail":
        """Return the way on through the values of maps."""
        return Trail(parent=self, offsets=offsets, keys=keys, is_keyed=True)

    def label(self) -> str:
        """Return the path without the numbers of elements; there are no keys in it."""
        if self.parent is None:
            return ""
        above = self.parent.label()
        return member_path(above, self.name) if self.offsets is None else f"{above}[]"

    def rows_above(self, rows: Numbers) -> Numbers:
        """Return the parent's rows that these rows belong to."""
        if self.offsets is None:
            return rows
        return np.searchsorted(self.offsets, rows, side="right") - 1

    def paths(self, rows: Numbers) -> "str | pa.Array[Any]":
        """Return the path of each row as JSON writes it, without quotes; one if all are alike."""
        if self.parent is None:
            return ""
        above_rows = self.rows_above(rows)
        above = self.parent.paths(above_rows)
        if self.offsets is None:
            piece = escaped(self._after(self.name))
            return above + piece if isinstance(above, str) else _joined(above, piece)
        if self.keys is not None:
            names = cast("list[str]", self.keys.take(rows).to_pylist())
            pieces = [escaped(self._after(name)) for name in names]
            return _joined(above, pa.array(pieces, pa.string()))
        numbers = pa.array(rows - self.offsets[above_rows]).cast(pa.string())
        return _joined(above, "[", numbers, "]")

    def _after(self, name: str) -> str:
        dotted = member_path("x", name)[1:]
        is_first = self.parent is None or self.parent.parent is None
        return dotted[1:] if is_first and self.offsets is None else dotted

    def named(self, rows: Numbers, names: Sequence[str], which: Numbers) -> "Prefixes":
        """Return what stands before the values of some members in the column for them."""
        dot = 0 if self.parent is not None else 1
        pieces = [escaped(member_path("x", name)[1 + dot :]) for name in names]
        above = self.paths(rows)
        if isinstance(above, str):
            return Prefixes(pa.array([f'"{above}{piece}":' for piece in pieces]), which)
        texts = _joined('"', above, pa.array(pieces, pa.string()).take(which), '":')
        return Prefixes(texts, np.arange(len(which)))


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Texts, and which of them each value has."""

    texts: "pa.Array[Any]"
    which: Numbers


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Values that no column takes, in the order in which the exact path comes upon them."""

    rows: Numbers
    """The rows they belong to, which never decrease."""
    prefixes: Prefixes
    starts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]

    def above(self, trail: Trail) -> "Leftovers":
        """Return them as those of the rows that the trail's elements belong to."""
        return replace(self, rows=trail.rows_above(self.rows))

    def labels(self) -> list[str]:
        """Return the path of each value, without the numbers of elements."""
        texts = cast("list[str]", self.prefixes.texts.to_pylist())
        paths = [any_element(json.loads(text[:-1])) for text in texts]
        return [paths[number] for number in self.prefixes.which.tolist()]


def in_text_order(parts: Sequence[Leftovers]) -> Leftovers:
    """Put together what was left over of the same objects, in the order in which it stands."""
    return _sorted(parts, lambda whole: whole.starts)


def in_row_order(parts: Sequence[Leftovers]) -> Leftovers:
    """Put together what was left over of the same rows; of each row part after part."""
    return _sorted(parts, lambda whole: whole.rows)


def once(
    parts: Sequence[Leftovers], ends: npt.NDArray[np.int64], counted: Sequence[Counter[str]]
) -> Leftovers:
    """Put together what was left over of the same rows, each value once, and count it once.

    Fields that take the same object may each leave the same member over.
    """
    whole = in_row_order(parts)
    _, first = np.unique(whole.starts, return_index=True)
    if len(first) == len(whole.starts):
        return whole
    again = np.ones(len(whole.starts), np.bool_)
    again[first] = False
    repeated = _some(whole, again)
    blocks = np.searchsorted(ends, repeated.starts, side="right").tolist()
    for label, block in zip(repeated.labels(), blocks, strict=True):
        counted[block][label] -= 1
    return _some(whole, ~again)


def column(data: npt.NDArray[np.uint8], rows: int, parts: Sequence[Leftovers]) -> "pa.Array[Any]":
    """Return the column of what no other column takes, as JSON text."""
    if not parts:
        return _nulls(1 << rows.bit_length()).slice(0, rows)
    whole = in_row_order(parts)
    _, offsets_buffer, text_buffer = cast("list[Any]", whole.prefixes.texts.buffers())
    before = np.frombuffer(offsets_buffer, np.int32, len(whole.prefixes.texts) + 1)
    prefixes = np.frombuffer(b"".join([text_buffer, bytes(WIDTH)]), np.uint8)
    which = whole.prefixes.which.astype(np.int32)
    size = int(np.diff(before)[which].sum()) + int(whole.lengths.sum()) + len(which) + rows
    texts, offsets = np.empty(size + WIDTH, np.uint8), np.empty(rows + 1, np.int32)
    filled = compose(
        data, prefixes, before, which, whole.starts, whole.lengths,
        whole.rows.astype(np.int64), texts, offsets,
    )  # fmt: skip
    there = np.packbits(np.diff(offsets) > 0, bitorder="little")
    buffers = (pa.py_buffer(each.data) for each in (there, offsets, texts))
    return pa.Array.from_buffers(pa.string(), rows, [*buffers], rows - filled)


@lru_cache(maxsize=4)
def _nulls(rows: int) -> "pa.Array[Any]":
    """Return a column without values: mostly nothing is left over, of any block."""
    return pa.nulls(rows, pa.string())


def count_labels(
    counted: Sequence[Counter[str]], labels: Sequence[str], blocks: Sequence[int]
) -> None:
    """Count single values, each under its label in its block."""
    for label, block in zip(labels, blocks, strict=True):
        counted[block][label] += 1


def escaped(text: str) -> str:
    """Return a text as JSON writes it, without quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _sorted(parts: Sequence[Leftovers], key: Callable[[Leftovers], Numbers]) -> Leftovers:
    if len(parts) == 1:
        return parts[0]
    first = np.cumsum([0, *(len(part.prefixes.texts) for part in parts)])
    which = [part.prefixes.which + at for part, at in zip(parts, first, strict=False)]
    whole = Leftovers(
        np.concatenate([part.rows for part in parts]),
        Prefixes(pa.concat_arrays([part.prefixes.texts for part in parts]), np.concatenate(which)),
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )
    return _some(whole, np.argsort(key(whole), kind="stable"))


def _some(whole: Leftovers, which: "Numbers | npt.NDArray[np.bool_]") -> Leftovers:
    return Leftovers(
        whole.rows[which],
        Prefixes(whole.prefixes.texts, whole.prefixes.which[which]),
        whole.starts[which],
        whole.lengths[which],
    )


def _joined(*pieces: "str | pa.Array[Any]") -> "pa.Array[Any]":
    return cast("pa.Array[Any]", pc.binary_join_element_wise(*pieces, ""))  # type: ignore[call-overload]
