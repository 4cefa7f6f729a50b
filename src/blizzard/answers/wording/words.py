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
    FileRetraction,
    FileState,
    WayOut,
    committed_again,
    confirmed,
)
from blizzard.answers.wording import phrases
from blizzard.discover.finding import Reason
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.deltalog.lineage import RESTORE
from lakebed.deltalog.versions import FORGET, REPAIR
from lakebed.layout import file_name
from lakebed.types import CommitMode, OnChange
from lakebed.units import is_are, plural, span, typable

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
NOT_DONE = (FileState.FAILED, FileState.WAITING)
"""States of a file that has yet to be read from its source."""
TIME_TRAVEL = WayOut(advice="Time travel to an earlier version shows them, until VACUUM.")


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
    """Add the sentences and the next steps to an answer."""
    answer = case.answer
    sentence, *ways = _words_for(case)
    sentences = [sentence, *_beyond(answer), *map(_erased, answer.erased)]
    if answer.bad_lines:
        listed = f"{case.cli.blizzard} dlq list"
        ways.append(way("The list shows the waiting bad lines and their faults.", listed))
    return replace(answer, answer=" ".join(sentences), next=tuple(ways))


def _beyond(answer: Answer) -> Iterator[str]:
    """Yield what does not depend on the state of a file."""
    if answer.stored is None and answer.state in NOT_DONE and not answer.gone:
        yield "It is not in its source now."
    elif answer.stored is None and answer.read and not answer.gone:
        yield "It has left its source since, which does not affect its rows."
    if answer.earlier_lines:
        which = plural(answer.earlier_lines, "line of it was", "lines of it were")
        yield f"{which} read before that, perhaps under an earlier journal, which counted the rows."
    if answer.read_before:
        numbers = phrases.numbered(answer.read_before)
        yield f"Other content of its name was read with {numbers}; its rows may be in the table."
    if bad := sum(one.quarantined for one in answer.read):
        word = "bad line" if answer.read[0].counted == "lines" else "bad record"
        yield f"{plural(bad, word)} of it {'was' if bad == 1 else 'were'} quarantined."
    if answer.bad_lines:
        waits = f"{is_are(answer.bad_lines)} waiting in quarantine"
        yield f"{plural(answer.bad_lines, 'bad line')} of this name {waits}."


def _erased(one: FileRetraction) -> str:
    """Describe an erasure of rows of a file."""
    of = "" if one.pipeline is None else f" of pipeline {one.pipeline}"
    fate = "and is not committed yet"
    if one.rejected:
        fate = "and had no effect"
    elif one.came_back:
        fate = "and a RESTORE has undone that: they came back"
    elif one.deleted_from is not None:
        fate = f"and no VACUUM deletes the old files before {phrases.moment(one.deleted_from)}"
    elif one.committed:
        fate = "and is committed"
    return f"Entry {one.entry}{of} erases {plural(one.rows, 'row')} of it, {fate}."


def _gone(case: Case) -> Words:
    answer, failure = case.answer, case.answer.failure
    is_given_up = answer.state is FileState.DISCARDED
    if answer.read or answer.earlier_lines:
        gone = f"It left its source before all of it was read ({_counts(answer)} so far)"
        back = "Put it back unchanged if the rest is wanted; reading then continues."
        what = "the rest"
    else:
        how = "a part of it was unread" if failure is None else f"it had failed [{failure.code}]"
        gone = f"It is not in its source any more, and {how} when it was deleted"
        back = "Put it back if its rows are wanted; it is then read like a new file."
        what = "it"
    if is_given_up:
        return f"{gone}, and an operator has given that up.", way(back)
    discard = confirmed(f"{case.cli.blizzard} dlq discard {case.file}")
    return says(
        f"{gone}, and its day is not complete.",
        way(back),
        way(f"Or give up {what}: its day may be complete then.", *discard),
    )


def _counts(answer: Answer) -> str:
    """Name how many rows came from how many lines."""
    return f"{plural(phrases.row_count(answer), 'row')} from {phrases.lines(answer)}"


def _read_with(answer: Answer) -> str:
    if not answer.read:
        return "an earlier journal"
    return f"{phrases.entries(answer)} ({_counts(answer)})"


def _partial(case: Case) -> Words:
    read = f": {_counts(case.answer)} so far" if case.answer.read else ""
    return (f"It is being read over several batches{read}. The next batch continues.",)


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
    answer, on_change, taken = case.answer, case.source.on_change, case.answer.retraction
    if taken is not None and taken.is_not_applied and not taken.others:
        return _not_applied(case, taken)[0], way("The next run tries again.")
    if answer.reason == Reason.CHANGED.value and on_change is OnChange.REPLACE:
        held, uncommitted, removed = (
            [one for one in answer.data_files if one.state is state]
            for state in (FileState.HELD, FileState.JOURNALED, FileState.REMOVED)
        )
        ways = [*_release_or_discard(case, held)] if held else []
        ways += [run_penguin(case.cli)] if uncommitted else []
        ways += _back_in(case, removed) if any(one.sources > 1 for one in removed) else []
        if ways:
            files = plural(len((*held, *uncommitted, *removed)), "data file is", "data files are")
            until = f"{files} committed, given up or back in the table"
            return f"It is another object now, which replaces its earlier rows once {until}.", *ways
    again = ""
    if answer.reason == Reason.CHANGED.value:
        again = f" It {'was read' if answer.failure is None else 'failed'} before, and is another "
        again += "object now."
        if answer.read and on_change is OnChange.REPLACE:
            again += " Its rows are taken out of the table with the commit that has the new ones."
        elif answer.read:
            again += " The rows of the previous object stay in the table, too."
    if answer.reason == Reason.TOO_YOUNG.value and answer.stored is not None:
        left = case.source.min_age - (case.now - answer.stored.modified).total_seconds()
        sentence = (
            f"It is younger than min_age_secs ({case.source.min_age:g}), so it may still be "
            f"written to. It is old enough in {span(max(1.0, left))}."
        )
    else:
        policy = case.settings.sink.rolling
        sentence = (
            "It is waiting for a batch. One starts when enough files are waiting, no new one has "
            f"come for inactivity_timeout_secs ({policy.inactivity:g}), or the first has waited "
            f"for rollover_timeout_secs ({policy.rollover:g}); with --once right away.{again}"
        )
    return sentence, *_ways_of_waiting(case.cli, running=answer.running)


def _ways_of_waiting(cli: CommandPrefix, *, running: bool | None) -> Iterator[WayOut]:
    """Yield what to do about a waiting file; nothing while blizzard runs."""
    if running is None:
        advice = "Make sure that blizzard still runs on the machine that the status names."
        yield way(advice, f"{cli.blizzard} status")
    elif not running:
        yield way("Start blizzard: none is running for this pipeline.", cli.start("blizzard"))


def _failed(case: Case) -> Words:
    answer, failure = case.answer, case.answer.failure
    rows, key = "", phrases.key_of(answer)
    if answer.read:
        count = phrases.present_count(answer)
        rows = f"; {plural(count, 'row')} of it {is_are(count)} in the table"
    elif not (answer.earlier_lines or answer.read_before):
        rows = "; no row of it is in the table"
    if failure is None or (answer.detail is not None and failure.code != answer.reason):
        code = answer.reason or ""
        return says(
            f"It cannot be read: {answer.detail} [{code}]{rows}. The next run records that.",
            phrases.way_out(code, key, case.cli, partly_read=True),
        )
    places = {"line": failure.line, "field": failure.field}
    at = "".join(f", {name} {value}" for name, value in places.items() if value is not None)
    since = f" since {phrases.moment(failure.since)}" if failure.since is not None else ""
    sentence = (
        f"It has failed{since} ({plural(failure.attempts, 'attempt')}) in stage "
        f"{failure.stage}{at}: {failure.message} [{failure.code}]{rows}."
    )
    way_out = phrases.of_failed(failure, key, case.settings, case.cli)
    if failure.next_try is None:
        listed = way("The list has details of the failure.", f"{case.cli.blizzard} dlq list")
        return f"{sentence} It is not retried automatically.", way_out, listed
    is_due = failure.next_try <= case.now
    when = "with the next batch" if is_due else f"at {phrases.moment(failure.next_try)}"
    return f"{sentence} It is tried again {when}.", way_out


def _changed(case: Case) -> Words:
    answer, taken, on_change = case.answer, case.answer.retraction, case.source.on_change
    if taken is not None and taken.is_not_applied:
        return _not_applied(case, taken)
    said = "is reported and not read" if on_change is OnChange.ERROR else "is not read"
    return says(
        f"It was read with {_read_with(answer)}, and its source object was replaced afterwards. "
        f"Its new content {said}: source.on_change is {on_change.value}.",
        way("Put the new content under another name, which is then read."),
        way(
            "Or replace the old rows with it; source.on_change: replace does so automatically.",
            *phrases.replacing(answer, case.cli),
        ),
        way("Or set source.on_change: reingest, and the rows of the old content stay, too."),
    )


def _not_applied(case: Case, taken: FileRetraction) -> Words:
    """Say that a replacement was rejected."""
    old = _replaced(taken)
    return says(
        f"The replacement was not applied: entry {taken.entry} was to replace the rows of {old}, "
        f"and penguin rejected it{_because(taken)}. No row of the new content is in the table, and "
        "the old rows are as they were.",
        way(
            "Replace them again, which works if they can still be distinguished.",
            *phrases.replacing(case.answer, case.cli, taken.others),
        ),
    )


def _because(taken: FileRetraction) -> str:
    """Return the reasons of a rejection in parentheses; empty if unknown."""
    return f" ({'; '.join(taken.reasons)})" if taken.reasons else ""


def _replaced(taken: FileRetraction) -> str:
    """Name what new content replaces."""
    return ", ".join(taken.others) or "its earlier content"


def _uncommitted(case: Case) -> Words:
    answer, taken = case.answer, case.answer.retraction
    pending = [one.entry for one in answer.read if not one.committed]
    pending += [one.entry for one in answer.resolved if not one.committed]
    which = phrases.numbered(dict.fromkeys(pending)) or "that"
    read = f"It was read with {_read_with(answer)}"
    if case.lost and min(pending, default=case.lost + 1) <= case.lost:
        lost = f"{read}; the commit of {which} was lost: the Delta log was rolled back, or the "
        return f"{lost}table was replaced.", committed_again(case.cli)
    until = ""
    if taken is not None and taken.replaced and not taken.committed:
        until = f" Until then the rows of {_replaced(taken)} stay as they are."
    sentence = f"{read}, and {case.settings.sink.committer} has yet to commit {which}.{until}"
    if case.settings.sink.commit is CommitMode.INLINE:
        return sentence, way("Run blizzard.", f"{case.cli.start('blizzard')} --once")
    return sentence, run_penguin(case.cli)


def run_penguin(cli: CommandPrefix) -> WayOut:
    """Return how to have an entry committed."""
    commands = (f"{cli.penguin} --once", f"{cli.penguin} status")
    return way("Run penguin; its status shows what blocks it.", *commands)


def _held(case: Case) -> Words:
    answer, files = case.answer, phrases.in_state(case.answer)
    reasons = "; ".join(sorted({reason for one in files for reason in one.reasons}))
    return says(
        f"It was read with {_read_with(answer)}, but penguin holds "
        f"{plural(len(files), 'data file')} of it: {reasons or 'penguin held shows why'}.",
        *_release_or_discard(case, files),
        phrases.read_again(answer, case.cli),
    )


def _release_or_discard(case: Case, files: Sequence[DataFile]) -> Iterator[WayOut]:
    """Yield the ways out for data files that penguin holds."""
    codes, ids = {one.code for one in files}, " ".join(file_name(one.path) for one in files)
    mend = "Change the table, or schema_evolution, so that it fits; then release it."
    if codes == {FILE_MISSING}:
        mend = "Put the missing data file back as it was written; then release it."
    yield way(mend, f"{case.cli.penguin} release {ids}")
    yield way("Or discard it.", *confirmed(f"{case.cli.penguin} discard {ids}"))


def _discarded(case: Case) -> Words:
    files = phrases.in_state(case.answer)
    read = f"It was read with {_read_with(case.answer)}"
    if removed := [one for one in files if one.removed_version is not None]:
        gone = f"rows of it have been removed from the table since: {phrases.removals(removed)}"
        return f"{read}, and {gone}; an operator has accepted that.", TIME_TRAVEL
    return says(
        f"{read}; {plural(len(files), 'data file')} of it had been held by penguin and then "
        "discarded, so those rows are not in the table.",
        phrases.read_again(case.answer, case.cli),
    )


def _removed(case: Case) -> Words:
    answer, files, taken = case.answer, phrases.in_state(case.answer), case.answer.retraction
    sentence = (
        f"It was read with {_read_with(answer)} and committed, and rows of it have been removed "
        f"from the table since: {phrases.removals(files)}."
    )
    if taken is None or not (taken.replaced and taken.came_back):
        return sentence, *_back_in(case, files)
    return says(
        f"{sentence} That also undid the replacement of {_replaced(taken)}.",
        TIME_TRAVEL,
        way("Replace them again.", *phrases.replacing(answer, case.cli, taken.others)),
    )


def _back_in(case: Case, files: Sequence[DataFile]) -> Iterator[WayOut]:
    """Yield the ways to have removed rows in the table again."""
    cli, by = case.cli, [one.removed_by or "" for one in files]
    if all(one == FORGET for one in by):
        # No earlier version of this log has them.
        yield way("Read the file again.", *phrases.replacing(case.answer, cli))
    elif all(one.startswith(REPAIR) for one in by):
        # The data files were gone before, so no earlier version shows the rows.
        yield phrases.read_again(case.answer, cli)
    else:
        yield TIME_TRAVEL
        if any(one.startswith(RESTORE) for one in by):
            advice = "Put back what the RESTORE removed."
            yield way(advice, *confirmed(f"{cli.penguin} replay"))
        versions = sorted({one.removed_version for one in files if one.removed_version is not None})
        accept = (f"{cli.blizzard} audit --accept {one} --reason TEXT" for one in versions)
        yield way("Accept it if it was intended.", *accept)


def _altered(case: Case) -> Words:
    by = phrases.removals(phrases.in_state(case.answer))
    return says(
        f"It was read with {_read_with(case.answer)} and committed, and data files of it were "
        f"rewritten since, or rows in them deleted: {by}. Some of its rows may "
        "have been removed by that, and the log does not say which.",
        way("`blizzard trace` says where a row of the table came from."),
    )


def _no_rows(case: Case) -> Words:
    answer = case.answer
    return (
        f"It was read with {phrases.entries(answer)}, and it gave no row: {phrases.lines(answer)}.",
    )


def _retracted(case: Case) -> Words:
    taken = case.answer.retraction
    if taken is None:
        raise AssertionError("no entry says that a file was retracted")
    until = "."
    if taken.deleted_from is not None:
        until = f"; no VACUUM deletes their files before {phrases.moment(taken.deleted_from)}."
    return says(
        f"Its rows were taken back in entry {taken.entry} on {phrases.moment(taken.at)}: "
        f"{plural(taken.rows, 'row')} left the table with it{until} It is known, so "
        "it is not read again automatically.",
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
    if moved := [one for one in answer.data_files if one.state is FileState.REWRITTEN]:
        files = plural(len(moved), "data file has", "data files have")
        sentence += f" {files} been rewritten since: {phrases.removals(moved)}."
    again = way(
        "Take its rows out again, if they can still be distinguished.",
        *confirmed(f"{case.cli.blizzard} retract {case.file}"),
    )
    if taken is None:
        return (sentence,)
    if taken.replaced:
        return (f"{sentence} Entry {taken.entry} replaced {_replaced(taken)} with it.",)
    if taken.rejected:
        because = _because(taken)
        return f"{sentence} Its retraction in entry {taken.entry} had no effect{because}.", again
    if taken.committed:
        came_back = f"Its retraction in entry {taken.entry} took rows out that were put back since"
        return f"{sentence} {came_back}, as RESTORE and penguin replay do.", again
    return says(
        f"{sentence} Entry {taken.entry} takes its rows back, and is not committed yet.",
        way("Have it committed.", case.cli.start(case.settings.sink.committer)),
    )


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
    (FileState.ALTERED, None): _altered,
    (FileState.RETRACTED, None): _retracted,
}
"""Sentence and next steps by state, and by reason where that differs."""
