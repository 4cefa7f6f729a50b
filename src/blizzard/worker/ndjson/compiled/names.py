"""The names of an object's members: known by how they are written, learned where they are new."""

import json
from typing import Any, NamedTuple

import numpy as np
from numba import int32, int64, types, uint8, void

from blizzard.worker.ndjson.compiled.syntax import BYTES, Array, Pointer, string
from blizzard.worker.ndjson.compiled.vector import (
    WIDTH,
    compiled,
    differing,
    first_of,
    part,
    pointer,
)

MAX_REMEMBERED = 1000
MAX_PLACES = 4096
"""Members of a line whose names are guessed from the line before."""

_PADDING = bytes(WIDTH)
"""What the scan may read past the end, in one step."""


@part
def is_next(data: Pointer, at: int, names: Pointer, start: int, end: int) -> bool:
    """Whether a name stands here."""
    same = WIDTH
    while start < end and same == WIDTH:
        same = first_of(differing(data, at, names, start))
        at, start = at + same, start + same
    return start >= end


@part
def hash_of(text: Pointer, start: int, end: int) -> int:
    """Return a number that texts have in common only by chance."""
    found = 5381
    for place in range(start, end):
        found = ((found * 33) ^ text[place]) & 0xFFFFFFFF
    return found


class Names(NamedTuple):
    """The known names as compiled code reads them, in arrays or by pointers to their elements."""

    written: Pointer
    """As they are written, with their quotes, one after the other."""
    starts: Pointer
    slots: Pointer
    """The fields that they mean; the first slots are the declared ones."""
    buckets: Pointer
    order: Pointer
    """The name of each member of the object before, and the size of what leads up to its value
    where that fits into a step, else 0."""
    leads: Pointer
    """What leads up to the value: a comma unless it is the first, the name, the colon."""


NAMES: Any = types.NamedTuple(  # type: ignore[no-untyped-call]  # numba has no types
    (uint8[::1], int64[::1], int64[::1], int32[::1], int64[:, ::1], uint8[:, ::1]), Names
)


@part
def pointers(names: Names) -> Names:
    """Return the names by pointers."""
    return Names(
        pointer(names.written), pointer(names.starts), pointer(names.slots),
        pointer(names.buckets), pointer(names.order), pointer(names.leads),
    )  # fmt: skip


@part
def _find(data: Pointer, at: int, end: int, names: Names, mask: int) -> int:
    """Return the number of a name, or -1."""
    bucket = hash_of(data, at, end) & mask
    while names.buckets[bucket] >= 0:
        number: int = names.buckets[bucket]
        start, stop = names.starts[number], names.starts[number + 1]
        if stop - start == end - at and is_next(data, at, names.written, start, stop):
            return number
        bucket = (bucket + 1) & mask
    return -1


@part
def name_at(data: Pointer, at: int, guess: int, names: Names, mask: int) -> tuple[int, int]:
    """Return number of a name, and where it ends: -1 and its end if it is new, else -1 twice."""
    if guess >= 0:
        start, stop = names.starts[guess], names.starts[guess + 1]
        if is_next(data, at, names.written, start, stop):
            return guess, at + stop - start
    end, _ = string(data, at)
    return _find(data, at, end, names, mask) if end >= 0 else -1, end


@compiled(void(BYTES, int64[::1], int32[::1]))
def fill_buckets(names: Array, name_starts: Array, buckets: Array) -> None:
    """Make the table in which names are looked up: a power of two of places, more than names."""
    mask = len(buckets) - 1
    buckets[:] = -1
    for number in range(len(name_starts) - 1):
        bucket = hash_of(pointer(names), name_starts[number], name_starts[number + 1]) & mask
        while buckets[bucket] >= 0:
            bucket = (bucket + 1) & mask
        buckets[bucket] = number


class FieldNames:
    r"""The names of fields as they are written, in the arrays that the scan reads.

    One field can be written in several ways, as `"id"` and `"\u0069d"`; each has the same slot.
    The first slots are those of the declared fields.
    """

    def __init__(self, declared: list[str]) -> None:
        self._declared = declared
        self._order = np.empty((MAX_PLACES, 2), np.int64)
        self._leads = np.empty((MAX_PLACES, WIDTH), np.uint8)
        self._begin()

    @property
    def slot_count(self) -> int:
        """How many different fields are known."""
        return len(self._slot_of)

    def learn(self, written: bytes) -> bool:
        """Take in a new way to write a name, in its quotes; say whether it is a name at all."""
        name = json.loads(written)
        try:
            name.encode()
        except UnicodeEncodeError:  # half a surrogate pair
            return False
        slot = self._slot_of.setdefault(name, len(self._slot_of))
        self._add(written, slot)
        self._arrange()
        return True

    def forget_some(self) -> None:
        """Keep only the declared fields if other files had very many others."""
        if len(self._written) > len(self._declared) + MAX_REMEMBERED:
            self._begin()

    @property
    def undeclared(self) -> list[str]:
        """The fields that are known and not declared, in the order of their slots."""
        return list(self._slot_of)[len(self._declared) :]

    def _begin(self) -> None:
        self._order[:] = (-1, 0)
        self._slot_of = {name: slot for slot, name in enumerate(self._declared)}
        self._written: list[bytes] = []
        self._slots: list[int] = []
        for name, slot in self._slot_of.items():
            self._add(json.dumps(name, ensure_ascii=False).encode(), slot)
        self._arrange()

    def _add(self, written: bytes, slot: int) -> None:
        self._written.append(written)
        self._slots.append(slot)

    def _arrange(self) -> None:
        written = np.frombuffer(bytearray().join([*self._written, _PADDING]), np.uint8)
        starts = np.cumsum([0, *map(len, self._written)], dtype=np.int64)
        buckets = np.empty(2 << len(self._written).bit_length(), np.int32)
        fill_buckets(written, starts, buckets)
        slots = np.array(self._slots, np.int64)
        self.arrays = Names(written, starts, slots, buckets, self._order, self._leads)
