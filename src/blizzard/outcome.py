"""The outcomes of units, settled into what a journal entry says. Pure.

A file that several tasks shared is all in or all out: if one part failed, every output of every
part is forgotten; if one part was not read, because a stop was asked for, the file was not read.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from blizzard.flow import Effort, UnitOutcome, WorkUnit
from lake.datafile import FinishedFile
from lake.entry import SourceRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a batch did: its source files, and the files that hold their rows."""

    sources: tuple[SourceRecord, ...]
    files: tuple[FinishedFile, ...]
    effort: Effort = field(default_factory=Effort)


def settle(units: Sequence[WorkUnit], outcomes: Sequence[UnitOutcome]) -> Settled:
    """Bring the outcomes of all units together, parts of one file into one record."""
    sources: list[SourceRecord] = []
    files: list[FinishedFile] = []
    shared: dict[str, list[UnitOutcome]] = {}
    for unit, outcome in zip(units, outcomes, strict=True):
        first = unit.files[0]
        if first.part is None:
            sources += outcome.sources
            files += outcome.files
        else:
            # Units are in the order of the parts.
            shared.setdefault(first.key, []).append(outcome)
    for parts in shared.values():
        record = _whole(parts)
        if record is not None:
            sources.append(record)
            if record.failure is None and record.unit is not None:
                written = chain.from_iterable(part.files for part in parts)
                files += [replace(file, unit=record.unit) for file in written]
    return Settled(sources=tuple(sources), files=tuple(files), effort=_together(outcomes, files))


def _together(outcomes: Sequence[UnitOutcome], files: Sequence[FinishedFile]) -> Effort:
    """Add up what all units took; a file that was forgotten does not count."""
    written = {name: took for one in outcomes for name, took in one.effort.write_seconds.items()}
    return Effort(
        write_seconds={
            file.filename: written[file.filename] for file in files if file.filename in written
        },
        download_retries=sum(one.effort.download_retries for one in outcomes),
        upload_retries=sum(one.effort.upload_retries for one in outcomes),
        attempts=tuple(each for one in outcomes for each in one.effort.attempts),
    )


def _whole(parts: Iterable[UnitOutcome]) -> SourceRecord | None:
    """Add the parts of a file up; None if one was not read."""
    records: list[SourceRecord] = []
    for part in parts:
        if not part.sources:
            return None
        (record,) = part.sources
        if record.failure is not None:
            return _failed(record, lines_before=sum(done.lines for done in records))
        records.append(record)
    dropped: Counter[str] = Counter()
    for record in records:
        dropped.update(record.dropped)
    return replace(
        records[0],
        lines=sum(record.lines for record in records),
        blank=sum(record.blank for record in records),
        rows=sum(record.rows for record in records),
        dropped=dict(dropped),
    )


def _failed(record: SourceRecord, *, lines_before: int) -> SourceRecord:
    """Count the bad line from the start of the file, not of the part."""
    failure = record.failure
    if failure is None or failure.line is None:
        return record
    return replace(record, failure=replace(failure, line=failure.line + lines_before))
