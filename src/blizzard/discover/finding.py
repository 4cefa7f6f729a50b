"""Findings of one listing of a source: files to read, and why others are skipped.

The reasons are a small closed set. The name of a file says whether it is a source file, how it is
compressed, and which partition it belongs to.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from blizzard.model.settings import SourceSettings
from blizzard.model.source.file import SourceFile
from blizzard.model.source.form import COMPRESSED, codec_of, is_hidden
from lakebed.columns.schema import Field
from lakebed.documents.records import SourceRecord
from lakebed.errors import LakeError
from lakebed.partition import Template, check_value
from lakebed.storage.options import ObjectFacts
from lakebed.types import Codec, Compression

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
    Reason.FAILED: "failed before; read again when the file or its configuration changes",
    Reason.MISPLACED: "its path does not give its partition; it would fail",
    Reason.BEYOND_BATCH: "beyond the limits of one batch; a later one takes it",
    Reason.TOO_YOUNG: "younger than min_age_secs; it may still be written to",
    Reason.TOO_OLD: "in a folder older than partition_filter allows",
    Reason.BEYOND_HORIZON: "in a folder older than sweep_horizon",
    Reason.TEMPORARY: "named like an unfinished file",
    Reason.HIDDEN: "its name, or a folder of it, begins with _ or .",
    Reason.NOT_MATCHED: "does not match the pattern in source.path",
    Reason.NOT_NDJSON: (
        "not named like NDJSON (.ndjson, .jsonl, .json, then .gz, .zst or .bz2); to take other "
        "names, let source.path end as they do, such as *.log, or begin as they do where they have "
        "no suffix, such as part-*"
    ),
    Reason.FOLDER_MARKER: "marks a folder, and has no content",
    Reason.LINK: "a link to a folder, or to a file that is here by its own name; not followed",
    Reason.UNREADABLE: "may not be read (permission denied)",
    Reason.UNUSABLE_NAME: (
        "its name is not UTF-8; in an object store, it may also have a control character, or a "
        "part that is empty, . or .."
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One look at a source: what to take now, and what not, counted by the reason."""

    take: tuple[SourceFile, ...] = ()
    misplaced: tuple[SourceRecord, ...] = ()
    """Failed before they are read: their path does not give their partition, or a part of them is
    in the table and the rest cannot be read."""
    not_taken: tuple[SkipSummary, ...] = ()
    """By reason, how many files are not taken, and a few of them."""
    passed: tuple[SkippedFile, ...] = ()
    """The files that are not taken and not done, one by one; of many, the first."""
    left_over: int = 0
    """New files beyond the limits of one batch; where a look stopped at the first of them, 1."""
    noticed: frozenset[str] = frozenset()
    """Keys of those that were found because a message named them."""
    again: frozenset[str] = frozenset()
    """Keys of those that were ingested before, as other objects."""
    changed: tuple[ObjectFacts, ...] = ()
    """Some of those that were ingested before and are other objects now."""
    gone: tuple[SourceRecord, ...] = ()
    """Files that wait for another try, or for their rest, and that a sweep has not found."""
    gone_left_over: int = 0
    """Such files beyond the limits of one batch."""
    amiss: tuple[SkipSummary, ...] = ()
    """Names that cannot be read, as the last sweep counted them; a person should see to them."""
    swept: bool = True
    """Whether the whole source was listed."""

    @property
    def has_work(self) -> bool:
        """Whether there is something to do for a batch."""
        return bool(self.take or self.misplaced or self.gone)

    @property
    def work(self) -> Iterator[str]:
        """Yield the keys of what there is to do."""
        yield from (file.key for file in self.take)
        yield from (record.key for record in (*self.misplaced, *self.gone))

    @property
    def has_more(self) -> bool:
        """Whether there is more than one batch may hold: the next look finds it."""
        return self.left_over > 0 or self.gone_left_over > 0

    @property
    def unread(self) -> tuple[SkipSummary, ...]:
        """Return the names that may hold data and are never read, by reason."""
        return tuple(one for one in self.not_taken if one.reason in UNREAD)

    def count(self, reason: Reason) -> int:
        """Count the files that are not taken for a reason."""
        return sum(one.files for one in self.not_taken if one.reason is reason)


RECORDS = (".ndjson", ".jsonl", ".json")
PACKED = ("", *(each.suffix for each in COMPRESSED))
SUFFIXES = tuple(record + packed for record in RECORDS for packed in PACKED)
TEMPORARY = (
    *(".tmp", ".temp", ".part", ".partial", ".crdownload", ".inprogress", ".filepart"),
    *("_COPYING_", ".swp", ".lock", "~"),
)
"""How writers end the names of files that they have not finished."""


class PartitionUnknown(LakeError, code="partition_unknown"):
    """A source file's path does not give the partition values that the template asks for."""


def why_not_ours(path: str, source: SourceSettings) -> Reason | None:
    """Return why a name is none of the source's files; None where it is one."""
    if source.pattern is not None and source.pattern.compiled().fullmatch(path) is None:
        return Reason.NOT_MATCHED
    if is_hidden(path):
        return Reason.HIDDEN
    if path.endswith(SUFFIXES) or (source.pattern is not None and source.pattern.names_file(path)):
        return None
    return Reason.TEMPORARY if path.endswith(TEMPORARY) else Reason.NOT_NDJSON


def why_not_below(folder: str, source: SourceSettings) -> Reason | None:
    """Return why no file below a folder is one of the source's; None where some may be."""
    if source.pattern is not None and not source.pattern.may_hold(folder):
        return Reason.NOT_MATCHED
    return Reason.HIDDEN if is_hidden(folder) else None


def codec_for(path: str, compression: Compression) -> Codec:
    """Go by the file's suffix unless the configuration says how the files are compressed."""
    return codec_of(path) if compression is Compression.AUTO else Codec(compression.value)


def partition_of(
    path: str, template: Template | None, fields: Mapping[str, Field]
) -> dict[str, str | None]:
    """Take the partition values from a source path, checked against their columns."""
    if template is None:
        return {}
    try:
        values = template.values(path)
    except KeyError as missing:
        raise PartitionUnknown(f"its path contains no {missing.args[0]}=… folder") from missing
    except ValueError as broken:
        raise PartitionUnknown(f"a folder of its path cannot be decoded: {broken}") from broken
    for key, value in values.items():
        try:
            check_value(fields[key], value)
        except ValueError as wrong:
            raise PartitionUnknown(f"partition {key}: {wrong}") from wrong
    return values
