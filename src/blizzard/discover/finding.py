"""The result of listing a source: files to read, and the reasons why others are skipped.

A file's name determines whether it is a source file, its compression and its partition.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Self

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
"""Example names per reason."""
MOST_NAMED = 1000
"""The most files reported one by one per reason; all are counted."""


class Reason(StrEnum):
    """Why a file is skipped now, as a code and in words."""

    words: str

    def __new__(cls, code: str, words: str = "") -> Self:
        """Create a reason whose value is its code."""
        reason = str.__new__(cls, code)
        reason._value_, reason.words = code, words
        return reason

    INGESTED = "ingested", "ingested already"
    CHANGED = "changed", "ingested before, changed since; its new content is not read"
    PARTIAL_FILE_CHANGED = (
        "partial_file_changed",
        "changed after a part of it was read; nothing more of it is read",
    )
    RESTING = "resting", "failed before; tried again later"
    FAILED = "failed", "failed before; read again when the file or its configuration changes"
    MISPLACED = "misplaced", "its path does not give its partition; it would fail"
    BEYOND_BATCH = "beyond_batch", "beyond the limits of one batch; a later one takes it"
    TOO_YOUNG = "too_young", "younger than min_age_secs; it may still be written to"
    TOO_OLD = "too_old", "in a folder older than partition_filter allows"
    BEYOND_HORIZON = "beyond_horizon", "in a folder older than sweep_horizon"
    TEMPORARY = "temporary", "named like an unfinished file"
    HIDDEN = "hidden", "its name, or a folder of it, begins with _ or ."
    NOT_MATCHED = "not_matched", "does not match the pattern in source.path"
    NOT_NDJSON = (
        "not_ndjson",
        (
            "not named like NDJSON (.ndjson, .jsonl, .json, then .gz, .zst or .bz2); to take other "
            "names, let source.path end as they do, such as *.log, or begin as they do where they "
            "have no suffix, such as part-*"
        ),
    )
    FOLDER_MARKER = "folder_marker", "marks a folder, and has no content"
    LINK = "link", "a link to a folder, or to a file that is here by its own name; not followed"
    UNREADABLE = "unreadable", "may not be read (permission denied)"
    UNUSABLE_NAME = (
        "unusable_name",
        (
            "its name is not UTF-8; in an object store, it may also have a control character, or a "
            "part that is empty, . or .."
        ),
    )


AMISS = (Reason.LINK, Reason.UNREADABLE, Reason.UNUSABLE_NAME)
"""Reasons that need attention: data may be unread, and waiting does not help."""
UNREAD = (*AMISS, Reason.NOT_NDJSON)
"""Names that may hold data and are never read; `status`, `files` and `audit` count them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFile:
    """One skipped file, and the reason."""

    path: str
    size: int
    reason: Reason
    detail: str | None = None
    """The earlier failure, or the error of its path."""
    until: datetime | None = None
    """When it is retried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipSummary:
    """All files of a source that are skipped for the same reason."""

    reason: Reason
    files: int
    bytes: int
    some: tuple[str, ...]
    """The first few paths."""
    detail: str | None = None
    """The detail of the first file."""
    until: datetime | None = None
    """The earliest retry."""


@dataclass(slots=True)
class _TalliedReason:
    """The files with one reason."""

    files: int = 0
    bytes: int = 0
    first: list[SkippedFile] = field(default_factory=list)
    until: datetime | None = None


@dataclass(slots=True)
class SkipTally:
    """Counts skipped files by reason, and keeps the first of each."""

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
        """Return a copy for a resumed listing, which meets the files beyond the batch again."""
        return SkipTally(
            {
                reason: replace(one, first=list(one.first))
                for reason, one in self._by_reason.items()
                if reason is not Reason.BEYOND_BATCH
            }
        )

    def summed_up(self) -> tuple[SkipSummary, ...]:
        """Summarise the files by reason, in the order of the reasons."""
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
        """Return the files that are reported one by one, by path."""
        some = (
            one
            for reason, tallied in self._by_reason.items()
            if reason is not Reason.INGESTED
            for one in tallied.first
        )
        return tuple(sorted(some, key=lambda one: one.path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one listing of a source."""

    take: tuple[SourceFile, ...] = ()
    misplaced: tuple[SourceRecord, ...] = ()
    """Failures without reading: the path does not give the partition, or the rest of a partly read
    file cannot be read."""
    not_taken: tuple[SkipSummary, ...] = ()
    """The skipped files by reason."""
    passed: tuple[SkippedFile, ...] = ()
    """The skipped files that are not done, up to a limit."""
    left_over: int = 0
    """New files beyond the batch; 1 if the listing stopped at the first of them."""
    again: frozenset[str] = frozenset()
    """Keys of the taken files that were ingested before as other objects."""
    changed: tuple[ObjectFacts, ...] = ()
    """Some of the skipped files whose object changed after they were ingested."""
    gone: tuple[SourceRecord, ...] = ()
    """Unfinished files that a sweep has not found."""
    gone_left_over: int = 0
    """Further such files beyond the batch."""
    amiss: tuple[SkipSummary, ...] = ()
    """Names that need attention, as counted by the last sweep."""
    swept: bool = True
    """Whether the whole source was listed."""

    @property
    def has_work(self) -> bool:
        """Whether there is work for a batch."""
        return bool(self.take or self.misplaced or self.gone)

    @property
    def work(self) -> Iterator[str]:
        """Yield the keys of the files in that work."""
        yield from (file.key for file in self.take)
        yield from (record.key for record in (*self.misplaced, *self.gone))

    @property
    def has_more(self) -> bool:
        """Whether there is more than a batch may hold."""
        return self.left_over > 0 or self.gone_left_over > 0

    @property
    def unread(self) -> tuple[SkipSummary, ...]:
        """Return the names that may hold data and are never read, by reason."""
        return tuple(one for one in self.not_taken if one.reason in UNREAD)

    def count(self, reason: Reason) -> int:
        """Count the files skipped for a reason."""
        return sum(one.files for one in self.not_taken if one.reason is reason)


RECORDS = (".ndjson", ".jsonl", ".json")
PACKED = ("", *(each.suffix for each in COMPRESSED))
SUFFIXES = tuple(record + packed for record in RECORDS for packed in PACKED)
TEMPORARY = (
    *(".tmp", ".temp", ".part", ".partial", ".crdownload", ".inprogress", ".filepart"),
    *("_COPYING_", ".swp", ".lock", "~"),
)
"""Suffixes of unfinished files."""


class PartitionUnknown(LakeError, code="partition_unknown"):
    """A source file's path does not give the partition values that the template asks for."""


def why_not_ours(path: str, source: SourceSettings) -> Reason | None:
    """Return why a name is not a file of the source; None if it is."""
    if source.pattern is not None and source.pattern.compiled().fullmatch(path) is None:
        return Reason.NOT_MATCHED
    if is_hidden(path):
        return Reason.HIDDEN
    if path.endswith(SUFFIXES) or (source.pattern is not None and source.pattern.names_file(path)):
        return None
    return Reason.TEMPORARY if path.endswith(TEMPORARY) else Reason.NOT_NDJSON


def why_not_below(folder: str, source: SourceSettings) -> Reason | None:
    """Return why a folder holds no files of the source; None if it may."""
    if source.pattern is not None and not source.pattern.may_hold(folder):
        return Reason.NOT_MATCHED
    return Reason.HIDDEN if is_hidden(folder) else None


def codec_for(path: str, compression: Compression) -> Codec:
    """Return the configured codec, or that of the file's suffix."""
    return codec_of(path) if compression is Compression.AUTO else Codec(compression.value)


def partition_of(
    path: str, template: Template | None, fields: Mapping[str, Field]
) -> dict[str, str | None]:
    """Parse the partition values of a source path, and check them against their columns."""
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
