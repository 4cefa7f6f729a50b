"""Changing the hand-off of a table, once everything that was handed off is committed.

The new protocol document is a create-only write with the next number, so of two that change it at
once one gets an error. An entry that a running blizzard appends right before it learns of the
change still says how it was handed off, and penguin follows the entry.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lakebed import layout
from lakebed.documents.entry import Protocol, encode
from lakebed.errors import ProtocolConflict
from lakebed.journal import JournalReader, latest_protocol, latest_protocol_number
from lakebed.storage.store import AlreadyThere, Reader, Store
from lakebed.types import Handoff

LastCommitted = Callable[[str, str], int | None]
"""Asks the Delta log for the last committed entry of a pipeline's journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncommitted:
    """The entries of one pipeline that are still to be committed."""

    pipeline: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Changed:
    """The table has another hand-off now."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The table has had this hand-off before."""


@dataclass(frozen=True, slots=True)
class TooEarly:
    """Not every entry is committed, so nothing was changed."""

    waiting: tuple[Uncommitted, ...]


Switched = Changed | Unchanged | TooEarly


def set_handoff(store: Store, handoff: Handoff, last_committed: LastCommitted) -> Switched:
    """Change how a table's files are handed off; doing so again changes nothing."""
    # The number comes first: a protocol that is written meanwhile then makes ours fail.
    number = latest_protocol_number(store) or 0
    if _in_force(store) is handoff:
        return Unchanged()
    early = too_early(store, handoff, last_committed)
    if early is not None:
        return early
    path = layout.protocol(number + 1)
    if isinstance(store.create(path, encode(Protocol(handoff=handoff))), AlreadyThere):
        found = _in_force(store)
        if found is handoff:
            return Unchanged()
        raise ProtocolConflict(
            f"another process has just changed the hand-off to {found}; nothing was changed",
            path=store.describe(path),
        )
    return Changed()


def too_early(store: Reader, handoff: Handoff, last_committed: LastCommitted) -> TooEarly | None:
    """Return what keeps a table from another hand-off; None if nothing does. Read-only."""
    if _in_force(store) is handoff:
        return None
    waiting = tuple(uncommitted(store, last_committed))
    return TooEarly(waiting) if waiting else None


def uncommitted(store: Reader, last_committed: LastCommitted) -> list[Uncommitted]:
    """Name the entries of every pipeline of a table that the Delta log does not have."""
    found = []
    for pipeline in layout.pipelines(store.folders(layout.OURS)):
        last = JournalReader(store, pipeline).last()
        if last is None:
            continue
        committed = last_committed(pipeline, last.journal) or 0
        if committed < last.sequence:
            found.append(Uncommitted(pipeline=pipeline, first=committed + 1, last=last.sequence))
    return found


def _in_force(store: Reader) -> Handoff | None:
    latest = latest_protocol(store)
    return None if latest is None else latest.handoff
