"""What a RESTORE removed from a table: penguin's own commits since the restored version.

RESTORE leaves the app transactions as they are, so nothing that it took out comes back by itself.
Whether it should is the operator's to say; what it was the log says exactly, as long as it has the
versions in between.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lakebed.deltalog.file import lines_of
from lakebed.deltalog.file_names import naming
from lakebed.documents.reading import parse_json
from lakebed.errors import LakeError, Whose
from lakebed.journal import JournalReader
from lakebed.layout import TablePath, log_version
from lakebed.storage.store import Reader
from penguin.model.commit import Add

COMMIT = "commit"


class NothingToReplay(LakeError):
    """There is no RESTORE to compensate for, or the log no longer says what it removed."""

    code = "nothing_to_replay"
    whose = Whose.USER


class NoRestore(NothingToReplay):
    """There is no table, or none that was ever restored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """A RESTORE, and the files of penguin's commits that it removed, by version."""

    restored_by: int
    """The version that is the RESTORE."""
    restored_to: int
    commits: tuple[tuple[int, tuple[Add, ...]], ...]

    @property
    def app_id(self) -> str:
        """Name the app transaction that says how far it has been compensated for."""
        return f"penguin/replay/{self.restored_by}"


def find_restore(store: Reader, newest: int) -> Restore:
    """Find the last RESTORE of a log and what it removed; anything unclear is an error."""
    back: set[str] = set()
    named = naming(store)
    for version in range(newest, -1, -1):
        actions = _read(store, version)
        told = _commit_info(actions)
        if told.get("operation") == "RESTORE":
            return _restore(store, version, told, back)
        back |= {named(add.path) for add in _adds(actions, version)}
    raise NoRestore("the log has no RESTORE", table=store.uri)


def _restore(store: Reader, restored_by: int, told: dict[str, Any], back: set[str]) -> Restore:
    parameters = told.get("operationParameters")
    wanted = parameters.get("version") if isinstance(parameters, dict) else None
    if wanted is None or not str(wanted).isdigit():
        raise NothingToReplay(
            f"version {restored_by} is a RESTORE that does not say to which version",
            table=store.uri,
        )
    commits = []
    for version in range(int(wanted) + 1, restored_by):
        actions = _read(store, version)
        info = _commit_info(actions)
        if version == int(wanted) + 1 and info.get("operation") == "RESTORE":
            continue  # This RESTORE is undone by the one that is compensated for.
        if any(_changes_rows(action) for action in actions):
            raise NothingToReplay(
                f"version {version}, {_named(store, info)}, changed rows that were in the "
                "table: what the RESTORE removed cannot be put back as it was; if the RESTORE is "
                f"to be undone, restore the table to version {restored_by - 1}, the one before "
                "it, and run penguin replay for what was committed since",
                table=store.uri,
            )
        if _is_ours(info):
            # What was added since then was in the table again, whatever became of it. What was
            # only compacted is back in the files of before, or comes back with them.
            new = [action for action in actions if not _is_compacted(action)]
            lost = (add for add in _adds(new, version) if add.path not in back)
            commits.append((version, tuple(lost)))
    return Restore(restored_by=restored_by, restored_to=int(wanted), commits=tuple(commits))


def _read(store: Reader, version: int) -> list[dict[str, Any]]:
    body = store.get(log_version(version))
    if body is None:
        raise NothingToReplay(
            f"version {version} of the log is no longer there, so it is not known what was removed",
            table=store.uri,
        )
    with lines_of(store.describe(log_version(version))):
        actions = [parse_json(line) for line in body.splitlines() if line.strip()]
        list(_adds(actions, version))
        _commit_info(actions).get("operation")
        return actions


def _commit_info(actions: list[dict[str, Any]]) -> dict[str, Any]:
    return next((action["commitInfo"] for action in actions if "commitInfo" in action), {})


def _changes_rows(action: dict[str, Any]) -> bool:
    removed = action.get("remove")
    return removed is not None and removed.get("dataChange", True)


def _is_compacted(action: dict[str, Any]) -> bool:
    added = action.get("add")
    return added is not None and not added.get("dataChange", True)


def _is_ours(info: dict[str, Any]) -> bool:
    told = info.get("penguin")
    return isinstance(told, dict) and told.get("step") == COMMIT


def _named(store: Reader, info: dict[str, Any]) -> str:
    """Name what a version did: an entry of a pipeline by its kind, all else by its operation."""
    told = info.get("penguin")
    entries = told.get("entries") if isinstance(told, dict) else None
    named: list[str] = []
    for pipeline, part in entries.items() if isinstance(entries, dict) else ():
        match part:
            case {"journal": str(journal), "first": int(first), "last": int(last)}:
                named += _changing(store, pipeline, journal, range(first, last + 1))
    if named:
        return " and ".join(named)
    step = told.get("step") if isinstance(told, dict) else None
    return f"penguin {step}" if step else str(info.get("operation"))


def _changing(store: Reader, pipeline: str, journal: str, numbers: range) -> Iterator[str]:
    """Name the entries of a commit that change what is in the table; batches come beside them."""
    reader = JournalReader(store, pipeline)
    for number in numbers:
        try:
            entry = reader.entry(number)
        except LakeError:
            continue  # The refusal matters more than its words.
        if entry is not None and entry.journal == journal and entry.replaces:
            yield f"{entry.kind} (entry {number} of pipeline {pipeline})"


def _adds(actions: list[dict[str, Any]], version: int) -> Iterator[Add]:
    for action in actions:
        if (file := action.get("add")) is not None:
            stats = file.get("stats") or "{}"
            yield Add(
                # The protocol writes paths as parts of a URI.
                path=TablePath(unquote(file["path"])),
                size=file["size"],
                rows=parse_json(stats).get("numRecords", 0),
                partition_values=file.get("partitionValues") or {},
                modification_time=file["modificationTime"],
                stats=stats,
                pipeline="",
                sequence=version,
            )
