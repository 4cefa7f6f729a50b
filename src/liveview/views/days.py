"""Days of a pipeline: what landed in its sources, and what of it is in the table. Pure."""

from dataclasses import fields
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
    if group is None or (outdated and group.complete):
        doubt = "not known yet" if group is None else "being read"
        sentence = f"whether everything of {day} is in is {doubt}"
        return DayVerdict(day=day, complete=None, sentence=sentence)
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
    same = {one.name: getattr(group, one.name) for one in fields(Day) if one.name != "day"}
    return Day(**{**same, "day": group.name, "rows": group.rows or 0})
