"""What has become of the bad lines of a source file since they were set aside."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from blizzard.inspect.why.answer import Answer, Resolution, Retraction
from blizzard.inspect.why.entries import dealing_with_lines
from blizzard.inspect.why.standing import Table
from lakebed.documents.entry import Entry
from lakebed.documents.quarantine_file import QuarantineFile
from lakebed.units import is_are, plural

REPLAY = "replay"
GIVEN_UP = {
    "discard": "discarded with",
    "retract": "given up by the retraction in",
}


def resolutions(
    table: Table, parts: Sequence[Entry], key: str
) -> Iterator[tuple[Entry, Resolution]]:
    """Yield the entries that dealt with bad lines of a file, in order, and how many lines.

    A quarantine file says how many lines of each source file it has; so does the one that takes
    its place with the lines that go on waiting. The difference is what was dealt with.
    """
    waiting: dict[str, QuarantineFile] = {
        file.filename: file for entry in parts for file in entry.quarantine if _lines(file, key)
    }
    if not waiting:
        return
    for entry in dealing_with_lines(table.journal, parts[0].sequence + 1, table.last):
        lines = filtered = 0
        for one in entry.resolved:
            before = waiting.pop(one.old, None)
            if before is None:
                continue
            lines += _lines(before, key) - _lines(one.left, key)
            filtered += one.filtered.get(key, 0)
            if one.left is not None:
                waiting[one.left.filename] = one.left
        if lines:
            told = table.committed(entry)
            yield (
                entry,
                Resolution(
                    entry=entry.sequence,
                    kind=entry.kind,
                    at=datetime.fromisoformat(entry.created),
                    lines=lines,
                    filtered=filtered,
                    rows=lines - filtered if entry.kind == REPLAY else 0,
                    version=None if told.version is None else told.version.version,
                    committed=told.committed,
                ),
            )


def waiting_lines(answer: Answer) -> int:
    """Count the bad lines of a file that are waiting in quarantine."""
    dealt_with = sum(one.lines for one in answer.resolved)
    return sum(one.quarantined for one in answer.read) - dealt_with


def bad_lines_in_words(answer: Answer) -> str:
    """Return what was set aside of a file and what has become of it; empty where nothing was."""
    bad = sum(one.quarantined for one in answer.read)
    others = ""
    if answer.other_bad_lines > 0:
        which = plural(answer.other_bad_lines, "bad line")
        others = f" {which} of what was read of it before "
        others += f"{is_are(answer.other_bad_lines)} waiting."
    if not bad:
        return others
    word = "bad line" if answer.read[0].counted == "lines" else "bad record"
    sentence = f" {plural(bad, word)} of it {'was' if bad == 1 else 'were'} set aside"
    told = list(_since(answer))
    left = waiting_lines(answer)
    if told and left:
        told.append(f"{left:,} {is_are(left)} waiting")
    return f"{sentence}{': ' if told else ''}{', '.join(told)}.{others}"


def _since(answer: Answer) -> Iterator[str]:
    for one in answer.resolved:
        if one.rows:
            yet = "" if one.committed else ", which is not committed yet"
            became = "became a row" if one.rows == 1 else "became rows"
            yield f"{one.rows:,} {became} with entry {one.entry} (replay{yet})"
        if one.filtered:
            yield f"{one.filtered:,} {is_are(one.filtered)} passed over since entry {one.entry}"
        if one.kind != REPLAY:
            given_up = "was" if one.lines == 1 else "were"
            how = GIVEN_UP.get(one.kind, "given up with")
            yield f"{one.lines:,} {given_up} {how} entry {one.entry}"


def _lines(file: QuarantineFile | None, key: str) -> int:
    return 0 if file is None else sum(one.lines for one in file.sources if one.source == key)


def erased_in_words(one: Retraction) -> str:
    """Return what an erasure took of a file, in a sentence."""
    rows = plural(one.rows, "of its rows was", "of its rows were")
    if one.passed_over:
        return f"The erasure of {plural(one.rows, 'row')} of it in entry {one.entry} had no effect."
    if one.came_back:
        return f"{rows} erased in entry {one.entry}, and came back with data files of before."
    if not one.committed:
        rows = plural(one.rows, "of its rows is", "of its rows are")
        return f"{rows} to be erased by entry {one.entry}, which is not committed yet."
    until = ""
    if one.deleted_from is not None:
        until = f"; VACUUM does not delete the old files before {one.deleted_from:%Y-%m-%d %H:%M}"
    return f"{rows} erased in entry {one.entry}{until}."
