"""Hints of new source files from notifications, and their outcomes."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A source file that was announced as created; only a check confirms that."""

    source: str
    path: str
    at: datetime | None = None
    """When it was created, according to the message."""
    size: int | None = None
    etag: str | None = None
    """Without quotes."""

    @property
    def key(self) -> str:
        """Return how the journal names the file."""
        return f"{self.source}:{self.path}"


class NoticeKind(StrEnum):
    """The outcome of a notification."""

    TAKEN = "taken"
    """The file was new; an entry of the journal names it."""
    KNOWN = "known"
    """The journal knew the file as it is, or leaves it alone by its rules."""
    NOT_MATCHED = "not_matched"
    """It is in the folder of a source, but not a file that the source takes."""
    MISSING = "missing"
    """There is no such object: it was deleted again."""
    ELSEWHERE = "elsewhere"
    """It is in another bucket or folder than those of the sources."""
    OTHER_EVENT = "other_event"
    """Something else happened than that an object was created."""
    TEST = "test"
    """What S3 sends when notifications are set up."""
    UNREADABLE = "unreadable"
    """Not recognisable as a notification of an object store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HintsFollowed:
    """The outcome of checking hinted files."""

    waiting: tuple[Hint, ...] = ()
    """In the next batch; settled once the journal names the file."""
    new: tuple[Hint, ...] = ()
    """Waiting ones that were not found before."""
    settled: Mapping[Hint, NoticeKind] = field(default_factory=dict)
    missing: tuple[Hint, ...] = ()
    """There is no such object, or not yet."""
    later: Mapping[Hint, float] = field(default_factory=dict)
    """Hints to check again, after a delay in seconds."""


class Hints:
    """The unsettled hints of one pipeline; this one is empty, for listing alone."""

    def due(self, source: str, now: float) -> Collection[Hint]:  # noqa: ARG002 - for an inbox
        """Return the hints for a source to check now."""
        return ()

    def until_due(self, now: float) -> float:  # noqa: ARG002 - for an inbox
        """Return the seconds until the next hint becomes due; infinite without one."""
        return float("inf")

    def followed(self, result: HintsFollowed) -> None:
        """Process the outcome of checking hints."""

    def journaled(self, keys: Iterable[str]) -> None:
        """Settle the hints of files that an entry names."""
