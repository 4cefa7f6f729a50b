"""Phrases about files, and ways out of failures. Pure."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from blizzard.answers.answer import (
    ROWS_LOST,
    Answer,
    CommandPrefix,
    DataFile,
    FailedSource,
    FileState,
    WayOut,
    confirmed,
)
from blizzard.model.settings import PipelineSettings
from lakebed.units import plural, typable

QUARANTINE = "error_handling:\n  on_bad_record: quarantine"
RIGHT_AWAY = "or right away with this command"
PART_WAY = (
    "A part of it is in the table. Fix the schema, or the file behind that part; then read the "
    "other lines."
)
ADVICE = {
    "partial_file_changed": "A part of it is in the table, and it is another object now, or one "
    "that is read otherwise. The list has the ways out.",
    "decompress_failed": f"Upload it again, complete: it is read when it changes, {RIGHT_AWAY}.",
    "partial_file_gone": "A part of it is in the table, and it is gone from its source. Put it "
    "back as it was, and the rest is read; or give up the rest.",
    "lines_miscounted": "blizzard or the machine is at fault, not the file. Read it again.",
    "partition_unknown": "Move it into the folder of its partition, where it is read.",
    "too_many_bad_lines": "Fix the file or the schema, or raise error_handling.max_bad_records or "
    f"max_bad_ratio: it is read again when one of them changes, {RIGHT_AWAY}.",
}
"""Advice on failures by code; all other codes share one advice."""


def quarantine_hint(settings: PipelineSettings, lines: Iterable[int | None]) -> str | None:
    """Suggest quarantine if bad lines fail whole files; None if it would not help.

    `lines` has the failing line of each failed file, or None if the file failed as a whole.
    """
    count = sum(line is not None for line in lines)
    if not count or settings.quarantine is not None:
        return None
    return (
        f"{plural(count, 'file')} failed by a bad line; error_handling.on_bad_record: quarantine "
        "would quarantine bad lines and read the others"
    )


def key_of(answer: Answer) -> str:
    """Return the unique name of a source file: `source:path`."""
    return f"{answer.source}:{answer.path}"


def way_out(
    code: str, key: str, cli: CommandPrefix, *, partly_read: bool, bad_line: bool = False
) -> WayOut:
    """Return what to do about a failed file.

    `partly_read`: some of its lines are in the table. `bad_line`: a single line failed it, which
    could have been quarantined instead.
    """
    retry, advice = _retry_of(key, cli), ADVICE.get(code)
    if code == "partition_unknown":
        return WayOut(advice=advice)
    if code == "partial_file_changed":
        return WayOut(advice=advice, commands=(f"{cli.blizzard} dlq list",))
    if code == "partial_file_gone":
        discard = f"{cli.blizzard} dlq discard {typable(key)}"
        return WayOut(advice=advice, commands=confirmed(discard))
    if advice is not None:
        return WayOut(advice=advice, commands=(retry,))
    if partly_read:
        return WayOut(advice=PART_WAY, commands=(f"{retry} --same-lines",))
    advice = f"Fix the file or the schema: it is read again when either changes, {RIGHT_AWAY}."
    if bad_line:
        advice += " This setting quarantines bad lines and reads the others."
    return WayOut(advice=advice, yaml=QUARANTINE if bad_line else None, commands=(retry,))


def of_failed(
    failed: FailedSource, key: str, settings: PipelineSettings, cli: CommandPrefix
) -> WayOut:
    """Return what to do about a failed file, as shown everywhere."""
    if failed.next_try is not None:
        return WayOut(advice="Read it right away.", commands=(_retry_of(key, cli),))
    bad_line = failed.line is not None and settings.quarantine is None
    partly_read = bool(failed.lines_in_table)
    return way_out(failed.code, key, cli, partly_read=partly_read, bad_line=bad_line)


def _retry_of(key: str, cli: CommandPrefix) -> str:
    return f"{cli.blizzard} dlq retry --file {typable(key)}"


def of_lost(cli: CommandPrefix, key: str | None = None) -> WayOut:
    """Return what to do about one file, or all files, deleted before they were read."""
    which = "--deleted" if key is None else typable(key)
    advice = "Put it back, or give it up." if key else "Put them back, or give them up."
    return WayOut(advice=advice, commands=confirmed(f"{cli.blizzard} dlq discard {which}"))


def read_again(answer: Answer, cli: CommandPrefix) -> WayOut:
    """Return how to read a file again whose data files will not come back."""
    key = typable(key_of(answer))
    is_lost = any(one.code == ROWS_LOST for one in in_state(answer))
    command = f"retract {key} --replace {key}" if is_lost else f"redo --file {key}"
    return WayOut(advice="Read the file again.", commands=confirmed(f"{cli.blizzard} {command}"))


def replacing(answer: Answer, cli: CommandPrefix, others: Sequence[str] = ()) -> tuple[str, str]:
    """Return the commands that replace the old rows of a file, or of others, with its content."""
    new = key_of(answer)
    old = " ".join(map(typable, others or (new,)))
    return confirmed(f"{cli.blizzard} retract {old} --replace {typable(new)}")


# ------------------------------------------------------------------------ rows, entries, data files


def row_count(answer: Answer) -> int:
    """Count the rows that the file gave, as far as they are for its present state."""
    waits = answer.state is FileState.JOURNALED
    again = sum(one.rows for one in answer.resolved if one.committed or waits)
    return sum(one.rows for one in answer.read) + again


def present_count(answer: Answer) -> int:
    """Count the rows of the file that are in the table, as far as known."""
    erased = sum(one.rows for one in answer.erased if one.is_done)
    out = (FileState.REMOVED, FileState.DISCARDED)
    removed = sum(one.own_rows or 0 for one in answer.data_files if one.state in out)
    return max(0, row_count(answer) - erased - removed)


def lines(answer: Answer) -> str:
    """Name how many lines, or records, were read."""
    word = "line" if all(read.counted == "lines" for read in answer.read) else "record"
    return plural(sum(read.lines for read in answer.read), word)


def entries(answer: Answer) -> str:
    """Name the entries that read the file, and those that replayed lines of it."""
    again = numbered(one.entry for one in answer.resolved if one.rows)
    read = numbered(one.entry for one in answer.read)
    return f"{read} and replayed with {again}" if again else read


def numbered(numbers: Iterable[int]) -> str:
    """Name entries by their numbers; empty without any."""
    every = list(map(str, numbers))
    return f"{'entry' if len(every) == 1 else 'entries'} {' and '.join(every)}" if every else ""


def in_state(answer: Answer) -> list[DataFile]:
    """Return the data files that have the same state as the file."""
    return [one for one in answer.data_files if one.state is answer.state]


def removals(files: Iterable[DataFile]) -> str:
    """Name who removed files, and in which versions."""
    return "; ".join(sorted({removal(one) for one in files}))


def removal(one: DataFile) -> str:
    """Name who removed a file, and in which version."""
    version = "" if one.removed_version is None else f" in version {one.removed_version}"
    return f"{one.removed_by or 'by an unknown writer'}{version}"


def moment(at: datetime) -> str:
    """Format a time in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
