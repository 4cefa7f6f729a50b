"""What a source file waits for, and how many files wait with it."""

from dataclasses import dataclass, replace
from datetime import datetime
from math import inf

from blizzard.discover.finding import Finding
from blizzard.discover.skip_reason import Reason
from blizzard.discover.spot_check import SpotCheck
from blizzard.inspect.why.answer import Answer, Backlog
from blizzard.inspect.why.asked import Asked
from blizzard.journal.lease_record import Life, this_machine, writer_status
from blizzard.model.source.forecast import Forecast
from blizzard.plan.timing import learned
from blizzard.plan.trigger import Arrivals, should_start, starts_by

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
    age = (spot.now - modified).total_seconds()
    return max(0.0, spot.lister.source.min_age - age)


def _runs(asked: Asked) -> bool | None:
    if asked.store is None:
        return False
    writer = writer_status(asked.store, asked.settings.name, this_machine())
    if writer is None or writer.state in (Life.ENDED, Life.GONE):
        return False
    return True if writer.state is Life.ALIVE else None
