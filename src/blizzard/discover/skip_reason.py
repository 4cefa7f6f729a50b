"""Why a file of a source is not taken: a small, closed set of answers, counted. Pure."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

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
class _TalliedReason:
    """The files with one reason."""

    files: int = 0
    bytes: int = 0
    first: list[SkippedFile] = field(default_factory=list)
    until: datetime | None = None


@dataclass(slots=True)
class SkipTally:
    """Counts files by their reason, and names the first of each; those that are done, a few."""

    _by_reason: dict[Reason, _TalliedReason] = field(default_factory=dict)

    def add(
        self,
        path: str,
        size: int,
        reason: Reason,
        detail: str | None = None,
        until: datetime | None = None,
    ) -> None:
        """Count a file."""
        one = self._by_reason.get(reason)
        if one is None:
            one = self._by_reason[reason] = _TalliedReason()
        one.files += 1
        one.bytes += size
        if len(one.first) < (FEW if reason is Reason.INGESTED else MOST_NAMED):
            one.first.append(
                SkippedFile(path=path, size=size, reason=reason, detail=detail, until=until)
            )
        if until is not None:
            one.until = min(until, one.until or until)

    def resumed(self) -> "SkipTally":
        """Return a copy for a look that goes on, which comes by the files beyond its last batch."""
        return SkipTally(
            {
                reason: replace(one, first=list(one.first))
                for reason, one in self._by_reason.items()
                if reason is not Reason.BEYOND_BATCH
            }
        )

    def summed_up(self) -> tuple[SkipSummary, ...]:
        """Put the files with the same reason together, in the order of the reasons."""
        return tuple(
            SkipSummary(
                reason=reason,
                files=one.files,
                bytes=one.bytes,
                some=tuple(each.path for each in one.first[:FEW]),
                detail=one.first[0].detail,
                until=one.until,
            )
            for reason in Reason
            if (one := self._by_reason.get(reason)) is not None
        )

    def named(self) -> tuple[SkippedFile, ...]:
        """Return the files that are reported one by one, in the order of their paths."""
        some = (
            one
            for reason, tallied in self._by_reason.items()
            if reason is not Reason.INGESTED
            for one in tallied.first
        )
        return tuple(sorted(some, key=lambda one: one.path))
