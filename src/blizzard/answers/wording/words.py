"""The sentences of answers about source files, and what to do next. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from blizzard.answers.answer import (
    INHERITED,
    NO_ROWS,
    PART_READ,
    REDO,
    Answer,
    CommandPrefix,
    DataFile,
    FileState,
    WayOut,
    committed_again,
    confirmed,
)
from blizzard.answers.wording import phrases
from blizzard.answers.wording.phrases import ways_of_waiting
from blizzard.discover.finding import Reason
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.layout import file_name
from lakebed.types import CommitMode, OnChange
from lakebed.units import is_are, plural, typable

LOADED_ELSEWHERE = "Unless another program has already loaded it, so reading would double its rows"
WAYS = {
    Reason.NOT_MATCHED: "Change the pattern in source.path, or move the file.",
    Reason.HIDDEN: "Rename the file or the folder so that it does not begin with `_` or `.`.",
    Reason.TEMPORARY: "Let its writer finish and rename it.",
    Reason.NOT_NDJSON: "Rename the file, or end source.path with its suffix, such as *.log.",
    Reason.TOO_OLD: (
        f"{LOADED_ELSEWHERE}: move the file, or raise partition_filter.lookback, which takes "
        "everything in the older folders that it then reaches."
    ),
    Reason.BEYOND_HORIZON: (
        f"{LOADED_ELSEWHERE}: raise or remove sweep_horizon; the next sweep then takes every "
        "unknown file in the folders that it reaches."
    ),
    Reason.LINK: "Replace the link with the file itself.",
    Reason.UNREADABLE: "Let blizzard's user read the file and its folders.",
    Reason.UNUSABLE_NAME: "Rename the file.",
}


FILE_MISSING = "file_missing"
"""The code of a held file whose object is missing."""
SCHEMA_REFUSED = "schema_refused"
"""The code of a held file whose columns do not fit the table."""
NOT_DONE = (FileState.FAILED, FileState.WAITING)
"""States of a file that has yet to be read from its source."""
PUT_BACK = WayOut(advice="Put it back if its rows are wanted; it is then read like a new file.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An answer to put into words, with the context it depends on."""

    answer: Answer
    settings: PipelineSettings
    source: SourceSettings
    now: datetime
    cli: CommandPrefix
    lost: int | None = None
    """The last committed entry by the receipt, if the log has lost its version."""

    @property
    def file(self) -> str:
        """The name of the file, quoted for a shell."""
        return typable(phrases.key_of(self.answer))


Words = tuple[str, *tuple[WayOut, ...]]
"""The sentences, followed by ways out."""


def says(sentence: str, *ways: WayOut) -> Words:
    """Combine a sentence with ways out."""
    return sentence, *ways


def way(advice: str, *commands: str) -> WayOut:
    """Combine advice with commands."""
    return WayOut(advice=advice, commands=commands)


def worded(case: Case) -> Answer:
    """Add the sentence and the next steps to an answer."""
    answer = case.answer
    sentence, *ways = _words_for(case)
    if answer.stored is None and answer.state in NOT_DONE and not answer.gone:
        sentence += " It is not in its source now."
    elif answer.stored is None and answer.read and not answer.gone:
        sentence += " It has left its source since, which does not affect its rows."
    sentence += phrases.earlier(answer) + phrases.read_before(answer)
    sentence += "".join(f" {phrases.erased(one)}" for one in answer.erased)
    if phrases.waiting_lines(answer) or answer.other_bad_lines:
        listed = f"{case.cli.blizzard} dlq list"
        ways.append(way("The list shows the waiting bad lines and their faults.", listed))
    return replace(answer, answer=f"{sentence}{phrases.bad_lines(answer)}", next=tuple(ways))


def _gone(case: Case) -> Words:
    answer, failure = case.answer, case.answer.failure
    if answer.read or answer.earlier_lines:
        return _partial_file_gone(case)
    how = "a part of it was unread" if failure is None else f"it had failed [{failure.code}]"
    gone = f"It is not in its source any more, and {how} when it was deleted"
    if answer.state is FileState.DISCARDED:
        return f"{gone}; an operator has given it up.", PUT_BACK
    rows = phrases.rows_of_before(answer)
    return says(
        f"{gone}: it was never loaded, and its day is not complete{rows}.",
        PUT_BACK,
        way("Or give it up: its day may be complete without it.", *_discard(case)),
    )


def _discard(case: Case) -> tuple[str, str]:
    return confirmed(f"{case.cli.blizzard} dlq discard {case.file}")


def _partial_file_gone(case: Case) -> Words:
    answer = case.answer
    is_given_up = answer.state is FileState.DISCARDED
    rest = "an operator has given up the rest" if is_given_up else "its day is not complete"
    where, rows = "in the table", phrases.present_count(answer)
    if any(one.state is FileState.HELD for one in answer.data_files):
        where, rows = "read, and penguin holds some of them", phrases.row_count(answer)
    elif not all(one.committed for one in answer.read):
        where, rows = "journaled, and not in the table yet", phrases.row_count(answer)
    read = f" {plural(rows, 'row')} from {phrases.lines(answer)} of it {is_are(rows)} {where}."
    discard = way("Or give up the rest: its day may be complete then.", *_discard(case))
    return says(
        f"It disappeared from its source before all of it was read, and {rest}."
        f"{read if answer.read else ''}",
        way("Put it back unchanged if the rest is wanted; reading then continues."),
        *(() if is_given_up else (discard,)),
    )


def _partial(case: Case) -> Words:
    rows = plural(phrases.present_count(case.answer), "row")
    read = f"{phrases.lines(case.answer)} so far, {rows}"
    if not case.answer.read:
        read = "a part of it is in the table"
    return (f"It is being read over several batches: {read}. The next batch continues.",)


def _skipped(case: Case) -> Words:
    answer = case.answer
    reason = Reason(answer.reason or Reason.UNUSABLE_NAME)
    detail = f" ({answer.detail})" if answer.detail else ""
    advice = WAYS.get(reason)
    ways = () if advice is None else (way(advice),)
    return f"It is not read: {reason.words}{detail}.", *ways


def _refused(case: Case) -> Words:
    return says(
        f"It is to be read, but a start would be refused now: "
        f"{case.answer.detail} [{case.answer.reason}].",
        way("A dry run shows whether a change helps.", f"{case.cli.blizzard} --dry-run"),
    )


def _waiting(case: Case) -> Words:
    taken = case.answer.retraction
    if taken is not None and taken.is_not_applied and not taken.others:
        sentence, _way = phrases.not_applied(case.answer, taken, case.cli)
        return sentence, way("The next run tries again.")
    if case.answer.reason == Reason.CHANGED.value and case.source.on_change is OnChange.REPLACE:
        files = case.answer.data_files
        now = "It is another object now, which replaces its earlier rows once"
        if held := [one for one in files if one.state is FileState.HELD]:
            sentence = (
                f"{now} penguin does not hold {plural(len(held), 'data file')} of it any more."
            )
            return sentence, *_release_or_discard(case, held)
        if any(one.state is FileState.JOURNALED for one in files):
            return f"{now} penguin has committed those.", run_penguin(case.cli)
        if out := [one for one in files if one.state is FileState.REMOVED and one.sources > 1]:
            gone = replace(case.answer, state=FileState.REMOVED)
            _since, *ways = phrases.taken_out(gone, case.cli)
            shared = f"{plural(len(out), 'data file')} that it shares with others"
            by = f"{is_are(len(out))} back in the table, or that loss is accepted"
            return f"{now} {shared} {by}: {phrases.removals(out)}.", *ways
    policy, running = case.settings.sink.rolling, case.answer.running
    sentence = phrases.waits(case.answer, case.source, policy, case.now)
    return sentence, *ways_of_waiting(case.cli, running=running)


def _failed(case: Case) -> Words:
    answer, failure = case.answer, case.answer.failure
    if failure is None or (answer.detail is not None and failure.code != answer.reason):
        code = answer.reason or ""
        return says(
            f"It cannot be read: {answer.detail} [{code}]{phrases.rows_there(answer)}. The next "
            "run records that.",
            phrases.way_out(code, phrases.key_of(answer), case.cli, partly_read=True),
        )
    places = {"line": failure.line, "field": failure.field}
    at = "".join(f", {name} {value}" for name, value in places.items() if value is not None)
    since = f" since {phrases.moment(failure.since)}" if failure.since is not None else ""
    sentence = (
        f"It has failed{since} ({plural(failure.attempts, 'attempt')}) in stage "
        f"{failure.stage}{at}: {failure.message} [{failure.code}]{phrases.rows_there(answer)}."
    )
    way_out = phrases.of_failed(failure, phrases.key_of(answer), case.settings, case.cli)
    if failure.next_try is None:
        listed = way("The list has details of the failure.", f"{case.cli.blizzard} dlq list")
        return f"{sentence} It is not retried automatically.", way_out, listed
    if failure.next_try <= case.now:
        return (f"{sentence} It is tried again with the next batch.",)
    return f"{sentence} It is tried again at {phrases.moment(failure.next_try)}.", way_out


def _changed(case: Case) -> Words:
    answer, taken, on_change = case.answer, case.answer.retraction, case.source.on_change
    if taken is not None and taken.is_not_applied:
        return phrases.not_applied(answer, taken, case.cli)
    said = "is reported and not read" if on_change is OnChange.ERROR else "is not read"
    rows = f" ({plural(phrases.row_count(answer), 'row')})" if answer.read else ""
    return says(
        f"It was read{rows}, and its source object was replaced afterwards. Its new content "
        f"{said}: source.on_change is {on_change.value}.",
        way("Put the new content under another name, which is then read."),
        way(
            "Or replace the old rows with it; source.on_change: replace does so automatically.",
            *phrases.replacing(answer, case.cli),
        ),
        way("Or set source.on_change: reingest, and the rows of the old content stay, too."),
    )


def _uncommitted(case: Case) -> Words:
    which, until = phrases.pending(case.answer), phrases.until_then(case.answer)
    read = f"It was read with {_read_with(case.answer)}, and {which} not in the table yet"
    if case.lost and min(phrases.uncommitted(case.answer), default=case.lost + 1) <= case.lost:
        lost = "its commit was lost: the Delta log was rolled back, or the table was replaced"
        return f"{read}; {lost}.{until}", committed_again(case.cli)
    if case.settings.sink.commit is CommitMode.INLINE:
        once = way("Run blizzard.", f"{case.cli.start('blizzard')} --once")
        return f"{read}: blizzard commits it with its next batch.{until}", once
    return f"{read}: penguin has yet to commit it.{until}", run_penguin(case.cli)


def run_penguin(cli: CommandPrefix) -> WayOut:
    """Return how to have an entry committed."""
    commands = (f"{cli.penguin} --once", f"{cli.penguin} status")
    return way("Run penguin; its status shows what blocks it.", *commands)


def _held(case: Case) -> Words:
    answer, files = case.answer, phrases.in_state(case.answer)
    reasons = "; ".join(sorted({reason for one in files for reason in one.reasons}))
    again = phrases.read_again(answer, case.cli)
    if all(one.code == SCHEMA_REFUSED for one in files):
        again = replace(again, advice="Or fix the schema first, and read the file again.")
    return says(
        f"It was read with {_read_with(answer)}, but "
        f"penguin holds {plural(len(files), 'data file')} of it: "
        f"{reasons or 'penguin held shows why'}.",
        *_release_or_discard(case, files),
        again,
    )


def _release_or_discard(case: Case, files: Sequence[DataFile]) -> Iterator[WayOut]:
    """Yield the ways out for data files that penguin holds."""
    codes, ids = {one.code for one in files}, " ".join(file_name(one.path) for one in files)
    mend = "Change the table so that it fits; then release it."
    if codes == {SCHEMA_REFUSED}:
        mend = "Change the table, or schema_evolution, so that it fits; then release it."
    if codes == {FILE_MISSING}:
        mend = "Put the missing data file back as it was written; then release it."
    yield way(mend, f"{case.cli.penguin} release {ids}")
    yield way("Or discard it.", *confirmed(f"{case.cli.penguin} discard {ids}"))


def _discarded(case: Case) -> Words:
    files = phrases.in_state(case.answer)
    removed = [one for one in files if one.removed_version is not None]
    if removed:
        return says(
            f"It was read with {_read_with(case.answer)} and committed, and "
            f"{phrases.rows_gone(case.answer)} been removed from the table since: "
            f"{phrases.removals(removed)}; an operator has accepted that.",
            phrases.TIME_TRAVEL,
        )
    return says(
        f"It was read with {_read_with(case.answer)}; {plural(len(files), 'data file')} "
        "of it had been held by penguin and then discarded, so those rows are not in the table.",
        phrases.read_again(case.answer, case.cli),
    )


def _removed(case: Case) -> Words:
    answer, taken = case.answer, case.answer.retraction
    since, *ways = phrases.taken_out(answer, case.cli)
    sentence = f"It was read with {_read_with(answer)} and committed, and {since}."
    if taken is None or not (taken.replaced and taken.came_back):
        return sentence, *ways
    rows = plural(taken.rows, "row")
    return says(
        f"{sentence} {rows} of {phrases.replaced(taken)} {is_are(taken.rows)} in it again.",
        *ways,
        way("Replace them again.", *phrases.replacing(answer, case.cli, taken.others)),
    )


def _read_with(answer: Answer) -> str:
    if not answer.read:
        return "an earlier journal"
    return f"{phrases.entries(answer)} ({phrases.rows_from_lines(answer)})"


def _no_rows(case: Case) -> Words:
    lines = f"{phrases.lines(case.answer)}{phrases.left_out(case.answer)}"
    read = f"It was read with {phrases.entries(case.answer)}"
    return (f"{read}, and it gave no row: {lines}.",)


def _retracted(case: Case) -> Words:
    taken = case.answer.retraction
    if taken is None:
        raise AssertionError("no entry says that a file was retracted")
    where = "" if taken.version is None else f"; Delta version {taken.version}"
    rows = plural(taken.rows, "row was", "rows were")
    sentence = f"Its {rows} taken back in entry {taken.entry} on {phrases.moment(taken.at)}{where}."
    if not taken.rows:
        sentence = f"Its rows had already left the table when entry {taken.entry} replaced it."
    elif taken.deleted_from is not None:
        sentence += (
            " They are still readable by time travel until VACUUM, which deletes the files after "
            "the table's deletedFileRetentionDuration: not before "
            f"{phrases.moment(taken.deleted_from)}."
        )
    return says(
        f"{sentence} It is known, so it is not read again automatically.",
        way("To have it in the table again, put it into the source under another name."),
        way("Its entry names the data files.", f"{case.cli.blizzard} journal show {taken.entry}"),
    )


def _committed(case: Case) -> Words:
    answer, taken = case.answer, case.answer.retraction
    versions = sorted({one.version for one in answer.data_files if one.version is not None})
    where = "a version that is no longer in the Delta log"
    if versions:
        word = "version" if len(versions) == 1 else "versions"
        where = f"Delta {word} {', '.join(map(str, versions))}"
    rows = plural(phrases.present_count(answer), "row")
    sentence = (
        f"It is in the table: {rows} from {phrases.lines(answer)}, "
        f"read with {phrases.entries(answer)}, in {where}."
    )
    moved = [one for one in answer.data_files if one.state is FileState.REWRITTEN]
    if moved:
        files = plural(len(moved), "data file has", "data files have")
        sentence += f" {files} been rewritten since: {phrases.removals(moved)}."
        sentence += phrases.holders(moved)
    if taken is None:
        return (sentence,)
    if taken.came_back:
        rows = plural(taken.rows, "row")
        return says(
            f"{sentence} The retraction in entry {taken.entry} took {rows} of it out, and data "
            "files with rows of it were put back, as RESTORE and penguin replay do.",
            way("Take them out again.", *_retract(case)),
        )
    if taken.replaced:
        rows = f"{plural(taken.rows, 'row')} of {phrases.replaced(taken)}"
        return (f"{sentence} They replaced {rows}.",)
    if taken.rejected:
        because = phrases.because(taken.reasons)
        return says(
            f"{sentence} The retraction in entry {taken.entry} had no effect{because}.",
            way("Take its rows back, if they can still be distinguished.", *_retract(case)),
        )
    return says(
        f"{sentence} Entry {taken.entry} takes its rows back, and is not committed yet.",
        way("Have it committed.", case.cli.start(case.settings.sink.committer)),
    )


def _retract(case: Case) -> tuple[str, str]:
    return confirmed(f"{case.cli.blizzard} retract {case.file}")


def _words_for(case: Case) -> Words:
    """Return the words for the answer's state and reason."""
    answer = case.answer
    if answer.gone:
        return _gone(case)
    if answer.state is FileState.WAITING and answer.detail is not None:
        return _refused(case)
    says = SAYS.get((answer.state, answer.reason)) or SAYS[answer.state, None]
    return says(case) if callable(says) else says


SAYS: Mapping[tuple[FileState, str | None], Words | Callable[[Case], Words]] = {
    (FileState.MISSING, None): (
        "It is not there: the store has no such object, and no row of one is in the table.",
        way("Check the name."),
    ),
    (FileState.SKIPPED, None): _skipped,
    (FileState.WAITING, None): _waiting,
    (FileState.WAITING, PART_READ): _partial,
    (FileState.WAITING, REDO): (
        "Data files with its rows were given up, so the next batch reads it again.",
        way("Run blizzard, or wait for the running one."),
    ),
    (FileState.FAILED, None): _failed,
    (FileState.CHANGED, None): _changed,
    (FileState.JOURNALED, None): _uncommitted,
    (FileState.IN_TABLE, None): _committed,
    (FileState.IN_TABLE, NO_ROWS): _no_rows,
    (FileState.IN_TABLE, INHERITED): lambda case: (
        "It was read under an earlier journal, so it is not read again.",
        way("Entry 0 names that journal.", f"{case.cli.blizzard} journal show 0"),
    ),
    (FileState.HELD, None): _held,
    (FileState.DISCARDED, None): _discarded,
    (FileState.REMOVED, None): _removed,
    (FileState.ALTERED, None): _removed,
    (FileState.RETRACTED, None): _retracted,
}
"""Sentence and next steps by state, and by reason where that differs."""
