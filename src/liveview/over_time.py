"""What the live page shows of days and of the last hours, as documents of the JSON API. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DayVerdict:
    """Whether everything of a day is in the table; None where that is not known."""

    day: str
    complete: bool | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day of a pipeline: what landed is the sum of what has become of it."""

    day: str
    landed: int
    in_table: int
    journaled: int
    held: int
    failed: int
    waiting: int
    changed: int
    retracted: int
    discarded: int
    removed: int
    """Whose rows a repair of the table took out, and nobody has read again."""
    lost: int
    """Of those that failed: deleted from their source since, so that nothing can read them."""
    deleted: int
    """Of all that landed: no longer in their source."""
    overwritten: int
    """Of those that were read: another object has their name since, which counts by itself."""
    quarantined_lines: int
    """Bad lines of them that wait in quarantine; no day waits for these to be complete."""
    rows: int
    bytes: int
    complete: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """The last days of a pipeline, the newest first."""

    days: list[Day]
    yesterday: DayVerdict
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Rows, bytes and files over time; one number per step, the oldest first."""

    start: str
    step_secs: float
    rows: list[float]
    bytes: list[float]
    files: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshnessSeries:
    """How long files took from their arrival to the Delta commit, by when they were committed.

    One value per step, the oldest first; null where no file was committed in a step.
    """

    start: str
    step_secs: float
    median_secs: list[float | None]
    worst_secs: list[float | None]
    files: list[int]
    """How many files were measured."""
