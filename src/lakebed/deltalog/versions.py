"""What a Delta log says of its own versions: who committed what, and which entries."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from lakebed.deltalog.delta_types import type_name
from lakebed.deltalog.file_names import naming
from lakebed.documents.reading import parse_json
from lakebed.layout import log_version
from lakebed.storage.store import Reader

END_OF_TIME = 253_402_300_800_000
"""The milliseconds of the year 10000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The entries of one pipeline that a commit settled."""

    pipeline: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One version of the log. What it does not say of itself is None."""

    version: int
    at_ms: int | None = None
    """Milliseconds since the epoch, by the clock of whoever committed."""
    operation: str | None = None
    writer: str | None = None
    entries: tuple[Settled, ...] = ()
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
    def is_penguins(self) -> bool:
        """Whether penguin committed it."""
        return self.writer is not None and self.writer.startswith("penguin")

    @property
    def words(self) -> str:
        """Name it with its operation and who committed it."""
        who = " by ".join(part for part in (self.operation, self.writer) if part)
        return f"version {self.version}" + (f" ({who})" if who else "")


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
    named = naming(store)
    found: dict[str, int] = {}
    for version in range(newest, -1, -1):
        if len(found) == len(names):
            break
        body = store.get(log_version(version))
        if body is None:
            break  # Older ones were cleaned up after a checkpoint.
        for action in _actions(body):
            match action:
                case {"add": {"path": str(path)}} if (name := named(unquote(path))) in names:
                    found.setdefault(name, version)
    return found


def read_commit(version: int, body: bytes) -> Commit:
    """Read one version. A line that is not an action is skipped: this is only for display."""
    told: Mapping[str, Any] = {}
    added = removed = size = 0
    rows: int | None = 0
    columns: Mapping[str, str] | None = None
    for action in _actions(body):
        match action:
            case {"commitInfo": dict(info)}:
                told = info
            case {"add": dict(file)}:
                added += 1
                size += _number(file.get("size")) or 0
                if file.get("dataChange", True):
                    count = _rows(file.get("stats"))
                    rows = None if rows is None or count is None else rows + count
            case {"remove": dict()}:
                removed += 1
            case {"metaData": {"schemaString": str(schema)}}:
                columns = _columns(schema)
    files_rewritten, rows_rewritten = _rewritten(told.get("penguin"))
    return Commit(
        version=version,
        at_ms=_moment(told.get("timestamp")),
        operation=_text(told.get("operation")),
        writer=_text(told.get("penguin.writer")) or _text(told.get("engineInfo")),
        entries=tuple(_entries(told.get("penguin"))),
        files_of_others=_files_of_others(told.get("penguin")),
        files_added=added,
        files_removed=removed,
        rows_added=None if rows is None else max(0, rows - rows_rewritten),
        bytes_added=size,
        columns=columns,
        files_rewritten=files_rewritten,
        files_held=_named(told.get("penguin"), "held"),
        files_released=_named(told.get("penguin"), "released"),
        files_discarded=_named(told.get("penguin"), "discarded"),
    )


def named_files(body: bytes, key: str) -> frozenset[str]:
    """Return the files that a version names under a key of what penguin says of it."""
    for action in _actions(body):
        match action:
            case {"commitInfo": {"penguin": dict(told)}} if isinstance(told.get(key), list):
                return frozenset(map(str, told[key]))
    return frozenset()


def reasons_against(body: bytes, pipeline: str, sequence: int) -> tuple[str, ...]:
    """Return why a version settled an entry that replaces files without effect, if it did."""
    for action in _actions(body):
        match action:
            case {"commitInfo": {"penguin": {"not_promoted": dict(told)}}}:
                reasons = told.get(f"{pipeline}/{sequence}")
                return tuple(map(str, reasons)) if isinstance(reasons, list) else ()
    return ()


def _actions(body: bytes) -> Iterator[object]:
    for line in body.splitlines():
        try:
            yield parse_json(line)
        except ValueError:
            continue


def _columns(schema: str) -> dict[str, str] | None:
    try:
        return {one["name"]: type_name(one["type"]) for one in parse_json(schema)["fields"]}
    except (ValueError, KeyError, TypeError):
        return None


def _rows(stats: object) -> int | None:
    try:
        return _number(parse_json(stats).get("numRecords")) if isinstance(stats, str) else None
    except (ValueError, AttributeError):
        return None


def _entries(told: object) -> Iterator[Settled]:
    entries = told.get("entries") if isinstance(told, dict) else None
    for pipeline, part in entries.items() if isinstance(entries, dict) else ():
        match part:
            case {"first": int(first), "last": int(last)}:
                yield Settled(pipeline=pipeline, first=first, last=last)


def _files_of_others(told: object) -> int:
    match told:
        case {"others": {"files": int(files)}}:
            return files
    return 0


def _rewritten(told: object) -> tuple[int, int]:
    """Count the files, and their rows, that take the place of others."""
    match told:
        case {"rewritten": {"files": int(files), "rows": int(rows)}}:
            return files, rows
    return 0, 0


def _named(told: object, key: str) -> int:
    """Count the files that a commit names under a key."""
    names = told.get(key) if isinstance(told, dict) else None
    return len(names) if isinstance(names, list) else 0


def _moment(value: object) -> int | None:
    """Take a number of milliseconds, if it is one of a time that a calendar has."""
    number = _number(value)
    return number if number is not None and 0 <= number < END_OF_TIME else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
