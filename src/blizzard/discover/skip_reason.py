"""Why a file of a source is not taken: a small, closed set of answers, counted. Pure."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")

FEW = 5
"""How many names stand for all files with the same reason."""
MOST_NAMED = 1000
"""At most this many files are reported one by one for each reason; all are counted."""


class Reason(StrEnum):
    """Why a file is not taken now."""

    INGESTED = "ingested"
    CHANGED = "changed"
    CHANGED_PART_WAY = "changed_part_way"
    RESTING = "resting"
    FAILED = "failed"
    MISPLACED = "misplaced"
    BEYOND_BATCH = "beyond_batch"
    TOO_YOUNG = "too_young"
    TOO_OLD = "too_old"
    BEYOND_HORIZON = "beyond_horizon"
    TEMPORARY = "temporary"
    HIDDEN = "hidden"
    NOT_MATCHED = "not_matched"
    NOT_NDJSON = "not_ndjson"
    FOLDER_MARKER = "folder_marker"
    LINK = "link"
    UNREADABLE = "unreadable"
    UNUSABLE_NAME = "unusable_name"


AMISS = (Reason.LINK, Reason.UNREADABLE, Reason.UNUSABLE_NAME)
"""What a person should see to: there may be data that is not read, and no waiting helps."""
UNREAD = (*AMISS, Reason.NOT_NDJSON)
"""Names that may hold data and are never read; `status`, `files` and `audit` count them."""


IN_WORDS = {
    Reason.INGESTED: "ingested already",
    Reason.CHANGED: "ingested before, changed since; its new content is not read",
    Reason.CHANGED_PART_WAY: "changed after a part of it was read; nothing more of it is read",
    Reason.RESTING: "failed before; tried again later",
    Reason.FAILED: "failed before; taken again when the file or what bears on it changes",
    Reason.MISPLACED: "its path does not give its partition; it would fail",
    Reason.BEYOND_BATCH: "beyond the limits of one batch; a later one takes it",
    Reason.TOO_YOUNG: "younger than min_age_secs; it may still be written to",
    Reason.TOO_OLD: "in a folder older than partition_filter allows",
    Reason.BEYOND_HORIZON: "in a folder older than sweep_horizon looks",
    Reason.TEMPORARY: "named like a file that is not finished",
    Reason.HIDDEN: "its name, or a folder of it, begins with _ or .",
    Reason.NOT_MATCHED: "not meant by the pattern in source.path",
    Reason.NOT_NDJSON: (
        "not named like NDJSON (.ndjson, .jsonl, .json, then .gz, .zst or .bz2); to take other "
        "names, let source.path end as they do, such as *.log, or begin as they do where they have "
        "no suffix, such as part-*"
    ),
    Reason.FOLDER_MARKER: "marks a folder, and has no content",
    Reason.LINK: "a link to a folder, or to a file that is here by its own name; not followed",
    Reason.UNREADABLE: "may not be read (permission denied)",
    Reason.UNUSABLE_NAME: (
        "its name is not UTF-8, or has a control character or a part that is empty, . or .."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFile:
    """One file that is not taken, and why."""

    path: str
    size: int
    reason: Reason
    detail: str | None = None
    """What an earlier try, or a look at the path, said of it."""
    until: datetime | None = None
    """When it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipSummary:
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


@dataclass(slots=True)
class SkipTally:
    """Counts files by their reason, and names the first of each; those that are done, a few."""

    _files: dict[Reason, int] = field(default_factory=dict)
    _bytes: dict[Reason, int] = field(default_factory=dict)
    _first: dict[Reason, list[SkippedFile]] = field(default_factory=dict)
    _until: dict[Reason, datetime] = field(default_factory=dict)

    def add(
        self,
        path: str,
        size: int,
        reason: Reason,
        detail: str | None = None,
        until: datetime | None = None,
    ) -> None:
        """Count a file."""
        first = self._first.get(reason)
        if first is None:
            first = self._first[reason] = []
            self._files[reason] = self._bytes[reason] = 0
        self._files[reason] += 1
        self._bytes[reason] += size
        if len(first) < (FEW if reason is Reason.INGESTED else MOST_NAMED):
            first.append(
                SkippedFile(path=path, size=size, reason=reason, detail=detail, until=until)
            )
        if until is not None:
            self._until[reason] = min(until, self._until.get(reason, until))

    def resumed(self) -> "SkipTally":
        """Return a copy for a look that goes on, which comes by the files beyond its last batch."""

        def copied(by_reason: dict[Reason, T]) -> dict[Reason, T]:
            return {each: by_reason[each] for each in by_reason if each is not Reason.BEYOND_BATCH}

        first = {reason: list(some) for reason, some in copied(self._first).items()}
        return SkipTally(copied(self._files), copied(self._bytes), first, copied(self._until))

    def count(self, *reasons: Reason) -> int:
        """Count the files with one of some reasons."""
        return sum(self._files.get(reason, 0) for reason in reasons)

    def summed_up(self) -> tuple[SkipSummary, ...]:
        """Put the files with the same reason together, in the order of the reasons."""
        return tuple(
            SkipSummary(
                reason=reason,
                files=self._files[reason],
                bytes=self._bytes[reason],
                some=tuple(one.path for one in self._first[reason][:FEW]),
                detail=self._first[reason][0].detail,
                until=self._until.get(reason),
            )
            for reason in Reason
            if reason in self._files
        )

    def named(self) -> tuple[SkippedFile, ...]:
        """Return the files that are reported one by one, in the order of their paths."""
        told = (one for reason, first in self._first.items() for one in first)
        open_ones = (one for one in told if one.reason is not Reason.INGESTED)
        return tuple(sorted(open_ones, key=lambda one: one.path))
