"""Remove missing files from a table's log, so that the rest is readable again.

The same commit marks blizzard's files as gone for good. `blizzard redo` requires that mark: it
reads the sources of a work unit again once none of the unit's files is or can get into the table.
If it could not, the order is refused before anything is written: rows neither in the table nor read
again would be lost, while the books count them as present.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from lakebed.clock import Clock
from lakebed.deltalog.actions import FileAction
from lakebed.deltalog.segment import whole_segment
from lakebed.deltalog.snapshot import active_files
from lakebed.deltalog.table_features import APPEND_ONLY, is_on
from lakebed.documents.losses import Accepted, Repair, TakenOut
from lakebed.documents.pending_meta import HeldState
from lakebed.documents.reading import encode_document
from lakebed.errors import CommitUnconfirmed, LakeError, TableUnreadable, TableUnsupported, Whose
from lakebed.layout import accepted, file_name, held_transaction, repaired
from lakebed.storage.store import Store
from lakebed.telemetry.events import first_of
from penguin.delta.table import Log
from penguin.delta.version import REPAIR, WRITER, NextVersion, removed
from penguin.upkeep.fsck import Checked, Damaged, check

TRIES = 5
MANY = 10
PUT_BACK = "put the missing file back, from a backup or from an older version of the object"


class RepairRefused(LakeError, code="repair_refused", whose=Whose.USER):
    """Files would be removed that may exist, or whose rows would be lost by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """The files removed from a log, or planned to be."""

    checked: Checked
    files: tuple[FileAction, ...] = ()
    marked: tuple[str, ...] = ()
    """The names, without folders, of files of blizzard's whose sources may be read again."""
    lost: tuple[Damaged, ...] = ()
    """Files whose rows `blizzard redo` cannot read again. The loss is recorded as accepted, and
    `blizzard audit` shows it."""
    version: int | None = None
    """The version of the repair; None if nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairOrder:
    """An order to repair one table."""

    clock: Clock = field(default_factory=Clock)
    with_unit: bool = False
    """Whether to remove the other files of a missing file's work unit, too."""
    rows_back: bool = False
    """Whether to remove files whose deleted rows would be read again, too."""
    rows_lost: bool = False
    """Whether to remove files whose rows `blizzard redo` cannot read again."""
    even_all: bool = False
    """Whether to go on although none of many files exists."""
    inspect: Callable[[Store], Checked] = field(default=check)

    def plan(self, store: Store) -> Repaired:
        """Return what would be removed; raise if rows would be lost by it."""
        found = self.inspect(store)
        self._refuse_nothing_left(found, store)
        lost = [one for one in found.missing if one.origin is None or one.origin.why_lost]
        refuse_unknown(lost, store.uri)
        if not self.rows_lost:
            refuse_rewritten(lost, store.uri)
        if not self.rows_back:
            refuse_deleted_rows(found.missing, lost, store.uri)
        ours = [file for file in found.missing if file.origin is not None and file not in lost]
        gone = {file.path: file.action for file in found.missing}
        wanted = {path for one in ours for path in _others(one)} - gone.keys()
        others = {
            action.path: action
            for action in (active_files(store, whole_segment(store)) if wanted else ())
            if action.path in wanted
        }
        self._refuse_changed_units(store, ours, wanted, others)
        if others and not self.with_unit:
            raise _refused_alone(ours, others, store.uri)
        taken = gone | others
        return Repaired(
            checked=found,
            files=tuple(taken[path] for path in sorted(taken)),
            marked=tuple(sorted(map(file_name, (*(one.path for one in ours), *others)))),
            lost=tuple(lost),
        )

    def carry_out(self, store: Store) -> Repaired:
        """Remove the files in one version; plan again if another writer commits first."""
        for _ in range(TRIES):
            planned = self.plan(store)
            if not planned.files:
                return planned
            table = Log(store).open()
            if table is None:
                raise TableUnreadable("there is no Delta log", path=store.uri)
            if table.version != planned.checked.version:
                continue
            if is_on(table.facts.configuration, APPEND_ONLY):
                why = f"{APPEND_ONLY} is set: nothing may be removed from the table"
                raise TableUnsupported(why, table=store.uri)
            at = self.clock.now()
            _record(store, planned, table.version + 1, at)
            try:
                table.write_next(
                    NextVersion(
                        operation=REPAIR,
                        metadata={"step": "fsck"},
                        at=at,
                        removes=tuple(removed(file, at) for file in planned.files),
                        transactions=tuple(
                            (held_transaction(name), HeldState.GONE) for name in planned.marked
                        ),
                    )
                )
            except CommitUnconfirmed:
                continue  # The log says whether it was committed.
            done = replace(planned, version=table.version + 1)
            self._accept(store, done)
            return done
        raise CommitUnconfirmed(
            f"the table changed {TRIES} times while it was read; try again", table=store.uri
        )

    def _accept(self, store: Store, done: Repaired) -> None:
        """Record that the rows are lost by order, so that the books balance and show it.

        If this fails, `blizzard audit --accept` does the same.
        """
        if not done.lost or done.version is None:
            return
        document = Accepted(
            version=done.version,
            operation=REPAIR,
            writer=WRITER,
            rows=sum(file.action.visible_rows or 0 for file in done.lost),
            files=tuple(sorted(file.path for file in done.lost)),
            reason="penguin fsck --repair --rows-lost",
            created=self.clock.now().isoformat(),
        )
        store.create(accepted(done.version), encode_document(document))

    def _refuse_nothing_left(self, found: Checked, store: Store) -> None:
        if found.files > MANY and len(found.missing) == found.files and not self.even_all:
            raise RepairRefused(
                f"none of the table's {found.files} files is there: check that this is the "
                "right place and that its folders can be listed; add --all if they are really gone",
                table=store.uri,
            )

    def _refuse_changed_units(
        self,
        store: Store,
        ours: list[Damaged],
        wanted: set[str],
        others: Mapping[str, FileAction],
    ) -> None:
        """Raise if rows of a work unit are in the table, but not in the file it wrote.

        They would be duplicated. Held or discarded files are not in the table.
        """
        changed = [path for path, one in others.items() if one.deletion_vector is not None]
        absent = sorted(wanted - others.keys())
        table = Log(store).open() if absent else None
        for path in absent:
            mark = None if table is None else table.transaction(held_transaction(file_name(path)))
            if mark not in (HeldState.HELD, HeldState.GONE):
                changed.append(path)
        if changed:
            other = min(changed)
            missing = next(one.path for one in ours if other in _others(one))
            raise RepairRefused(
                f"{missing} is missing, and {other}, which was written together with it, is no "
                "longer in the table as it was written: another program has rewritten or deleted "
                "some of its rows. Reading their sources again would duplicate rows, and not "
                f"doing so would lose those of the missing file; {PUT_BACK}, or restore the table "
                "to a version before that",
                table=store.uri,
            )


def _record(store: Store, planned: Repaired, version: int, at: datetime) -> None:
    """Record the removed files: `blizzard files` does not count them as in the table.

    It is written before the version, so that no crash leaves a version without it.
    """
    files = {
        path: TakenOut(path=path, pipeline=file.origin.pipeline, entry=file.origin.entry)
        for file in planned.checked.missing
        if file.origin is not None
        for path in (file.path, *_others(file))
    }
    if taken := tuple(files[file.path] for file in planned.files if file.path in files):
        document = Repair(version=version, files=taken, created=at.isoformat())
        store.replace(repaired(version), encode_document(document))


def refuse_deleted_rows(missing: tuple[Damaged, ...], lost: list[Damaged], table: str) -> None:
    """Raise if rows that were deleted in place would be in the table again. Pure."""
    back = [
        file.path
        for file in missing
        if file.origin is not None and file not in lost and file.action.deletion_vector is not None
    ]
    if back:
        raise RepairRefused(
            f"rows of {first_of(back)} were deleted, by a deletion vector: blizzard "
            f"redo reads the sources as a whole, and those rows would be in the table again; "
            f"{PUT_BACK}, or add --rows-back, and delete them once more after the redo",
            table=table,
        )


def refuse_unknown(lost: list[Damaged], table: str) -> None:
    """Raise if nothing would record which rows are lost with a missing file. Pure."""
    for one in lost:
        if one.origin is not None and not one.origin.sources:
            raise RepairRefused(
                f"no entry says which source files the rows of {one.path} came from, so taking it "
                f"out would lose rows that nothing names; {PUT_BACK}, or restore the table to a "
                "version before it",
                table=table,
            )


def refuse_rewritten(lost: list[Damaged], table: str) -> None:
    """Raise if a missing file has rows that `blizzard redo` cannot read again. Pure."""
    names = [
        f"{file.path} ({file.origin.why_lost if file.origin else 'no entry names it'})"
        for file in lost
    ]
    if names:
        raise RepairRefused(
            f"blizzard redo cannot read these rows again: {first_of(names)}. Taking "
            f"them out would lose them; {PUT_BACK}. If that is not possible, --rows-lost takes "
            "them out all the same and says where to read them again",
            table=table,
        )


def _refused_alone(
    ours: list[Damaged], others: Mapping[str, FileAction], table: str
) -> RepairRefused:
    missing = next(one.path for one in ours if not others.keys().isdisjoint(_others(one)))
    return RepairRefused(
        f"{missing} was written together with other files that are in the table, and their "
        f"sources are read again only as a whole: add --with-unit to take out these "
        f"{len(others)}, too, or {PUT_BACK}",
        table=table,
    )


def _others(one: Damaged) -> tuple[str, ...]:
    return () if one.origin is None else one.origin.others
