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


def set_handoff(
    store: Store, handoff: Handoff, last_committed: LastCommitted
) -> bool | tuple[Uncommitted, ...]:
    """Change how a table's files are handed off; doing so again changes nothing.

    Return whether it changed, or the entries that have to be committed before.
    """
    # The number comes first: a protocol that is written meanwhile then makes ours fail.
    number = latest_protocol_number(store) or 0
    if _in_force(store) is handoff:
        return False
    if waiting := entries_before(store, handoff, last_committed):
        return waiting
    path = layout.protocol(number + 1)
    if isinstance(store.create(path, encode(Protocol(handoff=handoff))), AlreadyThere):
        found = _in_force(store)
        if found is handoff:
            return False
        raise ProtocolConflict(
            f"another process has just changed the hand-off to {found}; nothing was changed",
            path=store.describe(path),
        )
    return True


def entries_before(
    store: Reader, handoff: Handoff, last_committed: LastCommitted
) -> tuple[Uncommitted, ...]:
    """Return the entries that keep a table from another hand-off. Read-only."""
    if _in_force(store) is handoff:
        return ()
    return tuple(uncommitted(store, last_committed))


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
