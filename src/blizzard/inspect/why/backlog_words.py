"""What a source file waits for, in plain words. Pure."""

from blizzard.discover.skip_reason import Reason
from blizzard.inspect.why.answer import Answer, Backlog
from blizzard.model.settings import SourceSettings
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
