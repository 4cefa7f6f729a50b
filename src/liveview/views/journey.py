"""The way of one source file, from the answer of `blizzard why`. Pure."""

from collections.abc import Iterator
from datetime import datetime

from blizzard.answers.answer import Answer
from blizzard.answers.lifecycle import PART_READ, REDO, FileState
from lakebed.units import in_words, plural
from liveview.details import Journey, Step
from liveview.model import rfc3339

BAD = {
    FileState.FAILED,
    FileState.HELD,
    FileState.DISCARDED,
    FileState.SKIPPED,
    FileState.MISSING,
    FileState.CHANGED,
    FileState.ELSEWHERE,
}
WAITS = {
    (FileState.WAITING, PART_READ): "the rest of it waits to be read",
    (FileState.WAITING, REDO): "waits to be read again",
    (FileState.WAITING, None): "waits to be read",
    (FileState.JOURNALED, None): "waits to be committed to the table",
}


def journey_of(answer: Answer, *, quotes: bool = True) -> Journey:
    """Return the way of a file, step by step.

    Without `quotes` only the code of a failure is shown: its message may hold values.
    """
    read = bool(answer.read)
    return Journey(
        path=answer.path or answer.uri,
        answer=answer.answer if quotes or answer.failure is None else _plainly(answer),
        state=answer.state,
        way_out="; ".join(answer.next) or None,
        steps=list(_steps(answer, quotes=quotes)),
        rows=sum(one.rows for one in answer.read) if read else None,
        bad_lines=sum(one.quarantined for one in answer.read) if read else None,
    )


def _steps(answer: Answer, *, quotes: bool) -> Iterator[Step]:
    if answer.stored is not None:
        size = in_words(answer.stored.size)
        yield _done(answer.stored.modified, "arrived in the source", size)
    for read in answer.read:
        counts = (
            ("blank", read.blank),
            ("passed over", read.filtered),
            ("bad, set aside", read.quarantined),
        )
        more = "".join(f", {count:,} {name}" for name, count in counts if count)
        lines = plural(read.lines, read.counted[:-1])
        rows = plural(read.rows, "row")
        yield _done(read.at, f"read and journaled in entry {read.entry}", f"{lines}{more}, {rows}")
        if read.committed:
            version = "" if read.version is None else f" as version {read.version}"
            yield _done(read.committed_at, f"committed to the table{version}", None)
    for one in answer.resolved:
        lines = plural(one.lines, "bad line")
        yield _done(one.at, f"{one.kind} of {lines} in entry {one.entry}", None)
    for taken in (*answer.erased, *((answer.retraction,) if answer.retraction else ())):
        rows = plural(taken.rows, "row")
        yield _done(taken.at, f"{rows} taken out of the table in entry {taken.entry}", None)
    failure = answer.failure
    if failure is not None:
        attempts = plural(failure.attempts, "attempt")
        yield Step(
            at=rfc3339(failure.failed_at),
            what=f"failed ({failure.code})",
            detail=f"{failure.message}; {attempts}" if quotes else attempts,
            state="bad",
        )
        if failure.next_try is not None:
            yield Step(
                at=rfc3339(failure.next_try), what="is tried again", detail=None, state="next"
            )
    elif answer.state in BAD:
        yield Step(at=None, what=_words(answer), detail=answer.detail, state="bad")
    waits = WAITS.get((answer.state, answer.reason)) or WAITS.get((answer.state, None))
    if waits is not None:
        is_refused = answer.state is FileState.WAITING and answer.detail is not None
        idle = "no blizzard is running" if answer.running is False else None
        detail = answer.detail if is_refused else idle
        yield Step(at=None, what=waits, detail=detail, state="bad" if is_refused else "now")


def _plainly(answer: Answer) -> str:
    code = "" if answer.failure is None else answer.failure.code
    return f"It failed and is not in the table, or not all of it: {code}."


def _words(answer: Answer) -> str:
    reason = "" if answer.reason is None else f" ({answer.reason})"
    return f"{answer.state.value.replace('_', ' ')}{reason}"


def _done(at: datetime | None, what: str, detail: str | None) -> Step:
    return Step(at=None if at is None else rfc3339(at), what=what, detail=detail, state="done")
