"""What a source file waits for, and how many files wait with it."""

from dataclasses import replace
from datetime import timedelta

from blizzard.discover.finding import Finding
from blizzard.discover.skip_reason import Reason
from blizzard.inspect.explain import look_at
from blizzard.inspect.why.answer import Backlog
from blizzard.inspect.why.asked import Asked
from blizzard.journal.lease_record import Life, this_machine, writer_status
from blizzard.model.locations import source_location
from blizzard.model.settings import SourceSettings
from blizzard.plan.trigger import Arrivals, should_start, starts_by


def backlog_of(asked: Asked, source: SourceSettings, path: str, reason: str | None) -> Backlog:
    """Return where a file stands among those that wait; its source is listed for that."""
    found = look_at(
        asked.settings, source, asked.open_reader, asked.history, asked.store, clock=asked.clock
    )
    paths = [file.path for file in found.take]
    beyond = [one.path for one in found.passed if one.reason is Reason.BEYOND_BATCH]
    position = next(
        (place for place, name in enumerate(paths + beyond, start=1) if name == path), None
    )
    trigger, seconds = _starts(asked, found)
    if reason == Reason.TOO_YOUNG.value:
        trigger, seconds = "min_age", _until_old(asked, source, path)
    return Backlog(
        position=position,
        files=len(found.take) + found.left_over,
        in_next_batch=path in paths,
        trigger=trigger,
        starts_in_secs=seconds,
        running=_runs(asked),
    )


def _starts(asked: Asked, found: Finding) -> tuple[str | None, float | None]:
    """Return what starts the batch at the latest, and in how many seconds; None where it is due."""
    now, policy = asked.clock.now(), asked.settings.sink.rolling
    if not found.take:
        return None, None
    waiting = Arrivals().waiting(found.take, more=bool(found.left_over), now=now)
    if len(asked.settings.sources) > 1:
        # Files of other sources may come; how long the first one waits is sure all the same.
        policy = replace(policy, inactivity=float("inf"))
    if should_start(waiting, policy, parallelism=asked.parallelism, now=now):
        return None, None
    by = starts_by(waiting, policy, now=now)
    return by.trigger.value, by.seconds


def _until_old(asked: Asked, source: SourceSettings, path: str) -> float | None:
    place = asked.open_reader(source_location(source))
    facts = place.head(path)
    if facts is None:
        return None
    age = (asked.clock.now() - facts.modified) / timedelta(seconds=1)
    return max(0.0, source.min_age - age)


def _runs(asked: Asked) -> bool | None:
    if asked.store is None:
        return False
    writer = writer_status(asked.store, asked.settings.name, this_machine())
    if writer is None or writer.state in (Life.ENDED, Life.GONE):
        return False
    return True if writer.state is Life.ALIVE else None
