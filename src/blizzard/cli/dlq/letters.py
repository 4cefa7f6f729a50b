"""The dead letter queue of a pipeline, for a person."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from blizzard.answers.dead_letters import DeadLetterQueue, FailedLetter
from blizzard.handoff.dead_letters import DeadLetter
from lakebed.terminal.console import Line, Table, first
from lakebed.units import is_are, plural

FEW = 10
"""How many lost files are named; as JSON, all."""
Letters = tuple[DeadLetter, ...]


def letter_lines(
    queue: DeadLetterQueue, letters: Letters, uris: Mapping[str, str], *, every: bool
) -> Iterator[Line]:
    """Yield what failed, the newest first, and which files are lost.

    `letters` are those to show; `uris` are those of the sources, by name.
    """
    yield from _inherited(queue)
    if letters:
        yield from _failures(queue, letters, uris, every=every)
    elif queue.letters or queue.unread:
        yield f"pipeline {queue.pipeline}: no file is in a failed state now{_over(queue, every)}"
    elif not queue.lost:
        since = " under this journal" if queue.inherited else ""
        yield f"pipeline {queue.pipeline}: no failures{since}"
    yield from _lost(queue)


def _inherited(queue: DeadLetterQueue) -> Iterator[str]:
    if queue.inherited:
        files, them = plural(queue.inherited, "file"), "it" if queue.inherited == 1 else "them"
        yield (
            f"pipeline {queue.pipeline}: {files} failed under the earlier journal and "
            f"{is_are(queue.inherited)} not below; blizzard files --state failed lists {them}, "
            "blizzard why says more"
        )


def _over(queue: DeadLetterQueue, every: bool) -> str:
    if every or not queue.over:
        return ""
    failures = plural(queue.over, "earlier failure is", "earlier failures are")
    return f"; {failures} over, and --all lists {'it' if queue.over == 1 else 'them'} too"


def _failures(
    queue: DeadLetterQueue, letters: Letters, uris: Mapping[str, str], *, every: bool
) -> Iterator[Line]:
    below = f", below {uris[letters[0].source]}" if _is_one(letters, uris) else ""
    failures = f"{plural(len(letters), 'failure')}, the newest first"
    yield f"pipeline {queue.pipeline}: {failures}{below}{_over(queue, every)}"
    yield Table(
        ("stage", "code", ">line", "message", *(("now",) if every else ()), ">retries", "path"),
        [
            (
                letter.stage,
                letter.code,
                "" if letter.line is None else str(letter.line),
                f"{'' if letter.field is None else f'{letter.field}: '}{letter.error}",
                *([] if failed is None else [_now(failed)]),
                letter.retry_count,
                _named(letter, uris, alone=bool(below)),
            )
            for letter, failed in zip_longest(letters, queue.failures if every else ())
        ],
    )


def _lost(queue: DeadLetterQueue) -> Iterator[str]:
    """Yield the files that no run can read any more, with the way out."""
    if not queue.lost:
        return
    count = len(queue.lost)
    files = plural(count, "file is lost, it", "files are lost, they")
    were, days, them = (
        ("was", "its day stays", "it") if count == 1 else ("were", "their days stay", "them")
    )
    yield (
        f"pipeline {queue.pipeline}: {files} failed and {were} deleted from the source, and {days} "
        "open until somebody decides:"
    )
    yield from first(
        [f"{one.path}{'' if one.code is None else f' [{one.code}]'}" for one in queue.lost], FEW
    )
    yield (
        f"  put {them} back, or run blizzard dlq discard PATH --yes (--deleted instead of PATH for "
        "all)"
    )


def _now(failed: FailedLetter) -> str:
    """Return the state of a failed file as `blizzard files` prints it."""
    more = ", deleted" if failed.deleted else " again" if failed.repeated else ""
    return f"{failed.state.value}{more}"


def _is_one(letters: Letters, uris: Mapping[str, str]) -> bool:
    """Whether all of the files are below the same source, as it is configured now."""
    return len({letter.source for letter in letters}) == 1 and all(
        letter.path.startswith(_root(letter, uris)) for letter in letters
    )


def _named(letter: DeadLetter, uris: Mapping[str, str], *, alone: bool) -> str:
    """Return a file as `blizzard dlq retry` and the others take it, so that it can be copied."""
    root = _root(letter, uris)
    if not letter.path.startswith(root):
        return letter.path  # Its source has moved, or is not configured any more.
    path = letter.path.removeprefix(root)
    return path if alone else f"{letter.source}:{path}"


def _root(letter: DeadLetter, uris: Mapping[str, str]) -> str:
    return f"{uris.get(letter.source, '').rstrip('/')}/"
