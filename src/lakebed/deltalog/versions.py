"""Summaries of the versions of a Delta log: who committed what, and which journal entries."""

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
"""The operation with which `penguin fsck --repair` removes missing files."""
FORGET = "penguin forget"
"""The command that settles entries that a log has lost, without their files."""
MOST_READ = 1_000
"""Versions above which a table counts as used; a used table usually shows in its second one."""


def is_unused(store: Reader, version: int) -> bool:
    """Whether no version up to this one names a file, and only penguin has defined the table.

    Every version is read from the first on; a missing one may have named files.
    """
    if version > MOST_READ:
        return False
    try:
        return all(map(_is_of_unused_table, fetch_actions(store, range(version + 1))))
    except TableUnreadable:
        return False


def _is_of_unused_table(actions: LogActions | None) -> bool:
    """Whether a version exists, names no file, and defines the table only if it is penguin's."""
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
    """One version of the log; None where the version does not say."""

    version: int
    at_ms: int | None = None
    """Milliseconds since the epoch, by the committer's clock."""
    operation: str | None = None
    writer: str | None = None
    restored: int | None = None
    """The version that it restored, if it is a RESTORE."""
    entries: tuple[SettledEntries, ...] = ()
    files_of_others: int = 0
    """Files that other programs wrote and penguin committed."""
    files_added: int = 0
    files_removed: int = 0
    rows_added: int | None = field(default=0)
    """Rows of new data; None if an added file has no row count."""
    bytes_added: int = 0
    columns: Mapping[str, str] | None = None
    """The types of all columns by name, if the version defines the table's schema."""
    files_rewritten: int = 0
    """Files that replace others with the same rows."""
    files_held: int = 0
    """Files of its entries that it did not commit."""
    files_released: int = 0
    files_discarded: int = 0
    """Held files that it gave up, on command or because their sources are read again."""

    @property
    def is_repair(self) -> bool:
        """Whether `penguin fsck --repair` committed it."""
        return self.operation == REPAIR

    @property
    def at(self) -> datetime | None:
        """Return the commit time, by the committer's clock."""
        return moment(self.at_ms)

    @property
    def who(self) -> str | None:
        """Return the operation and its writer as text; None if the version names neither."""
        return " by ".join(part for part in (self.operation, self.writer) if part) or None

    @property
    def words(self) -> str:
        """Return the version with its operation and its writer as text."""
        return f"version {self.version}" + (f" ({self.who})" if self.who else "")


def read_commits(store: Reader, newest: int, count: int) -> list[Commit]:
    """Read the last versions, newest first, as far back as the log still has them."""
    found = []
    for version in range(newest, max(newest - count, -1), -1):
        body = store.get(log_version(version))
        if body is None:
            break  # This one and all older ones were cleaned up.
        found.append(read_commit(version, body))
    return found


def added_in(store: Reader, newest: int, names: Collection[str]) -> dict[str, int]:
    """Return the version that added each of some files, as far back as the log reaches."""
    found: dict[str, int] = {}
    for actions in fetch_actions(store, range(newest, -1, -1)):
        if actions is None or len(found) == len(names):
            break  # Older versions were cleaned up, or do not matter.
        for add in actions.adds:
            if add.path in names:
                found.setdefault(add.path, actions.version)
    return found


def brought_back(store: Reader, names: Collection[str], since: int, last: int) -> str | None:
    """Return the version after `since` that may have restored superseded files; None if none has.

    A RESTORE also restores files of other writers that hold the same rows.
    """
    numbers = range(since + 1, last + 1)
    for version, actions in zip(numbers, fetch_actions(store, numbers), strict=True):
        if actions is None:
            return f"the log no longer has version {version}, which may have put them back"
        added = any(file_name(add.path) in names for add in actions.adds)
        if actions.info.operation == "RESTORE" or added:
            return commit_of(actions).words
    return None


def read_commit(version: int, body: bytes) -> Commit:
    """Summarize one version for display; skip lines that are not actions."""
    return commit_of(read_actions(version, body, DELTA_LOG, lenient=True))


def commit_of(actions: LogActions) -> Commit:
    """Summarize the actions of a version."""
    info, note, adds = actions.info, actions.info.note, actions.adds
    counts = [add.rows for add in adds if add.data_change]
    files_rewritten, rows_rewritten = _rewritten(note)
    rows = [count for count in counts if count is not None]
    return Commit(
        version=actions.version,
        at_ms=info.at_ms,
        operation=info.operation,
        writer=info.writer,
        restored=info.restored,
        entries=tuple(
            SettledEntries(pipeline=pipeline, first=part["first"], last=part["last"])
            for pipeline, part in info.entries
            if isinstance(part.get("first"), int) and isinstance(part.get("last"), int)
        ),
        files_of_others=_files_of_others(note),
        files_added=len(adds),
        files_removed=len(actions.removes),
        rows_added=max(0, sum(rows) - rows_rewritten) if len(rows) == len(counts) else None,
        bytes_added=sum(add.size or 0 for add in adds),
        columns=None if actions.metadata is None else _columns(actions.metadata),
        files_rewritten=files_rewritten,
        files_held=len(info.names("held")),
        files_released=len(info.names("released")),
        files_discarded=len(info.names("discarded")),
    )


def reasons_against(actions: LogActions, pipeline: str, sequence: int) -> tuple[str, ...]:
    """Return why a version settled an entry that replaces files without effect, if it did."""
    match actions.info.note.get("rejected"):
        case dict(by_entry):
            reasons = by_entry.get(f"{pipeline}/{sequence}")
            return tuple(map(str, reasons)) if isinstance(reasons, list) else ()
    return ()


def _columns(metadata: Mapping[str, object]) -> dict[str, str] | None:
    try:
        fields = parse_json(str(metadata["schemaString"]))["fields"]
        return {field["name"]: type_name(field["type"]) for field in fields}
    except (ValueError, KeyError, TypeError):
        return None


def _files_of_others(note: Mapping[str, object]) -> int:
    match note.get("others"):
        case {"files": int(files)}:
            return files
    return 0


def _rewritten(note: Mapping[str, object]) -> tuple[int, int]:
    """Return the numbers of files that replace others, and of their rows."""
    match note.get("rewritten"):
        case {"files": int(files), "rows": int(rows)}:
            return files, rows
    return 0, 0
