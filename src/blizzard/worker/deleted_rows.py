"""The rows of data files that deletion vectors delete, read from the vectors.

The bitmap is a 64-bit Roaring bitmap in its portable format: 32-bit bitmaps, each with the upper
half of its numbers, which in turn consist of containers of up to 65,536 numbers.
"""

import struct
import zlib

import numpy as np
import numpy.typing as npt

from lakebed.documents.deletion_vector import DeletionVector, from_z85
from lakebed.errors import LakeError, ObjectMissing, Whose
from lakebed.storage.store import Reader

Places = npt.NDArray[np.int64]
"""Places of rows in a data file, from 0, in their order."""
NONE: Places = np.zeros(0, np.int64)
PORTABLE = 1681511377
WITHOUT_RUNS, WITH_RUNS = 12346, 12347
OFFSETS_FROM = 4
"""A bitmap with runs lists the offsets of its containers if it has at least so many."""
MOST_IN_ARRAY = 4096
"""A container with more numbers is a bitset, unless it consists of runs."""
BITSET_BYTES = 8192


class VectorUnreadable(LakeError, code="deletion_vector_unreadable", whose=Whose.EXTERNAL):
    """A deletion vector is damaged, so the deleted rows of its data file are unknown."""


def deleted_rows(store: Reader, vector: DeletionVector | None) -> Places:
    """Return the places of the rows that a vector deletes; none without a vector."""
    if vector is None:
        return NONE
    if vector.file is not None and is_elsewhere(vector.file):
        raise VectorUnreadable(
            "a deletion vector is not in the table's directory; write the table anew with the "
            "program that cloned it",
            path=vector.file,
        )
    where = "the Delta log" if vector.file is None else store.describe(vector.file)
    try:
        found = places_in(_bitmap(store, vector))
    except (ValueError, struct.error) as broken:
        raise VectorUnreadable(
            f"a deletion vector cannot be read: {broken}; restore it from a backup, or take its "
            "data file out of the table",
            path=where,
        ) from broken
    if len(found) != vector.rows:
        raise VectorUnreadable(
            f"a deletion vector deletes {len(found)} rows, but the log says {vector.rows}",
            path=where,
        )
    return found


def is_elsewhere(path: str) -> bool:
    """Whether a path does not lead into the table's directory."""
    return path.startswith("/") or ":/" in path


def marked(places: Places, start: int, rows: int) -> npt.NDArray[np.bool_]:
    """Return which of the rows from a place on are at some places. Pure."""
    first, last = np.searchsorted(places, [start, start + rows])
    found = np.zeros(rows, np.bool_)
    found[places[first:last] - start] = True
    return found


def ranges_of(places: Places) -> list[tuple[int, int]]:
    """Return places as ranges, each from its first place up to its end. Pure."""
    if not len(places):
        return []
    gaps = np.flatnonzero(np.diff(places) > 1)
    starts = places[np.concatenate(([0], gaps + 1))]
    ends = places[np.concatenate((gaps, [len(places) - 1]))] + 1
    return [*zip(starts.tolist(), ends.tolist(), strict=True)]


def _bitmap(store: Reader, vector: DeletionVector) -> bytes:
    """Return the bytes of a bitmap; in a file, its size comes before it and a checksum after."""
    if vector.file is None:
        return from_z85(vector.text or "")[: vector.size]
    facts = store.head(vector.file)
    if facts is None:
        raise ObjectMissing("a deletion vector is gone", path=store.describe(vector.file))
    end = vector.offset + vector.size + 8
    if facts.size < end:
        raise ValueError(f"its file ends after {facts.size} bytes, before the vector does")
    body = store.part(vector.file, vector.offset, end, etag=facts.etag)
    bitmap = body[4:-4]
    if struct.unpack(">I", body[:4]) != (vector.size,) or len(bitmap) != vector.size:
        raise ValueError("its size is not the one in the log")
    if struct.unpack(">I", body[-4:]) != (zlib.crc32(bitmap),):
        raise ValueError("its checksum is wrong")
    return bitmap


def places_in(bitmap: bytes) -> Places:
    """Return the numbers of a 64-bit bitmap. Pure."""
    magic, bitmaps = struct.unpack_from("<iq", bitmap)
    if magic != PORTABLE:
        raise ValueError(f"its format is {magic}, which the protocol does not know")
    at, found = 12, [NONE]
    for _ in range(bitmaps):
        (upper,) = struct.unpack_from("<I", bitmap, at)
        lower, at = _lower_places(bitmap, at + 4)
        found.append((upper << 32) + lower)
    return np.concatenate(found)


def _lower_places(bitmap: bytes, at: int) -> tuple[Places, int]:
    """Return the numbers of the 32-bit bitmap that starts at a byte, and where it ends."""
    cookie, containers = struct.unpack_from("<HH", bitmap, at)
    if cookie == WITH_RUNS:
        containers += 1
        flags = np.frombuffer(bitmap, np.uint8, (containers + 7) // 8, at + 4)
        has_runs = np.unpackbits(flags, bitorder="little")[:containers].astype(np.bool_)
        at += 4 + len(flags)
    elif cookie == WITHOUT_RUNS:
        (containers,) = struct.unpack_from("<I", bitmap, at + 4)
        has_runs = np.zeros(containers, np.bool_)
        at += 8
    else:
        raise ValueError(f"it has a bitmap of the unknown kind {cookie}")
    header = np.frombuffer(bitmap, "<u2", 2 * containers, at).reshape(-1, 2).astype(np.int64)
    at += 4 * containers
    if cookie == WITHOUT_RUNS or containers >= OFFSETS_FROM:
        at += 4 * containers  # The containers follow each other, so no offset is needed.
    found = [NONE]
    for (upper, most), runs in zip(header.tolist(), has_runs.tolist(), strict=True):
        numbers, at = _container(bitmap, at, most + 1, runs=runs)
        if len(numbers) != most + 1:
            raise ValueError("a container has another number of rows than its header says")
        found.append((upper << 16) + numbers)
    return np.concatenate(found), at


def _container(bitmap: bytes, at: int, count: int, *, runs: bool) -> tuple[Places, int]:
    """Return the numbers of one container, and where it ends: runs, an array or a bitset."""
    if runs:
        (pairs,) = struct.unpack_from("<H", bitmap, at)
        told = np.frombuffer(bitmap, "<u2", 2 * pairs, at + 2).reshape(-1, 2).astype(np.int64)
        lengths = told[:, 1] + 1
        # Within a run each number follows the one before.
        before = np.cumsum(lengths) - lengths
        numbers = np.arange(lengths.sum()) + np.repeat(told[:, 0] - before, lengths)
        return numbers, at + 2 + 4 * pairs
    if count <= MOST_IN_ARRAY:
        return np.frombuffer(bitmap, "<u2", count, at).astype(np.int64), at + 2 * count
    bits = np.frombuffer(bitmap, np.uint8, BITSET_BYTES, at)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")), at + BITSET_BYTES
