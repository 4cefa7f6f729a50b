"""Parts of sentences about a source file. Pure."""

from datetime import UTC, datetime

from blizzard.answers.answer import Answer, DataFile, Read, Resolution, Retraction
from blizzard.answers.lifecycle import FileState
from blizzard.answers.table_log import REPAIR
from lakebed.units import is_are, plural

FEW = 3
"""How many files a sentence names."""


def in_state(answer: Answer) -> list[DataFile]:
    """Return the data files to which the file owes its state."""
    return [one for one in answer.data_files if one.state is answer.state]


def rows_from_lines(answer: Answer) -> str:
    """Name how many rows came from how many lines."""
    return f"{rows(answer)} from {lines(answer)}"


def entries(answer: Answer) -> str:
    """Name the entries that read the file, and those that replayed lines of it."""
    read = numbered([one.entry for one in answer.read])
    again = [one.entry for one in replays(answer)]
    return f"{read} and replayed with {numbered(again)}" if again else read


def numbered(numbers: list[int]) -> str:
    """Name entries by their numbers."""
    return f"{'entry' if len(numbers) == 1 else 'entries'} {' and '.join(map(str, numbers))}"


def removals(files: list[DataFile]) -> str:
    """Name who removed files, and in which versions."""
    told = {
        f"{one.removed_by or 'by whom is not known any more'}"
        + (f" in version {one.removed_version}" if one.removed_version is not None else "")
        for one in files
    }
    return "; ".join(sorted(told))


def taken_out(answer: Answer) -> tuple[str, str]:
    """Return what other writers have done to the rows of a file, and how to learn more."""
    files = in_state(answer)
    if answer.state is FileState.ALTERED:
        word = "its data file was" if len(files) == 1 else "its data files were"
        since = (
            f"{word} rewritten since: {removals(files)}. Some of its rows may have been removed "
            "by that, and the log does not say which"
        )
        return since, "blizzard trace says where a row of the table came from"
    since = f"its rows have been removed from the table since: {removals(files)}"
    if all((one.removed_by or "").startswith(REPAIR) for one in files):
        # The data files were gone before, so no earlier version shows the rows.
        return since, f"blizzard redo --file {answer.path} has it read again"
    return (
        since,
        "time travel to an earlier version shows them, until VACUUM",
    )


def not_applied(path: str | None, taken: Retraction) -> tuple[str, str]:
    """Return that new content did not come in the place of other rows, and what to do."""
    old = ", ".join(taken.others) or "the old content"
    stay = "stays" if taken.rows == 1 else "stay"
    where = f"{plural(taken.rows, 'row')} of {old} {stay} in the table, and no row"
    if taken.is_out:
        where = f"No row of {old} is in the table any more, and none"
    sentence = (
        f"The replacement was not applied: its new content was read with entry {taken.entry} to "
        f"take the place of {old}, and penguin had to pass that entry over"
        f"{because(taken.reasons)}. {where} of the new content is in it."
    )
    names = " ".join(taken.others) or path
    return sentence, (
        f"run blizzard retract {names} --replace {path} again, which replaces them if they can "
        "still be told apart"
    )


def replaced(taken: Retraction) -> str:
    """Name what new content comes in the place of."""
    return ", ".join(taken.others) or "its earlier content"


def until_then(answer: Answer) -> str:
    """Return which rows are in the table until new content is, in a sentence; else empty."""
    taken = answer.retraction
    if taken is None or taken.committed or not (taken.replaced and taken.rows):
        return ""
    are = is_are(taken.rows)
    return f" Until then {plural(taken.rows, 'row')} of {replaced(taken)} {are} in the table."


def some_lost(files: list[DataFile]) -> str:
    """Say of which files rows were removed, or perhaps were."""
    have = "may have" if any(one.state is FileState.ALTERED for one in files) else "have"
    return f" Some of its rows {have} been removed since: {removals(files)}."


def holders(files: list[DataFile]) -> str:
    """Name the files that have the rows of others now, in a sentence; empty where it is unknown."""
    now = sorted({one.replaced_by for one in files if one.replaced_by is not None})
    if not now:
        return ""
    more = f" and {len(now) - FEW:,} more" if len(now) > FEW else ""
    return f" The rows are in {', '.join(now[:FEW])}{more} now."


def because(reasons: tuple[str, ...]) -> str:
    """Write why something was not done, in brackets; empty where it is unknown."""
    more = f"; and {len(reasons) - FEW:,} more" if len(reasons) > FEW else ""
    return f" ({'; '.join(reasons[:FEW])}{more})" if reasons else ""


def left_out(answer: Answer) -> str:
    """Count the lines that gave no row."""
    counts = (
        ("blank", sum(read.blank for read in answer.read)),
        ("filtered", sum(read.filtered for read in answer.read)),
        ("quarantined", sum(read.quarantined for read in answer.read)),
    )
    return "".join(f", {count:,} {name}" for name, count in counts if count)


def rows(answer: Answer) -> str:
    """Name how many rows the file has given."""
    return plural(row_count(answer), "row")


def present(answer: Answer) -> str:
    """Name how many rows of the file are in the table, of those that this journal counts."""
    return plural(present_count(answer), "row")


def present_count(answer: Answer) -> int:
    """Count the rows that the file has given, without those that were erased since."""
    erased = sum(one.rows for one in answer.erased if one.is_done)
    return max(0, row_count(answer) - erased)


def rows_there(answer: Answer) -> str:
    """Say how many rows of a file that failed are in the table; empty where nobody counts them."""
    if not answer.read:
        return "" if answer.earlier_lines else "; no row of it is in the table"
    count = present_count(answer)
    return f"; {plural(count, 'row')} of it {is_are(count)} in the table"


def earlier(answer: Answer) -> str:
    """Return what was read of the file under an earlier journal, in a sentence; else empty."""
    before = answer.inherited
    if before is None or not answer.earlier_lines:
        return ""
    which = plural(answer.earlier_lines, "line of it was", "lines of it were")
    return (
        f" {which} read before, under journal {before.journal} of pipeline {before.pipeline}; "
        "their rows are in the table, and only that journal has counted them."
    )


def read_before(answer: Answer) -> str:
    """Return what was read under the same name as other objects, in a sentence; else empty."""
    by = answer.taken_back_by
    going = [one for one in answer.read_before if by is not None and one.entry < by]
    staying = [one for one in answer.read_before if one not in going]
    until = f" until entry {by} is committed, which takes that out"
    return _beside(going, until) + _beside(staying)


def _beside(reads: list[Read], until: str = "") -> str:
    rows = sum(one.rows for one in reads)
    if not rows:
        return ""
    numbers = numbered([one.entry for one in reads])
    return (
        f" {plural(rows, 'row')} of other content that had its name before, read with {numbers}, "
        f"{'stays' if rows == 1 else 'stay'} beside it{until}."
    )


def row_count(answer: Answer) -> int:
    """Count the rows that the file has given."""
    read = sum(one.rows for one in answer.read)
    return read + sum(one.rows for one in replays(answer))


def replays(answer: Answer) -> list[Resolution]:
    """Return the replays whose rows are where the others are."""
    waits = answer.state is FileState.JOURNALED
    return [one for one in answer.resolved if one.rows and (one.committed or waits)]


def lines(answer: Answer) -> str:
    """Name how many lines, or records, were read."""
    word = "line" if all(read.counted == "lines" for read in answer.read) else "record"
    return plural(sum(read.lines for read in answer.read), word)


def file_id(one: DataFile) -> str:
    """Return the id in the name of a data file."""
    return one.path.rpartition("/")[2].removesuffix(".parquet")


def moment(at: datetime) -> str:
    """Write a time."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
