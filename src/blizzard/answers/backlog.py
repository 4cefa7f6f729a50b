"""What a source file waits for, and how many files wait with it."""

from dataclasses import dataclass, replace
from datetime import datetime
from math import inf

from blizzard.answers.answer import Answer, Backlog
from blizzard.answers.asked import Asked
from blizzard.discover.finding import Finding
from blizzard.discover.skip_reason import Reason
from blizzard.discover.spot_check import SpotCheck
from blizzard.journal.lease_record import Life, this_machine, writer_status
from blizzard.model.settings import SourceSettings
from blizzard.model.source.forecast import Forecast
from blizzard.plan.trigger import Arrivals, learned, should_start, starts_by
from lakebed.types import OnChange
from lakebed.units import plural, span


def waits(answer: Answer, source: SourceSettings) -> str:
    """Return what a file waits for, and how long at the most."""
    backlog = answer.backlog
    if answer.reason == Reason.TOO_YOUNG.value:
        left = 0.0 if backlog is None else backlog.starts_in_secs or 0.0
        return (
            f"It is waiting: it is younger than min_age_secs ({source.min_age:g}), so that nobody "
            f"still writes to it. It is old enough in {span(max(1.0, left))}."
        )
    again = ""
    if answer.reason == Reason.CHANGED.value:
        again = (
            " It failed before, and is another object now."
            if answer.failure is not None
            else " It was read before, and is another object now."
        )
        if answer.read and source.on_change is OnChange.REPLACE:
            again += " Its rows are taken out of the table with the commit that has the new ones."
        elif answer.read:
            again += " The rows of the one before stay in the table, too."
    if backlog is None or backlog.files is None:
        return (
            "It is waiting for a batch. Its place in the backlog is not counted, because its "
            f"folder has too many names; --count-all counts it.{again}"
        )
    place = f"number {backlog.position:,} of " if backlog.position is not None else "one of "
    where = "in its source" if backlog.counted == "source" else "in its folder"
    which = (
        "a later batch, since the next one is full"
        if backlog.in_next_batch is False
        else ("the next batch")
    )
    files = plural(backlog.files, "waiting file")
    return f"It is waiting for {which} ({place}{files} {where}). {_when(backlog)}{again}"


def _when(backlog: Backlog) -> str:
    if not backlog.starts_in_secs:
        return "The next batch is due: enough is waiting, or has waited for long enough."
    why = {
        "rollover": "the first file has waited for rollover_timeout_secs",
        "inactivity": "no new file has come for inactivity_timeout_secs",
    }[backlog.trigger or "rollover"]
    return (
        f"It starts in {span(max(1.0, backlog.starts_in_secs))} at the latest, once {why}, or "
        "as soon as more files are waiting; with --once it starts right away."
    )


def ways_of_waiting(backlog: Backlog | None) -> tuple[str, ...]:
    """Return what an operator can do about a file that waits."""
    if backlog is not None and backlog.running is False:
        return ("start blizzard: none is running for this pipeline",)
    if backlog is not None and backlog.running is None:
        return ("make sure that blizzard still runs on the machine that blizzard status names",)
    return ("nothing, if blizzard is running; blizzard --dry-run shows what the next batch takes",)


MIN_AGE = "min_age"


@dataclass(frozen=True, slots=True)
class _Counted:
    """What waits in a source, or in the folder of the file."""

    found: Finding
    whole: bool


def backlog_of(asked: Asked, spot: SpotCheck, answer: Answer) -> Backlog:
    """Return where a file stands among those that wait."""
    path = answer.path or ""
    counted = _counted(asked, spot, path)
    running = _runs(asked)
    if counted is None:
        return Backlog(running=running)
    found = counted.found
    paths = [file.path for file in found.take]
    beyond = [one.path for one in found.passed if one.reason is Reason.BEYOND_BATCH]
    places = {name: place for place, name in enumerate(paths + beyond, start=1)}
    trigger, seconds = _starts(asked, counted)
    if answer.reason == Reason.TOO_YOUNG.value and answer.stored is not None:
        trigger, seconds = MIN_AGE, _until_old(spot, answer.stored.modified)
    return Backlog(
        position=places.get(path),
        files=len(found.take) + found.left_over,
        counted="source" if counted.whole else "folder",
        in_next_batch=path in paths if counted.whole else None,
        trigger=trigger,
        starts_in_secs=seconds,
        running=running,
    )


def _counted(asked: Asked, spot: SpotCheck, path: str) -> _Counted | None:
    """List the source or, if it has too many names for that, the folder of the file."""
    most = asked.most_names
    found = spot.below("", most)
    if found is not None:
        return _Counted(found, whole=True)
    folder = path.rpartition("/")[0]
    found = spot.below(folder, most) if folder else None
    return None if found is None else _Counted(found, whole=False)


def _starts(asked: Asked, counted: _Counted) -> tuple[str | None, float | None]:
    """Return what starts the batch at the latest, and in how many seconds; 0 where it is due."""
    found, policy = counted.found, asked.settings.sink.rolling
    now = asked.clock.now()
    if not found.take:
        return None, None
    waiting = Arrivals().waiting(found.take, more=bool(found.left_over), now=now)
    if len(asked.settings.sources) > 1 or not counted.whole:
        # Files that are not counted here may still come; how long the first one waits is sure.
        policy = replace(policy, inactivity=inf)
    by = starts_by(waiting, policy, now=now)
    due = should_start(
        waiting,
        policy,
        parallelism=asked.parallelism,
        now=now,
        forecast=learned(Forecast(), asked.history.last, asked.settings),
    )
    return by.trigger.value, 0.0 if due else by.seconds


def _until_old(spot: SpotCheck, modified: datetime) -> float:
    age = (spot.context.now - modified).total_seconds()
    return max(0.0, spot.lister.source.min_age - age)


def _runs(asked: Asked) -> bool | None:
    if asked.store is None:
        return False
    writer = writer_status(asked.store, asked.settings.name, this_machine())
    if writer is None or writer.state in (Life.ENDED, Life.GONE):
        return False
    return True if writer.state is Life.ALIVE else None
