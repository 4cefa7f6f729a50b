"""Find what a RESTORE removed: penguin's commits since the restored version.

RESTORE does not reset app transactions, so nothing that it removed is committed again. Whether it
should be is for the operator to decide; the log says exactly what it was, while it has the versions
in between.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from lakebed.deltalog.actions import FileAction, LogActions
from lakebed.deltalog.segment import fetch_actions
from lakebed.deltalog.versions import commit_of
from lakebed.errors import LakeError, Whose
from lakebed.layout import TablePath
from lakebed.storage.store import Reader
from penguin.model.commit import Add

COMMIT = "commit"


class NothingToReplay(LakeError, code="nothing_to_replay", whose=Whose.USER):
    """There is no RESTORE to undo, or the log no longer shows what it removed."""


class NoRestore(NothingToReplay):
    """There is no table, or it was never restored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """A RESTORE, and the files of penguin's commits that it removed."""

    restored_by: int
    """The version that is the RESTORE."""
    restored_to: int
    commits: tuple[tuple[int, tuple[Add, ...]], ...]

    @property
    def app_id(self) -> str:
        """Name the app transaction that records how far it has been replayed."""
        return f"penguin/replay/{self.restored_by}"


def find_restore(store: Reader, newest: int) -> Restore:
    """Find the last RESTORE of a log and what it removed; raise if anything is unclear."""
    back: set[str] = set()
    for actions in _read(store, range(newest, -1, -1)):
        if actions.info.operation == "RESTORE":
            return _restore(store, actions, back)
        back |= {add.path for add in actions.adds}
    raise NoRestore("the log has no RESTORE", table=store.uri)


def _restore(store: Reader, restore: LogActions, back: set[str]) -> Restore:
    restored_by, wanted = restore.version, restore.info.restored
    if wanted is None:
        raise NothingToReplay(
            f"version {restored_by} is a RESTORE that does not say to which version",
            table=store.uri,
        )
    commits: dict[int, dict[str, Add]] = {}
    out: set[str] = set()
    for actions in _read(store, range(wanted + 1, restored_by)):
        version = actions.version
        out = _out_after(actions, out)
        if version == wanted + 1 and actions.info.operation == "RESTORE":
            continue  # The later RESTORE undid this one.
        ours = actions.info.note.get("step") == COMMIT
        changed = {remove.path for remove in actions.removes if remove.data_change}
        for adds in commits.values() if ours else ():
            # Files that penguin itself removed since are not put back.
            changed -= {path for path in changed if adds.pop(path, None) is not None}
        if changed:
            raise NothingToReplay(
                f"{commit_of(actions).words} changed rows that were in the "
                "table: what the RESTORE removed cannot be put back as it was; if the RESTORE is "
                f"to be undone, restore the table to version {restored_by - 1}, the one before "
                "it, and run penguin replay for what was committed since",
                table=store.uri,
            )
        if ours:
            # Files added after the RESTORE were in the table again, even if removed since. Files of
            # a compaction are skipped: the files before it are back, or are added again.
            new = (one for one in actions.adds if one.data_change and one.path not in back)
            commits[version] = {one.path: _added(one, version) for one in new}
    out = _out_after(restore, out)
    return Restore(
        restored_by=restored_by,
        restored_to=wanted,
        commits=tuple(
            (version, tuple(add for path, add in adds.items() if path in out))
            for version, adds in commits.items()
        ),
    )


def _out_after(actions: LogActions, out: set[str]) -> set[str]:
    """Return the files, of those seen so far, that are out of the table after a version."""
    return (out | {remove.path for remove in actions.removes}) - {add.path for add in actions.adds}


def _read(store: Reader, numbers: range) -> Iterator[LogActions]:
    for version, actions in zip(numbers, fetch_actions(store, numbers), strict=False):
        if actions is None:
            raise NothingToReplay(
                f"version {version} of the log is gone, so it is not known what was removed",
                table=store.uri,
            )
        yield actions


def _added(file: FileAction, version: int) -> Add:
    """Return a file that a version added, to be added again."""
    return Add(
        # The protocol writes paths as parts of a URI.
        path=TablePath(unquote(file.written)),
        size=file.size or 0,
        rows=file.rows or 0,
        partition_values=dict(file.partition_values),
        modification_time=file.modification_time or 0,
        stats=file.stats or "{}",
        pipeline="",
        sequence=version,
    )
