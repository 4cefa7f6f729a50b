"""Phrases about files, and ways out of failures. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from blizzard.answers.answer import (
    ROWS_LOST,
    Answer,
    CommandPrefix,
    DataFile,
    FailedSource,
    FileRetraction,
    FileState,
    Read,
    Resolution,
    WayOut,
    confirmed,
)
from blizzard.discover.finding import Reason
from blizzard.model.settings import PipelineSettings, RollingPolicy, SourceSettings
from lakebed.deltalog.lineage import RESTORE
from lakebed.deltalog.versions import FORGET, REPAIR
from lakebed.types import OnChange
from lakebed.units import is_are, plural, span, typable

FEW = 3
"""The most files that a sentence names."""
REPLAY = "replay"
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


# ----------------------------------------------------------------------------- rows and lines


def lines(answer: Answer) -> str:
    """Name how many lines, or records, were read."""
    word = "line" if all(read.counted == "lines" for read in answer.read) else "record"
    return plural(sum(read.lines for read in answer.read), word)


def row_count(answer: Answer) -> int:
    """Count the rows that the file gave."""
    read = sum(one.rows for one in answer.read)
    return read + sum(one.rows for one in replays(answer))


def present_count(answer: Answer) -> int:
    """Count the rows of the file that are in the table, as far as known."""
    erased = sum(one.rows for one in answer.erased if one.is_done)
    out = (FileState.REMOVED, FileState.DISCARDED)
    removed = sum(one.own_rows or 0 for one in answer.data_files if one.state in out)
    return max(0, row_count(answer) - erased - removed)


def rows_gone(answer: Answer) -> str:
    """Say how many of the rows of a file have been removed: `its rows have` if all."""
    read, left = row_count(answer), present_count(answer)
    if not left:
        return "its rows have" if answer.read else "rows of it have"
    return f"{read - left:,} of its {read:,} rows {'has' if read - left == 1 else 'have'}"


def uncommitted(answer: Answer) -> Iterator[int]:
    """Yield the entries with uncommitted rows of a file."""
    every: list[Read | Resolution] = [*answer.read, *replays(answer)]
    yield from (one.entry for one in every if not one.committed)


def pending(answer: Answer) -> str:
    """Name which rows of a file wait to be committed: those of some entries, or all."""
    every: list[Read | Resolution] = [*answer.read, *replays(answer)]
    waiting = sum(one.rows for one in every if not one.committed)
    is_part = waiting < present_count(answer)
    return plural(waiting, "of its rows is", "of its rows are") if is_part else "is"


def rows_from_lines(answer: Answer) -> str:
    """Name how many rows came from how many lines."""
    return f"{plural(row_count(answer), 'row')} from {lines(answer)}"


def rows_there(answer: Answer) -> str:
    """Say how many rows of a failed file are in the table; empty if not counted."""
    if not answer.read:
        none = "" if answer.earlier_lines else "; no row of it is in the table"
        return rows_of_before(answer) or none
    count = present_count(answer)
    return f"; {plural(count, 'row')} of it {is_are(count)} in the table"


def rows_of_before(answer: Answer) -> str:
    """Say how many rows of a file's previous content are in the table; empty without any."""
    before = answer.replaces_rows
    if before is None:
        return "; rows of its previous content may be in the table"
    if before:
        return f"; {plural(before, 'row')} of its previous content {is_are(before)} in the table"
    return ""


def left_out(answer: Answer) -> str:
    """Count the lines that gave no row."""
    counts = {
        name: sum(getattr(read, name) for read in answer.read)
        for name in ("blank", "filtered", "quarantined")
    }
    return "".join(f", {count:,} {name}" for name, count in counts.items() if count)


def replays(answer: Answer) -> list[Resolution]:
    """Return the replays that count for the file's present state."""
    waits = answer.state is FileState.JOURNALED
    return [one for one in answer.resolved if one.rows and (one.committed or waits)]


def waiting_lines(answer: Answer) -> int:
    """Count the bad lines of a file that still wait in quarantine."""
    dealt_with = sum(one.lines for one in answer.resolved)
    return sum(one.quarantined for one in answer.read) - dealt_with


def bad_lines(answer: Answer) -> str:
    """Describe the quarantined lines of a file and their outcome; empty without any."""
    bad, others = sum(one.quarantined for one in answer.read), ""
    if answer.other_bad_lines > 0:
        which = plural(answer.other_bad_lines, "bad line")
        others = f" {which} of what was read of it before {is_are(answer.other_bad_lines)} waiting."
    if not bad:
        return others
    word = "bad line" if answer.read[0].counted == "lines" else "bad record"
    sentence = f" {plural(bad, word)} of it {'was' if bad == 1 else 'were'} quarantined"
    since, left = list(_since(answer)), waiting_lines(answer)
    if since and left:
        since.append(f"{left:,} {is_are(left)} waiting")
    return f"{sentence}{': ' if since else ''}{', '.join(since)}.{others}"


def _since(answer: Answer) -> Iterator[str]:
    for one in answer.resolved:
        if one.rows:
            yet = "" if one.committed else ", which is not committed yet"
            became = "became a row" if one.rows == 1 else "became rows"
            yield f"{one.rows:,} {became} with entry {one.entry} (replay{yet})"
        if one.filtered:
            yield f"{one.filtered:,} {is_are(one.filtered)} filtered since entry {one.entry}"
        if one.kind != REPLAY:
            how = {"discard": "discarded with", "retract": "given up by the retraction in"}
            were = "was" if one.lines == 1 else "were"
            yield f"{one.lines:,} {were} {how.get(one.kind, 'given up with')} entry {one.entry}"


# ------------------------------------------------------------------------- entries and data files


def numbered(numbers: Iterable[int]) -> str:
    """Name entries by their numbers."""
    every = list(numbers)
    return f"{'entry' if len(every) == 1 else 'entries'} {' and '.join(map(str, every))}"


def entries(answer: Answer) -> str:
    """Name the entries that read the file, and those that replayed lines of it."""
    read, again = numbered(one.entry for one in answer.read), replays(answer)
    return f"{read} and replayed with {numbered(one.entry for one in again)}" if again else read


def in_state(answer: Answer) -> list[DataFile]:
    """Return the data files that have the same state as the file."""
    return [one for one in answer.data_files if one.state is answer.state]


def removal(one: DataFile) -> str:
    """Name who removed a file, and in which version."""
    version = "" if one.removed_version is None else f" in version {one.removed_version}"
    return f"{one.removed_by or 'by an unknown writer'}{version}"


def removals(files: Iterable[DataFile]) -> str:
    """Name who removed files, and in which versions."""
    return "; ".join(sorted({removal(one) for one in files}))


def taken_out(answer: Answer, cli: CommandPrefix) -> tuple[str, *tuple[WayOut, ...]]:
    """Say what other writers did to the rows of a file, with ways out."""
    files = in_state(answer)
    if answer.state is FileState.ALTERED:
        of = "its data file" if len(files) == 1 else "its data files"
        since = (
            f"rows of {of} were rewritten or deleted since: {removals(files)}. Some of its rows "
            "may have been removed by that, and the log does not say which"
        )
        return since, WayOut(advice="`blizzard trace` says where a row of the table came from.")
    gone = rows_gone(answer)
    since = f"{gone} been removed from the table since: {removals(files)}"
    if all(one.removed_by == FORGET for one in files):
        # No earlier version of this log has them.
        since = f"the log lost that; {gone} been left out of the table: {removals(files)}"
        return since, WayOut(advice="Read the file again.", commands=replacing(answer, cli))
    if all((one.removed_by or "").startswith(REPAIR) for one in files):
        # The data files were gone before, so no earlier version shows the rows.
        return since, read_again(answer, cli)
    versions = sorted({one.removed_version for one in files if one.removed_version is not None})
    accept = (f"{cli.blizzard} audit --accept {one} --reason TEXT" for one in versions)
    ways = [TIME_TRAVEL, WayOut(advice="Accept it if it was intended.", commands=(*accept,))]
    taken = answer.retraction
    # penguin puts no rows back beside those that they replaced.
    is_beside = taken is not None and taken.replaced and taken.came_back
    if any((one.removed_by or "").startswith(RESTORE) for one in files) and not is_beside:
        advice = "Put back what the RESTORE removed."
        ways.insert(1, WayOut(advice=advice, commands=confirmed(f"{cli.penguin} replay")))
    return since, *ways


TIME_TRAVEL = WayOut(advice="Time travel to an earlier version shows them, until VACUUM.")


def holders(files: list[DataFile]) -> str:
    """Name the files that hold rewritten rows now, as a sentence; empty if unknown."""
    now = sorted({one.replaced_by for one in files if one.replaced_by is not None})
    more = f" and {len(now) - FEW:,} more" if len(now) > FEW else ""
    return f" The rows are in {', '.join(now[:FEW])}{more} now." if now else ""


# ------------------------------------------------------------------- retractions and replacements


def not_applied(answer: Answer, taken: FileRetraction, cli: CommandPrefix) -> tuple[str, WayOut]:
    """Say that a replacement was rejected, with a way out."""
    old = ", ".join(taken.others) or "the old content"
    where = f"{plural(taken.rows, 'row')} of {old} {'stays' if taken.rows == 1 else 'stay'}"
    if taken.is_altered:
        where = f"Other writers have rewritten the data files of {old}, so some of its rows may "
        where += "be gone; the others stay"
    where += " in the table, and no row"
    if taken.is_out:
        where = f"No row of {old} is still in the table, and none"
    sentence = (
        f"The replacement was not applied: its new content was read with entry {taken.entry} to "
        f"replace {old}, and penguin rejected that entry"
        f"{because(taken.reasons)}. {where} of the new content is in it."
    )
    return sentence, WayOut(
        advice="Replace them again, which works if they can still be distinguished.",
        commands=replacing(answer, cli, taken.others),
    )


def because(reasons: tuple[str, ...]) -> str:
    """Return the reasons in parentheses; empty if unknown."""
    more = f"; and {len(reasons) - FEW:,} more" if len(reasons) > FEW else ""
    return f" ({'; '.join(reasons[:FEW])}{more})" if reasons else ""


def replaced(taken: FileRetraction) -> str:
    """Name what new content replaces."""
    return ", ".join(taken.others) or "its earlier content"


def until_then(answer: Answer) -> str:
    """Say which rows are in the table until a replacement is committed; else empty."""
    taken = answer.retraction
    if taken is None or taken.committed or taken.is_out or not (taken.replaced and taken.rows):
        return ""
    are = is_are(taken.rows)
    return f" Until then {plural(taken.rows, 'row')} of {replaced(taken)} {are} in the table."


def erased(one: FileRetraction) -> str:
    """Describe an erasure of rows of a file."""
    rows = plural(one.rows, "of its rows was", "of its rows were")
    entry = f"entry {one.entry}{'' if one.pipeline is None else f' of pipeline {one.pipeline}'}"
    if one.rejected:
        return f"The erasure of {plural(one.rows, 'row')} of it in {entry} had no effect."
    if one.came_back:
        return f"{rows} erased in {entry}, and came back with earlier data files."
    if not one.committed:
        rows = plural(one.rows, "of its rows is", "of its rows are")
        return f"{rows} to be erased by {entry}, which is not committed yet."
    until = ""
    if one.deleted_from is not None:
        until = f"; VACUUM does not delete the old files before {one.deleted_from:%Y-%m-%d %H:%M}"
    return f"{rows} erased in {entry}{until}."


def earlier(answer: Answer) -> str:
    """Describe what was read of the file under an earlier journal; else empty."""
    which = plural(answer.earlier_lines, "line of it was", "lines of it were")
    return (
        f" {which} read under an earlier journal; their rows are in the table, but counted only in "
        "that journal."
        if answer.earlier_lines
        else ""
    )


def read_before(answer: Answer) -> str:
    """Describe what was read under the same name as other objects; else empty."""
    by = answer.taken_back_by
    going = [one for one in answer.read_before if by is not None and one.entry < by]
    staying = [one for one in answer.read_before if one not in going]
    return _beside(going, f" until entry {by} is committed, which takes that out") + _beside(
        staying
    )


def _beside(reads: list[Read], until: str = "") -> str:
    rows = sum(one.rows for one in reads)
    if not rows:
        return ""
    numbers = numbered(one.entry for one in reads)
    return (
        f" {plural(rows, 'row')} of other content that had its name before, read with {numbers}, "
        f"{'stays' if rows == 1 else 'stay'} beside it{until}."
    )


# --------------------------------------------------------------------------------------- waiting


def waits(answer: Answer, source: SourceSettings, policy: RollingPolicy, now: datetime) -> str:
    """Describe what a file waits for."""
    if answer.reason == Reason.TOO_YOUNG.value and answer.stored is not None:
        left = source.min_age - (now - answer.stored.modified).total_seconds()
        return (
            f"It is waiting: it is younger than min_age_secs ({source.min_age:g}), so it may still "
            f"be written to. It is old enough in {span(max(1.0, left))}."
        )
    again = ""
    if answer.reason == Reason.CHANGED.value:
        again = f" It {'was read' if answer.failure is None else 'failed'} before, "
        again += "and is another object now."
        if answer.read and source.on_change is OnChange.REPLACE:
            again += " Its rows are taken out of the table with the commit that has the new ones."
        elif answer.read:
            again += " The rows of the previous object stay in the table, too."
    return (
        "It is waiting for a batch. One starts as soon as enough files are waiting, no new one has "
        f"come for inactivity_timeout_secs ({policy.inactivity:g}), or the first has waited for "
        f"rollover_timeout_secs ({policy.rollover:g}); with --once it starts right away.{again}"
    )


def ways_of_waiting(cli: CommandPrefix, *, running: bool | None) -> tuple[WayOut, ...]:
    """Return what to do about a waiting file; nothing while blizzard runs."""
    if running:
        return ()
    if running is None:
        advice = "Make sure that blizzard still runs on the machine that the status names."
        return (WayOut(advice=advice, commands=(f"{cli.blizzard} status",)),)
    advice = "Start blizzard: none is running for this pipeline."
    return (WayOut(advice=advice, commands=(cli.start("blizzard"),)),)


def moment(at: datetime) -> str:
    """Format a time in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
