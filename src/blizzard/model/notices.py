"""Hints of new source files from notifications, and their outcomes."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A source file that a notification reports as created; still to be checked."""

    source: str
    path: str

    @property
    def key(self) -> str:
        """Return the file's key in the journal."""
        return f"{self.source}:{self.path}"


class NoticeKind(StrEnum):
    """The outcome of a notification."""

    TAKEN = "taken"
    """The file was new; a journal entry names it."""
    KNOWN = "known"
    """The journal already has this object, or its rules exclude it."""
    NOT_MATCHED = "not_matched"
    """It is in the folder of a source, but the source does not read files of this name."""
    MISSING = "missing"
    """The object does not exist, and was probably deleted; or it may not be asked for."""
    ELSEWHERE = "elsewhere"
    """It is outside the buckets and folders of the sources."""
    OTHER_EVENT = "other_event"
    """An event other than the creation of an object."""
    TEST = "test"
    """The test event that S3 sends when notifications are configured."""
    UNREADABLE = "unreadable"
    """Not a recognisable notification of an object store."""


@dataclass(slots=True, kw_only=True)
class HintsFollowed:
    """The outcome of checking hinted files, filled hint by hint."""

    waiting: list[Hint] = field(default_factory=list)
    """In the next batch; settled once the journal names the file."""
    new: list[Hint] = field(default_factory=list)
    """The waiting hints whose files were not found before."""
    settled: dict[Hint, NoticeKind] = field(default_factory=dict)
    later: dict[Hint, float] = field(default_factory=dict)
    """Hints to check again, after a delay in seconds."""


class Hints:
    """The unsettled hints of a pipeline; this base class has none, for listing alone."""

    def due(self, source: str, now: float) -> Collection[Hint]:  # noqa: ARG002 - for an inbox
        """Return the hints for a source to check now."""
        return ()

    def until_due(self, now: float) -> float:  # noqa: ARG002 - for an inbox
        """Return the seconds until the next hint becomes due; infinite without one."""
        return float("inf")

    def followed(self, result: HintsFollowed) -> None:
        """Process the outcome of checking hints."""

    def journaled(self, keys: Iterable[str]) -> None:
        """Settle the hints of files that a journal entry names."""
