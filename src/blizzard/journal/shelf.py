"""Values by key of which a snapshot writes down only the changes.

Each snapshot carries what has changed since the last segment. Where that is much, it becomes a
segment of its own. Segments are merged like those of ingested names: each is at least twice as
large as all newer ones together, so a value is written seldom, however many there are. A value that
is gone stands in a segment as null, until no older segment can have it. One that is missing or
damaged is a SegmentBroken, and everything is built again from the entries.
"""

import hashlib
import json
from collections.abc import (
    Callable,
    ItemsView,
    Iterator,
    Mapping,
    MutableMapping,
    ValuesView,
)
from dataclasses import dataclass, field
from typing import Generic, TypeVar, overload
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from blizzard.journal.ingested import SegmentBroken, SegmentRef, to_merge
from lakebed import layout
from lakebed.storage.store import Reader, Store

Value = TypeVar("Value")
Other = TypeVar("Other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(Generic[Value]):
    """How a snapshot has the values: segments, the oldest first, and what has changed since."""

    segments: tuple[SegmentRef, ...] = ()
    changes: Mapping[str, Value | None] = field(default_factory=dict)
    """By key; None where there is no value any more."""


class Shelf(MutableMapping[str, Value]):
    """Values in memory, with the keys that have changed since the last segment was written."""

    def __init__(self, lines: TypeAdapter[tuple[str, Value | None]]) -> None:
        """`lines` says how a key and its value are written as a line of a segment."""
        self._lines = lines
        self._held: dict[str, Value] = {}
        self._changed: set[str] = set()
        self.segments: tuple[SegmentRef, ...] = ()
        """What is written down so far, the oldest first."""

    def __getitem__(self, key: str) -> Value:
        return self._held[key]

    def __setitem__(self, key: str, value: Value) -> None:
        self._held[key] = value
        self._changed.add(key)

    def __delitem__(self, key: str) -> None:
        del self._held[key]
        self._changed.add(key)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    # Each look goes over all of them: what the mapping itself has is many times as fast.
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

    @property
    def kept(self) -> Kept[Value]:
        """Return how a snapshot is to have the values."""
        return Kept(segments=self.segments, changes=self._changes())

    def _changes(self) -> dict[str, Value | None]:
        return {
            key: self._held.get(key)
            for key in sorted(self._changed)
            # Of what is gone and stands in no segment there is nothing to say.
            if self.segments or key in self._held
        }

    def load(self, store: Reader, pipeline: str, kept: Kept[Value]) -> None:
        """Take over the values that a snapshot has."""
        for ref in kept.segments:
            for line in _read(store, pipeline, ref):
                self._put(*self._decoded(line, pipeline, ref))
        for key, value in kept.changes.items():
            self._put(key, value)
        self._changed = set(kept.changes)
        self.segments = kept.segments

    def _put(self, key: str, value: Value | None) -> None:
        if value is None:
            self._held.pop(key, None)
        else:
            self._held[key] = value

    def _decoded(self, line: bytes, pipeline: str, ref: SegmentRef) -> tuple[str, Value | None]:
        try:
            return self._lines.validate_json(line)
        except ValidationError as invalid:
            path = layout.known_values(pipeline, ref.id)
            raise SegmentBroken("a segment of the books cannot be read", path=path) from invalid

    def spill(
        self, store: Store, pipeline: str, fresh_id: Callable[[], UUID], *, most: int
    ) -> None:
        """Write what has changed to a segment, if it is more than a snapshot may carry."""
        if len(self._changed) <= most:
            return
        changes = self._changes()
        if changes:
            lines = {
                key: self._lines.dump_json((key, value), exclude_defaults=True)
                for key, value in changes.items()
            }
            self.segments = (*self.segments, _write(store, pipeline, lines, fresh_id()))
        self._changed = set()
        number = to_merge(self.segments) if self.segments else 0
        if number > 1:
            lines = {}
            for ref in self.segments[-number:]:
                lines |= {json.loads(line)[0]: line for line in _read(store, pipeline, ref)}
            if number == len(self.segments):
                lines = {key: line for key, line in lines.items() if key in self._held}
            merged = _write(store, pipeline, lines, fresh_id())
            self.segments = (*self.segments[:-number], merged)


def _write(store: Store, pipeline: str, lines: Mapping[str, bytes], fresh_id: UUID) -> SegmentRef:
    body = b"".join(lines[key] + b"\n" for key in sorted(lines))
    name = str(fresh_id)
    store.replace(layout.known_values(pipeline, name), body)
    return SegmentRef(id=name, names=len(lines), digest=hashlib.sha256(body).hexdigest())


def _read(store: Reader, pipeline: str, ref: SegmentRef) -> list[bytes]:
    path = layout.known_values(pipeline, ref.id)
    body = store.get(path)
    if body is None or hashlib.sha256(body).hexdigest() != ref.digest:
        raise SegmentBroken("a segment of the books is missing or damaged", path=path)
    return body.splitlines()
