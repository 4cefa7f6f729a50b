"""A pipeline over time: its days, its rows, bytes and files, and how fresh its table is. Pure."""

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from statistics import median

from blizzard.answers.file_counts import DayOrPartition
from blizzard.answers.report import Reconciliation
from lakebed.deltalog.versions import Commit
from lakebed.units import is_are, plural
from liveview.details import Days, FreshnessSeries, Series
from liveview.model import DayVerdict, Freshness, of_seconds
from liveview.views.entries import EntryFacts

MOST_MEASURED = 10_000
"""Files whose freshness is measured, the newest."""


def series_of(entries: Iterable[EntryFacts], *, now: float, hours: float, points: int) -> Series:
    """Return what came into the journal in each step of the last hours."""
    start, step = _steps(now, hours, points)
    rows, size, files = [0.0] * points, [0.0] * points, [0.0] * points
    for entry in entries:
        place = int((entry.at - start) // step)
        if 0 <= place < points and entry.batch.kind in ("batch", "replay"):
            rows[place] += entry.batch.rows
            size[place] += entry.batch.bytes_read
            files[place] += entry.batch.files
    return Series(start=of_seconds(start), step_secs=step, rows=rows, bytes=size, files=files)


def _steps(now: float, hours: float, points: int) -> tuple[float, float]:
    """Return when the first step begins, and how long each is.

    Steps begin at whole multiples, so that one that is over does not change any more.
    """
    step = hours * 3600 / points
    return (now // step + 1) * step - step * points, step


def freshness_series(
    entries: Iterable[EntryFacts],
    committed: Mapping[int, Commit],
    *,
    now: float,
    hours: float,
    points: int,
    held: Container[int | None] = (),
) -> FreshnessSeries:
    """Return how long source files took into the table, in each step of the last hours."""
    start, step = _steps(now, hours, points)
    found: list[list[float]] = [[] for _ in range(points)]
    for at, secs in _measured(entries, committed, held):
        place = int((at - start) // step)
        if 0 <= place < points:
            found[place] += secs[: MOST_MEASURED - len(found[place])]
    return FreshnessSeries(
        start=of_seconds(start),
        step_secs=step,
        median_secs=[round(median(secs), 3) if secs else None for secs in found],
        worst_secs=[round(max(secs), 3) if secs else None for secs in found],
        files=list(map(len, found)),
    )


def freshness_of(
    entries: Iterable[EntryFacts],
    committed: Mapping[int, Commit],
    *,
    since: float,
    held: Container[int | None] = (),
) -> Freshness:
    """Return how long source files took into the table, of the newest ones that are in it."""
    newest = sorted(entries, key=lambda one: -one.sequence)
    measured = (one for _at, secs in _measured(newest, committed, held) for one in secs)
    secs = list(islice(measured, MOST_MEASURED))
    if not secs:
        return Freshness()
    return Freshness(
        median_secs=round(median(secs), 3),
        worst_secs=round(max(secs), 3),
        measured_files=len(secs),
        since=of_seconds(since),
    )


def _measured(
    entries: Iterable[EntryFacts],
    committed: Mapping[int, Commit],
    held: Container[int | None],
) -> Iterator[tuple[float, list[float]]]:
    """Yield when entries were committed, and how long their files took.

    Not all files of an entry with held rows are in the table: none of them is measured.
    """
    for entry in entries:
        version = committed.get(entry.sequence)
        if version is not None and version.at_ms is not None and entry.sequence not in held:
            secs = [max(0.0, (version.at_ms - one) / 1000) for one in entry.written]
            yield version.at_ms / 1000, secs


def yesterday_of(now: datetime) -> str:
    """Return the day before, in UTC."""
    return f"{now - timedelta(days=1):%Y-%m-%d}"


def verdict_of(day: str, group: DayOrPartition | None, *, outdated: bool = False) -> DayVerdict:
    """Return whether everything of a day is in the table, in words.

    Files that have failed or are held since may be of a day that was complete.
    """
    if group is None or (outdated and group.complete):
        doubt = "not known yet" if group is None else "being read"
        sentence = f"whether everything of {day} is in is {doubt}"
        return DayVerdict(day=day, complete=None, sentence=sentence)
    # A pipeline need not have files every day: a day without any is neither complete nor not.
    complete = group.complete if group.landed else None
    return DayVerdict(day=day, complete=complete, sentence=group.sentence, standing=group.standing)


def days_of(found: Reconciliation) -> Days:
    """Return the last days that have files, the newest first."""
    notes = list(found.errors)
    if found.left_out:
        notes.append(
            f"{plural(found.left_out, 'file')} of other days {is_are(found.left_out)} not shown"
        )
    return Days(
        days=[group for group in found.groups if group.landed],
        note="; ".join(notes) or None,
    )
