"""The small tables of a ledger: held in memory, and written to the store as changes.

A snapshot carries what has changed since the last segment, of all shelves together; where that is
much, it becomes a segment. A value that is gone is null there, until no older segment can have it.
"""

from collections.abc import Callable, ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload
from uuid import UUID

from pydantic import ValidationError

from blizzard.journal.segments import (
    Row,
    Segment,
    SegmentBroken,
    SegmentRef,
    merged,
    open_segment,
    with_rows,
)
from lakebed import layout
from lakebed.documents.reading import adapter_of
from lakebed.storage.store import Reader, Store

Value = TypeVar("Value")
Other = TypeVar("Other")


class Shelf(MutableMapping[str, Value]):
    """Values in memory, with the keys that have changed since the last segment was written."""

    def __init__(self, kind: type[Value]) -> None:
        """`kind` is the type of the values, as pydantic reads and writes them."""
        self._kind = kind
        self._held: dict[str, Value] = {}
        self.changed: set[str] = set()

    def __getitem__(self, key: str) -> Value:
        return self._held[key]

    def __setitem__(self, key: str, value: Value) -> None:
        self._held[key] = value
        self.changed.add(key)

    def __delitem__(self, key: str) -> None:
        del self._held[key]
        self.changed.add(key)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    # Discovery asks for every name: the dictionary's own methods are many times as fast.
    @overload
    def get(self, key: str, /) -> Value | None: ...

    @overload
    def get(self, key: str, /, default: Value | Other) -> Value | Other: ...

    def get(self, key: str, /, default: object = None) -> object:
        """Return the value of a key, or the default where there is none."""
        return self._held.get(key, default)

    def items(self) -> ItemsView[str, Value]:
        """Return the keys and the values."""
        return self._held.items()

    def values(self) -> ValuesView[Value]:
        """Return the values."""
        return self._held.values()

    def changes(self, *, gone: bool) -> dict[str, Any]:
        """Return what has changed as JSON holds it, with None for what is `gone` if that counts."""
        dump = adapter_of(self._kind).dump_python
        return {
            key: dump(self._held[key], mode="json", exclude_defaults=True)
            if key in self._held
            else None
            for key in sorted(self.changed)
            if gone or key in self._held
        }

    def put(self, key: str, value: object) -> None:
        """Take over a value as JSON has it, or that there is none."""
        if value is None:
            self._held.pop(key, None)
        else:
            self._held[key] = adapter_of(self._kind).validate_python(value)


Shelves = Mapping[str, Shelf[Any]]
"""All shelves of a ledger, by their names, which contain no slash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptValues:
    """The values in a snapshot: segments, the oldest first, and what has changed since."""

    segments: tuple[SegmentRef, ...] = ()
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By shelf and key; None where there is no value any more."""


def kept_values(shelves: Shelves, segments: list[Segment]) -> KeptValues:
    """Return how a snapshot is to have the values."""
    changes = {name: shelf.changes(gone=bool(segments)) for name, shelf in shelves.items()}
    return KeptValues(
        segments=tuple(each.ref for each in segments),
        changes={name: values for name, values in changes.items() if values},
    )


def load_values(shelves: Shelves, store: Reader, pipeline: str, kept: KeptValues) -> list[Segment]:
    """Take over the values that a snapshot has; return its segments."""
    segments = [open_segment(store, pipeline, ref) for ref in kept.segments]
    try:
        for place, value in merged(store, pipeline, segments):
            name, _, key = place.partition("/")
            shelves[name].put(key, value)
        for name, changes in kept.changes.items():
            for key, value in changes.items():
                shelves[name].put(key, value)
            shelves[name].changed = set(changes)
    except (ValidationError, KeyError) as invalid:
        path = layout.known_folder(pipeline)
        raise SegmentBroken("the values of a snapshot cannot be read", path=path) from invalid
    return segments


def spill_values(
    shelves: Shelves,
    segments: list[Segment],
    store: Store,
    pipeline: str,
    fresh_id: Callable[[], UUID],
    *,
    most: int,
) -> list[Segment]:
    """Write what has changed to a segment, if it is more than a snapshot may carry."""
    if sum(len(shelf.changed) for shelf in shelves.values()) <= most:
        return segments
    rows: list[Row] = [
        [f"{name}/{key}", value]
        for name, shelf in shelves.items()
        for key, value in shelf.changes(gone=bool(segments)).items()
    ]
    rows.sort(key=lambda row: row[0])
    found = with_rows(
        store, pipeline, segments, rows, fresh_id, keep=lambda row: row[1] is not None
    )
    for shelf in shelves.values():
        shelf.changed = set()
    return found
