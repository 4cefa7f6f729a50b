"""Merge the outcomes of units into the content of a journal entry. Pure.

A file shared by several tasks is one file in the journal: if one part failed, the outputs of all
parts are dropped. If parts were left unread because the batch ended, the others count, and the
record holds the remaining byte ranges.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from blizzard.model.bad_lines import TOO_MANY, too_many_message
from blizzard.model.settings import QuarantineLimits
from blizzard.model.source.file import SourceFile
from blizzard.model.source.partly_read import (
    FilePart,
    failed,
    left_of,
    lines_before,
    parts_of,
    untouched,
)
from blizzard.model.work import Effort, UnitOutcome, WorkUnit
from blizzard.worker.position import CountMismatch
from lakebed.documents.records import (
    Failure,
    FailureStage,
    FinishedFile,
    QuarantineFile,
    Resolved,
    SourceRecord,
)
from lakebed.errors import StoreFull


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledBatch:
    """The result of a batch: its source files, and the files that hold their rows."""

    sources: tuple[SourceRecord, ...]
    files: tuple[FinishedFile, ...]
    quarantine: tuple[QuarantineFile, ...] = ()
    resolved: tuple[Resolved, ...] = ()
    """Quarantine files with replayed lines."""
    effort: Effort = field(default_factory=Effort)
    handed_in: bool = False
    """Whether files were left for the next batch without a stop request."""
    sink_full: str | None = None
    """The store's error if the sink is full; the affected sources are left out."""

    def require_room(self) -> None:
        """Raise if the sink was full; the remaining source files are read again later."""
        if self.sink_full is not None:
            raise StoreFull(self.sink_full)


def balanced(settled: SettledBatch, files: Mapping[str, SourceFile]) -> SettledBatch:
    """Fail the source files whose counts do not balance.

    Source files that share data files fail together, and those data files are dropped. `files` are
    the source files before the batch, by key.
    """
    wrong = dict(_differences(settled))
    if not wrong:
        return settled

    def of(record: SourceRecord) -> SourceRecord:
        message = wrong.get(record.unit) if record.failure is None else None
        if message is None:
            return record
        failure = Failure(stage=FailureStage.PARSE, code=CountMismatch.code, message=message)
        return failed(untouched(files[record.key]), failure)

    return replace(
        settled,
        sources=tuple(map(of, settled.sources)),
        files=tuple(file for file in settled.files if file.unit not in wrong),
        quarantine=tuple(file for file in settled.quarantine if file.unit not in wrong),
    )


def _differences(settled: SettledBatch) -> Iterator[tuple[str | None, str]]:
    """Yield the groups whose counts do not balance, with the differences."""
    read, found = Counter[str | None](), Counter[str | None]()
    written, kept = _counted(settled.files), _counted(settled.quarantine)
    for one in settled.sources:
        if one.failure is not None:
            continue
        read[one.unit] += one.rows
        found[one.unit] += one.quarantined
        if one.lines != one.rows + one.blank + one.filtered + one.quarantined:
            what = f"{one.rows} rows, {one.blank} blank, {one.filtered} filtered"
            message = f"{one.lines} lines were read, but there are {what} and "
            yield one.unit, f"{message}{one.quarantined} bad lines"
    for unit, rows in read.items():
        if written[unit] != rows:
            yield unit, f"{rows} rows were read, but {written[unit]} were written"
        elif kept[unit] != found[unit]:
            yield unit, f"{found[unit]} bad lines were found, but {kept[unit]} were quarantined"


def _counted(files: Iterable[FinishedFile | QuarantineFile]) -> Counter[str | None]:
    counted = Counter[str | None]()
    for file in files:
        counted[file.unit] += file.record_count
    return counted


Ran = list[tuple[WorkUnit, UnitOutcome]]
"""Units with their outcomes."""


def settle(ran: Ran, limits: QuarantineLimits | None = None) -> SettledBatch:
    """Merge the outcomes of all units, with one record for the parts of a file.

    `limits` applies to files that several tasks share; other files were checked by their task. A
    file whose counts do not balance fails. A file whose rows did not fit into a full sink is left
    out, as if it had not been read.
    """
    outcomes = [outcome for _unit, outcome in ran]
    full = next((one.sink_full for one in outcomes if one.sink_full is not None), None)
    sources: list[SourceRecord] = []
    files: list[FinishedFile] = []
    quarantine: list[QuarantineFile] = []
    shared: dict[str, list[tuple[SourceFile, UnitOutcome]]] = {}
    for unit, outcome in ran:
        if unit.replay is not None:
            sources += outcome.sources
            files += [replace(file, unit=f"{outcome.unit}/{file.unit}") for file in outcome.files]
            continue
        first, read = unit.files[0], _without_lack_of_room(outcome)
        if first.part is None:
            sources += read.sources
            files += read.files
            quarantine += read.quarantine
        else:
            # Units are in the order of the parts.
            shared.setdefault(first.key, []).append((first, read))
    for each in shared.values():
        parts = parts_of(
            [file for file, _outcome in each],
            [outcome.sources[0] if outcome.sources else None for _file, outcome in each],
        )
        came = [
            (outcome, lines_before(parts, number)) for number, (_file, outcome) in enumerate(each)
        ]
        quarantined = [_renumbered_lines(file, at) for one, at in came for file in one.quarantine]
        record = _within(limits, each[0][0], _whole(each[0][0], parts), quarantined)
        if record is not None:
            sources.append(record)
            if record.failure is None and record.unit is not None:
                written = (_renumbered(file, before) for one, before in came for file in one.files)
                files += [replace(file, unit=record.unit) for file in written]
                quarantine += [replace(file, unit=record.unit) for file in quarantined]
    settled = balanced(
        SettledBatch(
            sources=tuple(sources),
            files=tuple(files),
            quarantine=tuple(quarantine),
            resolved=tuple(one for outcome in outcomes for one in outcome.resolved),
            handed_in=any(outcome.handed_in for outcome in outcomes),
            sink_full=full,
        ),
        {file.key: file for unit, _outcome in ran for file in unit.files},
    )
    return replace(settled, effort=_total_effort(outcomes, settled.files))


def left_over(units: Sequence[WorkUnit], settled: SettledBatch) -> int:
    """Count the planned files that were neither read completely nor failed."""
    done = {record.key for record in settled.sources if record.complete}
    return len({file.key for unit in units for file in unit.files} - done)


def _without_lack_of_room(outcome: UnitOutcome) -> UnitOutcome:
    """Drop the source files that failed because the sink was full."""
    if outcome.sink_full is None:
        return outcome
    return replace(
        outcome, sources=tuple(each for each in outcome.sources if not _lacked_room(each.failure))
    )


def _lacked_room(failure: Failure | None) -> bool:
    return failure is not None and (failure.stage, failure.code) == (
        FailureStage.UPLOAD,
        StoreFull.code,
    )


def _total_effort(outcomes: Sequence[UnitOutcome], files: Sequence[FinishedFile]) -> Effort:
    """Sum the effort of all units, without dropped files."""
    written = {name: took for one in outcomes for name, took in one.effort.write_seconds.items()}
    return Effort(
        write_seconds={
            file.filename: written[file.filename] for file in files if file.filename in written
        },
        download_retries=sum(one.effort.download_retries for one in outcomes),
        upload_retries=sum(one.effort.upload_retries for one in outcomes),
    )


def _whole(file: SourceFile, parts: Sequence[FilePart]) -> SourceRecord | None:
    """Merge the parts of a file; None if nothing was read."""
    read: list[SourceRecord] = []
    for number, part in enumerate(parts):
        if part.record is not None and part.record.failure is not None:
            return _failed(part.record, lines_before=lines_before(parts, number))
        if part.record is not None:
            read.append(part.record)
    left = left_of(parts)
    if left and not any(record.lines for record in read):
        return None
    dropped: Counter[str] = Counter()
    rescued: Counter[str] = Counter()
    for record in read:
        dropped.update(record.dropped)
        rescued.update(record.rescued)
    return replace(
        untouched(file),
        lines=sum(record.lines for record in read),
        blank=sum(record.blank for record in read),
        filtered=sum(record.filtered for record in read),
        quarantined=sum(record.quarantined for record in read),
        rows=sum(record.rows for record in read),
        complete=not left,
        unread=left,
        dropped=dict(dropped),
        rescued=dict(rescued),
        unit=read[0].unit,
    )


def _renumbered(file: FinishedFile, before: int | None) -> FinishedFile:
    """Renumber the records of a data file from the start of the source file, if known."""
    runs = file.runs if before is None else tuple(run.after(before) for run in file.runs)
    return replace(file, runs=runs)


def _renumbered_lines(file: QuarantineFile, before: int | None) -> QuarantineFile:
    """Renumber the lines of a quarantine file from the start of the source file, if known."""
    sources = tuple(
        replace(one, first=None if before is None or one.first is None else one.first + before)
        for one in file.sources
    )
    return replace(file, sources=sources, lines_before=before)


def _within(
    limits: QuarantineLimits | None,
    file: SourceFile,
    record: SourceRecord | None,
    quarantined: Sequence[QuarantineFile],
) -> SourceRecord | None:
    """Fail a file if all of its parts together have too many bad lines."""
    if limits is None or record is None or record.failure is not None or not quarantined:
        return record
    exceeded = limits.exceeded(record.quarantined, record.rows + record.quarantined)
    if exceeded is None:
        return record
    first = quarantined[0].sources[0]
    failure = Failure(
        stage=FailureStage.PARSE,
        code=TOO_MANY,
        message=too_many_message(exceeded, code=first.code, message=first.message),
        line=first.first,
        field=first.field,
    )
    return failed(untouched(file), failure)


def _failed(record: SourceRecord, *, lines_before: int | None) -> SourceRecord:
    """Renumber the failed line from the start of the file, if known."""
    failure = record.failure
    if failure is None or failure.line is None:
        return record
    line = None if lines_before is None else failure.line + lines_before
    return replace(record, failure=replace(failure, line=line))
