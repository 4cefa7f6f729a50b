"""Why a file of a source is not taken: a small, closed set of answers. Pure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from blizzard.discovery import Finding, is_in_table, is_source_file, next_try
from blizzard.flow import Known
from lake.entry import SourceRecord
from lake.storage import ObjectFacts

FEW = 5
"""How many names stand for all files with the same reason."""


class Reason(StrEnum):
    """Why a file is not taken now."""

    INGESTED = "ingested"
    CHANGED = "changed"
    RESTING = "resting"
    FAILED = "failed"
    MISPLACED = "misplaced"
    BEYOND_BATCH = "beyond_batch"
    NOT_NDJSON = "not_ndjson"


IN_WORDS = {
    Reason.INGESTED: "ingested already",
    Reason.CHANGED: "ingested before, changed since; its new content is not read",
    Reason.RESTING: "failed before; tried again later",
    Reason.FAILED: "failed before; taken again when the file changes",
    Reason.MISPLACED: "its path does not give its partition; it would fail",
    Reason.BEYOND_BATCH: "beyond the limits of one batch; a later one takes it",
    Reason.NOT_NDJSON: "not named like NDJSON (.ndjson, .jsonl, .json, then .gz or .zst)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One file that is not taken, and why."""

    path: str
    size: int
    reason: Reason
    detail: str | None = None
    """What an earlier try, or a look at the path, said of it."""
    until: datetime | None = None
    """When it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotTaken:
    """All files of a source that are not taken for the same reason."""

    reason: Reason
    files: int
    bytes: int
    some: tuple[str, ...]
    """A few of their paths, the first ones."""
    detail: str | None = None
    """What was said of the first of them."""
    until: datetime | None = None
    """When the first of them is tried again."""


def passed_over(
    listed: Iterable[ObjectFacts],
    found: Finding,
    *,
    source: str,
    known: Callable[[str], Known | None],
    tried: frozenset[str] = frozenset(),
) -> Iterator[Passed]:
    """Give every listed file of a source that a finding does not take, with its reason."""
    taken = {file.path for file in found.take}
    overwritten = {facts.path for facts in found.overwritten}
    misplaced = {record.path: record for record in found.misplaced}
    resting = {record.path: record for record in found.resting}
    for facts in listed:
        path, size = facts.path, facts.size
        before = known(f"{source}:{path}")
        if path in taken:
            continue
        if not is_source_file(path):
            yield Passed(path=path, size=size, reason=Reason.NOT_NDJSON)
        elif path in overwritten:
            yield Passed(path=path, size=size, reason=Reason.CHANGED)
        elif path in misplaced:
            detail = _message(misplaced[path])
            yield Passed(path=path, size=size, reason=Reason.MISPLACED, detail=detail)
        elif path in resting:
            until = None if before is None else next_try(before)
            again = until is not None and f"{source}:{path}" not in tried
            yield Passed(
                path=path,
                size=size,
                reason=Reason.RESTING if again else Reason.FAILED,
                detail=_message(resting[path]),
                until=until if again else None,
            )
        elif before is not None and is_in_table(before.record):
            yield Passed(path=path, size=size, reason=Reason.INGESTED)
        else:
            yield Passed(path=path, size=size, reason=Reason.BEYOND_BATCH)


def summed_up(passed: Iterable[Passed]) -> tuple[NotTaken, ...]:
    """Put the files with the same reason together, in the order of the reasons."""
    groups: dict[Reason, list[Passed]] = {}
    for one in passed:
        groups.setdefault(one.reason, []).append(one)
    return tuple(
        NotTaken(
            reason=reason,
            files=len(groups[reason]),
            bytes=sum(one.size for one in groups[reason]),
            some=tuple(one.path for one in groups[reason][:FEW]),
            detail=groups[reason][0].detail,
            until=min((one.until for one in groups[reason] if one.until), default=None),
        )
        for reason in Reason
        if reason in groups
    )


def _message(record: SourceRecord) -> str | None:
    return record.failure.message if record.failure else None
