"""Taking files that are gone out of a table's log, so that the rest of it can be read again.

A file of blizzard's is marked as gone for good in the same commit. That is what `blizzard redo`
asks the log for: it reads the sources of a work unit again once none of the unit's files is in the
table, and cannot get in again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from lakebed.clock import Clock
from lakebed.errors import LakeError, Whose
from lakebed.layout import file_name, held_transaction
from lakebed.storage.store import Store
from penguin.delta.log.file_actions import FileAction
from penguin.delta.table import Log
from penguin.delta.version import Action, milliseconds
from penguin.model.commit import HeldState
from penguin.model.errors import CommitFailed, TableUnreadable
from penguin.upkeep.fsck import Checked, Damaged, active_files, check
from penguin.upkeep.log_needs import whole_tail

TRIES = 5
MANY = 10


class RepairRefused(LakeError):
    """Files would be taken out of a table that may well be there."""

    code = "repair_refused"
    whose = Whose.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """What was taken out of a log, or would be."""

    checked: Checked
    files: tuple[FileAction, ...] = ()
    marked: tuple[str, ...] = ()
    """The names, without folders, of files of blizzard's whose sources may be read again."""
    kept_units: tuple[str, ...] = ()
    """Such whose sources cannot be: other files of their work units are in the table."""
    version: int | None = None
    """The version that says so; None where nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairOrder:
    """An order to repair one table."""

    clock: Clock = field(default_factory=Clock)
    with_unit: bool = False
    """Whether the other files of a missing file's work unit are taken out, too."""
    even_all: bool = False
    """Whether to go on where none of many files is there."""
    look: Callable[[Store], Checked] = field(default=check)

    def plan(self, store: Store) -> Repaired:
        """Return what would be taken out."""
        found = self.look(store)
        self._refuse_nothing_left(found, store)
        ours = [one for one in found.missing if one.origin is not None]
        gone = {one.path: one.action for one in found.missing}
        wanted = {path for one in ours for path in _others(one)} - gone.keys()
        others = {
            action.path: action
            for action in (active_files(store, whole_tail(store)) if wanted else ())
            if action.path in wanted
        }
        taken = gone | others if self.with_unit else gone
        kept = [
            one
            for one in ours
            if any(path not in taken and path in others for path in _others(one))
        ]
        marked = [*(one.path for one in ours), *(others if self.with_unit else ())]
        return Repaired(
            checked=found,
            files=tuple(taken[path] for path in sorted(taken)),
            marked=tuple(sorted(map(file_name, marked))),
            kept_units=tuple(sorted(file_name(one.path) for one in kept)),
        )

    def carry_out(self, store: Store) -> Repaired:
        """Take them out in one version; where somebody else commits first, look again."""
        for _ in range(TRIES):
            planned = self.plan(store)
            if not planned.files:
                return planned
            table = Log(store).open()
            if table is None:
                raise TableUnreadable("there is no Delta log", path=store.uri)
            if table.version != planned.checked.version:
                continue
            at = self.clock.now()
            try:
                table.repair(
                    tuple(removal(one, at) for one in planned.files),
                    tuple((held_transaction(name), HeldState.GONE) for name in planned.marked),
                    {"step": "fsck"},
                    at,
                )
            except CommitFailed:
                continue  # The log says whether it was made.
            return Repaired(
                checked=planned.checked,
                files=planned.files,
                marked=planned.marked,
                kept_units=planned.kept_units,
                version=table.version + 1,
            )
        raise CommitFailed(
            f"the table changed {TRIES} times while it was looked at; try again", table=store.uri
        )

    def _refuse_nothing_left(self, found: Checked, store: Store) -> None:
        if found.files > MANY and len(found.missing) == found.files and not self.even_all:
            raise RepairRefused(
                f"none of the table's {found.files} files is there: see that this is the right "
                "place, and that its folders may be listed; add --all if they are really gone",
                table=store.uri,
            )


def removal(file: FileAction, at: datetime) -> Action:
    """Return the action that takes a file out. Pure."""
    told: Action = {
        "remove": {
            "path": file.written,
            "deletionTimestamp": milliseconds(at),
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": dict(file.partition_values),
            "size": file.size or 0,
        }
    }
    if file.deletion_vector is not None:
        vector = file.deletion_vector
        told["remove"]["deletionVector"] = {
            name: value for name, value in vector.items() if value is not None
        }
    return told


def _others(one: Damaged) -> tuple[str, ...]:
    return () if one.origin is None else one.origin.others
