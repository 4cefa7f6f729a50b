"""Lines in quarantine, read again: what can be read now becomes rows, what cannot goes on waiting.

The lines that are meant are read by the decoder as a batch reads them. Those that it takes are made
one source file, and a unit like any other turns that into data files. All other lines of the
quarantine file are written into another one, as they were, which takes its place.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import cast

from blizzard.model.bad_lines import LineReplay
from blizzard.model.progress import Bounds
from blizzard.model.source.file import SourceFile
from blizzard.model.source.form import SkipRule
from blizzard.model.work import TaskLimits, UnitOutcome, Work, WorkUnit
from blizzard.worker.download import Stores
from blizzard.worker.output.upload import Uploads
from blizzard.worker.position import require_explained
from blizzard.worker.progress import ProgressChannel
from blizzard.worker.quarantine.reader import QuarantinedLine, lines_of, read_table
from blizzard.worker.quarantine.writer import QuarantineRewrite, write_waiting
from blizzard.worker.record import failure_of
from blizzard.worker.unit import decoder_of, run_unit
from lakebed.documents.records import FinishedFile, Resolved, Run, SourceRecord
from lakebed.storage.options import Location
from lakebed.storage.store import Reader, Store
from lakebed.types import Codec

_FEW = TaskLimits(max_concurrent_files=1, batch_size=8192)
QUARANTINE = "quarantine"
"""The name used as source where lines cannot be read again."""


def run_replay(
    unit: WorkUnit, work: Work, stores: Stores, channel: ProgressChannel | None = None
) -> UnitOutcome:
    """Read the lines of a quarantine file again that are meant; trouble is part of the answer."""
    if unit.replay is None:
        raise AssertionError("only a unit that replays lines has some to replay")
    try:
        return _replayed(unit, unit.replay, work, stores, channel)
    except Exception as error:  # noqa: BLE001 - an exception would reach the driver without its type
        failure = failure_of(error)
        record = SourceRecord(
            source=QUARANTINE,
            path=unit.replay.file.filename,
            size=unit.replay.file.size,
            etag=None,
            failure=failure,
        )
        return UnitOutcome(unit=unit.name, sources=(record,), files=())


def _replayed(
    unit: WorkUnit, replay: LineReplay, work: Work, stores: Stores, channel: ProgressChannel | None
) -> UnitOutcome:
    sink, file = stores.sink(), replay.file
    table = read_table(sink, file.filename, file.record_count)
    lines = list(lines_of(table, file.lines_before))
    chosen = [
        place
        for place, line in enumerate(lines)
        if (line.is_whole or replay.corrected is not None)
        and replay.meant.takes(line.fault.group, line.key)
    ]
    if replay.corrected is not None:
        for place, text in zip(chosen, replay.corrected, strict=True):
            lines[place] = replace(lines[place], raw=text, size=len(text))
    readable = _readable(lines, chosen, replay.skips, work)
    places = readable.rows
    if not places and not readable.passed_over:
        return UnitOutcome(unit=unit.name, sources=(), files=())
    by_source: dict[str, list[QuarantinedLine]] = {}
    for place in sorted(places):
        by_source.setdefault(lines[place].key, []).append(lines[place])
    sources = tuple(
        _source(some, unit.partition_values, file.lines_before) for some in by_source.values()
    )
    outcome = run_unit(
        replace(unit, files=sources, replay=None),
        replace(
            work,
            # Lines may be left of a source that is not configured any more.
            sources={
                one.source: Location(uri=f"{one.source}:", options=work.sink.options)
                for one in sources
            }
            | dict(work.sources),
            limits={one.source: _FEW for one in sources},
            quarantine=None,
            bounds=Bounds(),
        ),
        _Lines({key: _joined(some) for key, some in by_source.items()}, sink),
        channel,
    )
    if work.infer_share is not None or any(
        record.failure is not None for record in outcome.sources
    ):
        return outcome
    if sum(record.rows for record in outcome.sources) != len(places):
        raise AssertionError("lines that can be read are not read one by one")
    gone = places | readable.passed_over
    keep = [place not in gone for place in range(len(lines))]
    rest = QuarantineRewrite(rolling=work.rolling, clock=work.clock, marks=dict(work.marks))
    with Uploads(sink, work.upload, pause=work.clock.sleep) as uploads:
        left = write_waiting(table, lines, file, keep, rest, uploads)
    return UnitOutcome(
        unit=unit.name,
        sources=(),
        files=tuple(_told_exactly(one) for one in outcome.files),
        resolved=(
            Resolved(
                old=file.filename,
                lines=len(gone),
                left=left,
                replayed=Counter(lines[place].key for place in sorted(places)),
                filtered=Counter(lines[place].key for place in sorted(readable.passed_over)),
            ),
        ),
        seen=outcome.seen,
    )


def _source(
    lines: Sequence[QuarantinedLine],
    partition_values: Mapping[str, str | None],
    before: int | None,
) -> SourceFile:
    """Return lines of one source file as a file of their own, with the numbers of their records."""
    return SourceFile(
        source=lines[0].source,
        path=lines[0].path,
        size=len(_joined(lines)),
        etag=None,
        codec=Codec.NONE,
        partition_values=partition_values,
        modified=datetime.fromtimestamp(0, UTC),
        numbers=tuple(None if before is None else before + line.nth for line in lines),
    )


def _told_exactly(file: FinishedFile) -> FinishedFile:
    """Attribute rows to records only where that is exact: between them, others are rows.

    Which source file they came from is known all the same.
    """
    runs = (run if run.is_exact else Run(run.source, None, run.rows, run.rows) for run in file.runs)
    return replace(file, runs=tuple(runs))


@dataclass(frozen=True, slots=True)
class _Readable:
    """Lines that can be dealt with now, by their places."""

    rows: set[int]
    passed_over: set[int]
    """Those for which a rule of their source holds: a batch would make no row of them."""


def _readable(
    lines: Sequence[QuarantinedLine],
    chosen: Sequence[int],
    skips: Mapping[str, SkipRule],
    work: Work,
) -> _Readable:
    """Return which of the chosen lines can be read now, and which are to be passed over."""
    decoder = decoder_of(work, quarantines=True)
    by_rule: dict[SkipRule | None, list[int]] = {}
    for place in chosen:
        by_rule.setdefault(skips.get(lines[place].source), []).append(place)
    found = _Readable(set(), set())
    for rule, places in by_rule.items():
        text = _joined([lines[place] for place in places])
        before = 0
        for decoded in decoder.decode([text], from_start=False, skip=rule):
            require_explained(decoded)
            if decoded.blank:
                raise AssertionError("a line that was set aside is neither a row nor bad")
            bad = {one.line - 1 for one in decoded.bad}
            rowless = set() if decoded.rowless is None else set(decoded.rowless + before)
            for number in range(before, before + decoded.lines):
                if number not in rowless:
                    found.rows.add(places[number])
                elif number not in bad:
                    found.passed_over.add(places[number])
            before += decoded.lines
        if before != len(places):
            raise AssertionError("lines that were set aside are not read one by one")
    return found


def _joined(lines: Sequence[QuarantinedLine]) -> bytes:
    return b"".join(line.raw + b"\n" for line in lines)


@dataclass(frozen=True, slots=True)
class _Lines:
    """The stores of a unit whose source files are in memory."""

    bodies: Mapping[str, bytes]
    """By the keys of the files."""
    table: Store
    name: str = ""

    def source(self, name: str) -> Reader:
        # Of a source a unit asks these two things only.
        return cast("Reader", replace(self, name=name))

    def sink(self) -> Store:
        return self.table

    def stream(self, path: str, *, start: int = 0, **_object: object) -> Iterator[bytes]:
        yield self.bodies[f"{self.name}:{path}"][start:]

    def require_unchanged(self, _path: str, _etag: str | None) -> None:
        """Do nothing: what is in memory stays as it is."""
