"""Days of a pipeline: what landed in its sources, and what of it is in the table. Pure."""

from datetime import datetime, timedelta

from blizzard.answers.reconcile import Group
from blizzard.answers.report import Reconciliation
from lakebed.units import is_are, plural
from liveview.over_time import Day, Days, DayVerdict


def yesterday_of(now: datetime) -> str:
    """Return the day before, in UTC."""
    return f"{now - timedelta(days=1):%Y-%m-%d}"


def verdict_of(day: str, found: Reconciliation | None, *, outdated: bool = False) -> DayVerdict:
    """Return whether everything of a day is in the table, in words.

    Files that have failed or are held since may be of a day that was complete.
    """
    group = None if found is None else found.day(day)
    if group is None:
        return DayVerdict(
            day=day, complete=None, sentence=f"whether everything of {day} is in is not known yet"
        )
    if outdated and group.complete:
        return DayVerdict(
            day=day, complete=None, sentence=f"whether everything of {day} is in is being read"
        )
    # A pipeline need not have files every day: a day without any is neither complete nor not.
    complete = group.complete if group.landed else None
    return DayVerdict(day=day, complete=complete, sentence=group.sentence)


def days_of(found: Reconciliation, yesterday: str) -> Days:
    """Return the last days that have files, the newest first."""
    notes = list(found.errors)
    if found.left_out:
        notes.append(
            f"{plural(found.left_out, 'file')} of other days {is_are(found.left_out)} not shown"
        )
    return Days(
        days=[_day(group) for group in found.groups if group.landed],
        yesterday=verdict_of(yesterday, found),
        note="; ".join(notes) or None,
    )


def _day(group: Group) -> Day:
    return Day(
        day=group.name,
        landed=group.landed,
        in_table=group.in_table,
        journaled=group.journaled,
        held=group.held,
        failed=group.failed,
        waiting=group.waiting,
        changed=group.changed,
        retracted=group.retracted,
        discarded=group.discarded,
        removed=group.removed,
        lost=group.lost,
        deleted=group.deleted,
        overwritten=group.overwritten,
        quarantined_lines=group.quarantined_lines,
        rows=group.rows or 0,
        bytes=group.bytes,
        complete=group.complete,
    )
