"""What no column takes of some rows: counted, and written down as the exact path does."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.model.json_path import any_element, member_path
from blizzard.worker.ndjson.compiled.columns import Bytes, Texts, Tokens, texts_of
from blizzard.worker.ndjson.compiled.syntax import SIZE, TEXT

Numbers = npt.NDArray[np.integer[Any]]


class Trail(NamedTuple):
    """The way to the objects of a level: their path, in which elements and keys are the row's."""

    parent: "Trail | None" = None
    name: str = ""
    """The member that the way leads through, unless it leads through elements or keys."""
    offsets: npt.NDArray[np.int32] | None = None
    """Where the elements of each row of the parent begin."""
    keys: Texts | None = None
    """The names of the elements, if they have some."""
    is_keyed: bool = False
    """Whether the path depends on keys, which are data."""

    def member(self, name: str) -> "Trail":
        """Return the way on through a member."""
        return Trail(parent=self, name=name, is_keyed=self.is_keyed)

    def elements(self, offsets: npt.NDArray[np.int32]) -> "Trail":
        """Return the way on through the elements of lists."""
        return Trail(parent=self, offsets=offsets, is_keyed=self.is_keyed)

    def entries(self, offsets: npt.NDArray[np.int32], keys: Texts) -> "Trail":
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

    def paths(self, rows: Numbers) -> Texts:
        """Return the path of each row as JSON writes it, without quotes."""
        if self.parent is None:
            return pa.repeat("", len(rows))
        above_rows = self.rows_above(rows)
        above = self.parent.paths(above_rows)
        if self.offsets is None:
            return _joined(above, escaped(self._after(self.name)))
        if self.keys is not None:
            pieces = [escaped(self._after(name)) for name in self.keys.take(rows).to_pylist()]
            return _joined(above, pa.array(pieces, pa.string()))
        numbers = pa.array(rows - self.offsets[above_rows]).cast(pa.string())
        return _joined(above, "[", numbers, "]")

    def _after(self, name: str) -> str:
        dotted = member_path("x", name)[1:]
        is_first = self.parent is None or self.parent.parent is None
        return dotted[1:] if is_first and self.offsets is None else dotted

    def named(self, rows: Numbers, names: Sequence[str], which: Numbers) -> Texts:
        """Return the path of each of some members, quoted, with the colon behind it."""
        dot = 0 if self.parent is not None else 1
        pieces = [escaped(member_path("x", name)[1 + dot :]) for name in names]
        return _joined('"', self.paths(rows), pa.array(pieces, pa.string()).take(which), '":')


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Values that no column takes, in the order in which the exact path comes upon them."""

    rows: Numbers
    """The rows they belong to, which never decrease."""
    prefixes: Texts
    """What stands before each in the column for them."""
    starts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]

    def above(self, trail: Trail) -> "Leftovers":
        """Return them as those of the rows that the trail's elements belong to."""
        return replace(self, rows=trail.rows_above(self.rows))

    def labels(self) -> list[str]:
        """Return the path of each value, without the numbers of elements."""
        encoded = self.prefixes.dictionary_encode()
        paths = [any_element(json.loads(text[:-1])) for text in encoded.dictionary.to_pylist()]
        return [paths[number] for number in encoded.indices.to_pylist()]


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
    again = np.setdiff1d(np.arange(len(whole.starts)), first)
    repeated = _some(whole, again)
    blocks = np.searchsorted(ends, repeated.starts, side="right").tolist()
    for label, block in zip(repeated.labels(), blocks, strict=True):
        counted[block][label] -= 1
    return _some(whole, np.sort(first))


def column(data: Bytes, rows: int, parts: Sequence[Leftovers]) -> Texts:
    """Return the column of what no other column takes, as JSON text."""
    if not parts:
        return pa.nulls(rows, pa.string())
    whole = in_row_order(parts)
    count = len(whole.starts)
    kinds = np.full(count, TEXT, np.uint8)
    sizes = [0] * SIZE + [int(whole.lengths.sum())]
    values = Tokens(whole.starts, whole.lengths, kinds, sizes, count)
    members = _joined(whole.prefixes, texts_of(data, values, as_written=True))
    first = np.searchsorted(whole.rows, np.arange(rows + 1)).astype(np.int32)
    lists: Any = pa.ListArray.from_arrays(first, members)  # type: ignore[call-overload]
    objects = _joined("{", pc.binary_join(lists, ","), "}")
    return pc.if_else(pa.array(np.diff(first) > 0), objects, None)


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
    whole = Leftovers(
        np.concatenate([part.rows for part in parts]),
        pa.concat_arrays([part.prefixes for part in parts]),
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )
    return _some(whole, np.argsort(key(whole), kind="stable"))


def _some(whole: Leftovers, which: Numbers) -> Leftovers:
    return Leftovers(
        whole.rows[which], whole.prefixes.take(which), whole.starts[which], whole.lengths[which]
    )


def _joined(*pieces: "str | Texts") -> Texts:
    return pc.binary_join_element_wise(*pieces, "")  # type: ignore[call-overload]
