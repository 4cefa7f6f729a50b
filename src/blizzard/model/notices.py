"""Hints of new source files that queues give, and what comes of them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A file of a source that is said to have been created; only a look tells whether it was."""

    source: str
    path: str
    at: datetime | None = None
    """When it was created, as the message has it."""
    size: int | None = None
    etag: str | None = None
    """Without quotes."""

    @property
    def key(self) -> str:
        """Return how the journal names the file."""
        return f"{self.source}:{self.path}"


class NoticeKind(StrEnum):
    """What a notice turned out to be."""

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
    """What a look at the files that hints name has come to."""

    waiting: tuple[Hint, ...] = ()
    """In the next batch; settled once the journal names the file."""
    new: tuple[Hint, ...] = ()
    """Those of them that were not found before."""
    settled: Mapping[Hint, NoticeKind] = field(default_factory=dict)
    missing: tuple[Hint, ...] = ()
    """There is no such object, or not yet."""
    later: Mapping[Hint, float] = field(default_factory=dict)
    """Those that have to be looked at again, after so many seconds."""


class Hints:
    """The hints of one pipeline that are not settled; none where files are found by listing."""

    def due(self, source: str, now: float) -> Collection[Hint]:  # noqa: ARG002 - for an inbox
        """Return the hints for a source that are to be followed now."""
        return ()

    def until_due(self, now: float) -> float:  # noqa: ARG002 - for an inbox
        """Return the seconds until a hint is due that is not due yet; infinite without one."""
        return float("inf")

    def followed(self, result: HintsFollowed) -> None:
        """Take in what came of following hints."""

    def journaled(self, keys: Iterable[str]) -> None:
        """Settle the hints of files that an entry names."""
