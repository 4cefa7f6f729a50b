"""Columns that have few texts, each of them over and over: numbers of a dictionary. Compiled.

Parquet hashes every text for its dictionary, and compares it with the least and the greatest for
its statistics. Where it is given numbers, it does both with the texts of the dictionary alone.
"""

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import boolean, int8, int32, int64, types, uint8

from blizzard.worker.ndjson.compiled.syntax import BYTES, Array
from blizzard.worker.ndjson.compiled.vector import (
    WIDTH,
    agreeing,
    both_ends,
    compiled,
    copy_step,
    pointer,
)

MOST = 127
"""So many texts have numbers of one byte."""
_BUCKETS = 4096
_MOST_TRIES = 8
"""Texts of which more have the same number by chance are alike at both ends: they are no gain."""
_OFFSETS = types.Array(int32, 1, "C", readonly=True)

Column = Any
"""A chunked array; pyarrow's stubs know one type at a time."""


def all_numbered(rows: pa.Table, names: Iterable[str]) -> dict[str, Column]:
    """Return those of the columns that can be numbered."""
    found = {name: numbered(rows[name]) for name in names}
    return {name: column for name, column in found.items() if column is not None}


def numbered(texts: Column) -> Column | None:
    """Return texts as numbers of one dictionary; None where they are long, or more than some."""
    known = np.zeros((MOST + 1) * WIDTH, np.uint8)  # behind all others there is room for one more
    lengths, buckets = np.zeros(MOST, np.int64), np.full(_BUCKETS, -1, np.int32)
    count = np.zeros(1, np.int64)
    found = []
    for chunk in texts.chunks:
        _, offsets, data = chunk.buffers()
        numbers = np.empty(len(chunk), np.int8)
        present = np.empty(0, np.uint8)
        if chunk.null_count:
            present = np.asarray(chunk.is_valid().cast(pa.uint8()))
        if not _number(
            np.frombuffer(data or b"", np.uint8),
            np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1],
            present,
            known,
            lengths,
            buckets,
            count,
            numbers,
        ):
            return None
        array: Column = pa.array(numbers)
        found.append(pc.if_else(chunk.is_valid(), array, None) if chunk.null_count else array)
    dictionary = _dictionary(known, lengths[: count[0]])
    arrays = [pa.DictionaryArray.from_arrays(one, dictionary, safe=False) for one in found]
    return pa.chunked_array(arrays, cast("Any", pa.dictionary(pa.int8(), pa.string())))


def _dictionary(known: Array, lengths: Array) -> "pa.Array[Any]":
    texts = [
        known[place * WIDTH : place * WIDTH + size].tobytes().decode()
        for place, size in enumerate(lengths.tolist())
    ]
    return pa.array(texts, pa.string())


@compiled(
    boolean(
        BYTES, _OFFSETS, BYTES, uint8[::1], int64[::1], int32[::1], int64[::1], int8[::1]
    )
)  # fmt: skip
def _number(  # noqa: C901 - a table of hashes
    texts: Array,
    offsets: Array,
    present: Array,
    known: Array,
    lengths: Array,
    buckets: Array,
    count: Array,
    numbers: Array,
) -> bool:
    """Find the numbers of texts, those not known so far included; return whether all have one.

    `present` says which rows have one, where some have none.
    """
    data, table = pointer(texts), pointer(known)
    for row in range(len(numbers)):
        numbers[row] = 0
        if len(present) and not present[row]:
            continue
        at, size = int64(offsets[row]), int64(offsets[row + 1]) - int64(offsets[row])
        if size > WIDTH:
            return False
        here = data
        if at + WIDTH > len(texts):  # nothing is read past the end
            for place in range(size):
                known[MOST * WIDTH + place] = texts[at + place]
            here, at = table, int64(MOST * WIDTH)
        bucket = both_ends(here, at, size) >> 4
        tries = 0
        while True:
            number = buckets[bucket]
            if number < 0:
                number = count[0]
                if number == MOST:
                    return False
                copy_step(here, at, table, number * WIDTH)
                lengths[number] = size
                buckets[bucket] = number
                count[0] += 1
                break
            if lengths[number] == size and agreeing(here, at, table, number * WIDTH) >= size:
                break
            bucket = (bucket + 1) & (_BUCKETS - 1)
            tries += 1
            if tries == _MOST_TRIES:
                return False
        numbers[row] = number
    return True
