"""What a Delta log says of its own versions: who committed what, and which entries."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lakebed.deltalog.actions import LogActions, moment, read_actions
from lakebed.deltalog.delta_types import type_name
from lakebed.deltalog.segment import fetch_actions
from lakebed.documents.reading import parse_json
from lakebed.errors import TableUnreadable
from lakebed.layout import DELTA_LOG, file_name, log_version
from lakebed.storage.store import Reader

REPAIR = "FSCK"
"""The operation by which `penguin fsck --repair` takes missing files out."""
MOST_READ = 1_000
"""Versions after which the answer is no: a table in use says so with its second version."""


def is_unused(store: Reader, version: int) -> bool:
    """Whether no version up to this one names a file, and only penguin has defined the table.

    Every version is read, from the first. One that is gone may have named files.
    """
    if version > MOST_READ:
        return False
    try:
        return all(map(_leaves_it_unused, fetch_actions(store, range(version + 1))))
    except TableUnreadable:
        return False


def _leaves_it_unused(actions: LogActions | None) -> bool:
    """Whether a version is there, names no file, and any change of the table in it is penguin's."""
    if actions is None or actions.paths:
        return False
    return actions.info.is_ours or (actions.metadata is None and actions.protocol is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledEntries:
    """The entries of one pipeline that a commit settled."""

    pipeline: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One version of the log. What it does not say of itself is None."""

    version: int
    at_ms: int | None = None
    """Milliseconds since the epoch, by the clock of the committer."""
    operation: str | None = None
    writer: str | None = None
    entries: tuple[SettledEntries, ...] = ()
    files_of_others: int = 0
    """Files that other programs wrote, and penguin committed."""
    files_added: int = 0
    files_removed: int = 0
    rows_added: int | None = field(default=0)
    """Rows of new data; None where a file was added without a count."""
    bytes_added: int = 0
    columns: Mapping[str, str] | None = None
    """The types of all columns by name, where the version says what the table is."""
    files_rewritten: int = 0
    """Files that a promotion put in the place of others, with the same rows."""
    files_held: int = 0
    """Files of its entries that it left out."""
    files_released: int = 0
    files_discarded: int = 0
    """Held files that it gave up, by order or because their sources are read again."""

    @property
    def is_repair(self) -> bool:
        """Whether `penguin fsck --repair` made it."""
        return self.operation == REPAIR

    @property
    def at(self) -> datetime | None:
        """Return when it was committed, by the clock of its writer."""
        return moment(self.at_ms)

    @property
    def who(self) -> str | None:
        """Name the operation and its writer; None where the version names neither."""
        return " by ".join(part for part in (self.operation, self.writer) if part) or None

    @property
    def words(self) -> str:
        """Name it with its operation and its writer."""
        return f"version {self.version}" + (f" ({self.who})" if self.who else "")


def read_commits(store: Reader, newest: int, count: int) -> list[Commit]:
    """Read the last versions, the newest first, as far back as the log still has them."""
    found = []
    for version in range(newest, max(newest - count, -1), -1):
        body = store.get(log_version(version))
        if body is None:
            # Older ones were cleaned up after a checkpoint; nothing before them is left either.
            break
        found.append(read_commit(version, body))
    return found


def added_in(store: Reader, newest: int, names: Collection[str]) -> dict[str, int]:
    """Return the version that has added each of some files, as far back as the log has them."""
    found: dict[str, int] = {}
    for actions in fetch_actions(store, range(newest, -1, -1)):
        if actions is None or len(found) == len(names):
            break  # Older ones were cleaned up after a checkpoint, or do not matter.
        for one in actions.adds:
            if one.path in names:
                found.setdefault(one.path, actions.version)
    return found


def brought_back(store: Reader, names: Collection[str], since: int, last: int) -> str | None:
    """Return which version after one may have put superseded files back; None if none has.

    A RESTORE also brings back files of other writers that hold the same rows.
    """
    numbers = range(since + 1, last + 1)
    for version, actions in zip(numbers, fetch_actions(store, numbers), strict=True):
        if actions is None:
            return f"the log no longer has version {version}, which may have put them back"
        added = any(file_name(one.path) in names for one in actions.adds)
        if actions.info.operation == "RESTORE" or added:
            return commit_of(actions).words
    return None


def read_commit(version: int, body: bytes) -> Commit:
    """Read one version. A line that is not an action is skipped: this is only for display."""
    return commit_of(read_actions(version, body, DELTA_LOG, lenient=True))


def commit_of(actions: LogActions) -> Commit:
    """Return what a version says of itself, and what it changes, added up."""
    info, note, adds = actions.info, actions.info.note, actions.adds
    counts = [one.rows for one in adds if one.data_change]
    files_rewritten, rows_rewritten = _rewritten(note)
    rows = [count for count in counts if count is not None]
    return Commit(
        version=actions.version,
        at_ms=info.at_ms,
        operation=info.operation,
        writer=info.writer,
        entries=tuple(
            SettledEntries(pipeline=pipeline, first=part["first"], last=part["last"])
            for pipeline, part in info.entries
            if isinstance(part.get("first"), int) and isinstance(part.get("last"), int)
        ),
        files_of_others=_files_of_others(note),
        files_added=len(adds),
        files_removed=len(actions.removes),
        rows_added=max(0, sum(rows) - rows_rewritten) if len(rows) == len(counts) else None,
        bytes_added=sum(one.size or 0 for one in adds),
        columns=None if actions.metadata is None else _columns(actions.metadata),
        files_rewritten=files_rewritten,
        files_held=len(info.names("held")),
        files_released=len(info.names("released")),
        files_discarded=len(info.names("discarded")),
    )


def reasons_against(actions: LogActions, pipeline: str, sequence: int) -> tuple[str, ...]:
    """Return why a version settled an entry that replaces files without effect, if it did."""
    match actions.info.note.get("not_promoted"):
        case dict(told):
            reasons = told.get(f"{pipeline}/{sequence}")
            return tuple(map(str, reasons)) if isinstance(reasons, list) else ()
    return ()


def _columns(metadata: Mapping[str, object]) -> dict[str, str] | None:
    try:
        fields = parse_json(str(metadata["schemaString"]))["fields"]
        return {one["name"]: type_name(one["type"]) for one in fields}
    except (ValueError, KeyError, TypeError):
        return None


def _files_of_others(note: Mapping[str, object]) -> int:
    match note.get("others"):
        case {"files": int(files)}:
            return files
    return 0


def _rewritten(note: Mapping[str, object]) -> tuple[int, int]:
    """Count the files, and their rows, that take the place of others."""
    match note.get("rewritten"):
        case {"files": int(files), "rows": int(rows)}:
            return files, rows
    return 0, 0
