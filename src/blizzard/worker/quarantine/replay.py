"""Replay quarantined lines: readable lines become rows, the others stay in quarantine.

The selected lines are decoded as in a batch. The readable ones become in-memory source files, which
a normal unit turns into data files. The other lines are copied unchanged into a new quarantine
file that supersedes the old one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import cast

from blizzard.model.bad_lines import LineReplay
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
"""The source name in the record of a failed replay."""


def run_replay(
    unit: WorkUnit, work: Work, stores: Stores, channel: ProgressChannel | None = None
) -> UnitOutcome:
    """Replay the selected lines of a quarantine file; any error becomes part of the outcome."""
    if unit.replay is None:
        raise AssertionError("the unit has no lines to replay")
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
        if replay.selected.includes(line.fault.group, line.key)
    ]
    readable = _readable(lines, chosen, replay.skips, work)
    places = readable.rows
    if not places and not readable.filtered:
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
            # A source may not be configured any more.
            sources={
                one.source: Location(uri=f"{one.source}:", options=work.sink.options)
                for one in sources
            }
            | dict(work.sources),
            limits={one.source: _FEW for one in sources},
            quarantine=None,
            max_seconds=None,
        ),
        _Lines({key: _joined(some) for key, some in by_source.items()}, sink),
        channel,
    )
    if work.infer_share is not None or any(
        record.failure is not None for record in outcome.sources
    ):
        return outcome
    if sum(record.rows for record in outcome.sources) != len(places):
        raise AssertionError("the number of rows differs from that of the readable lines")
    gone = places | readable.filtered
    keep = [place not in gone for place in range(len(lines))]
    rest = QuarantineRewrite(codec=work.rolling.codec, clock=work.clock, marks=dict(work.marks))
    with Uploads(sink, work.upload, pause=work.clock.sleep) as uploads:
        left = write_waiting(table, lines, file, keep, rest, uploads)
    return UnitOutcome(
        unit=unit.name,
        sources=(),
        files=tuple(_without_inexact(one) for one in outcome.files),
        resolved=(
            Resolved(
                old=file.filename,
                lines=len(gone),
                left=left,
                replayed=Counter(lines[place].key for place in sorted(places)),
                filtered=Counter(lines[place].key for place in sorted(readable.filtered)),
            ),
        ),
        seen=outcome.seen,
    )


def _source(
    lines: Sequence[QuarantinedLine],
    partition_values: Mapping[str, str | None],
    before: int | None,
) -> SourceFile:
    """Return lines of one source file as a separate file, with their record numbers."""
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


def _without_inexact(file: FinishedFile) -> FinishedFile:
    """Drop the record numbers of inexact runs: other records between them are rows already.

    The source file of a run stays known.
    """
    runs = (run if run.is_exact else Run(run.source, None, run.rows, run.rows) for run in file.runs)
    return replace(file, runs=tuple(runs))


@dataclass(frozen=True, slots=True)
class _Readable:
    """Lines that can be resolved now, by index."""

    rows: set[int]
    filtered: set[int]
    """Lines that match the skip rule of their source."""


def _readable(
    lines: Sequence[QuarantinedLine],
    chosen: Sequence[int],
    skips: Mapping[str, SkipRule],
    work: Work,
) -> _Readable:
    """Return which of the chosen lines are readable now, and which are filtered."""
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
                raise AssertionError("a quarantined line is neither a row nor bad")
            bad = {one.line - 1 for one in decoded.bad}
            rowless = set() if decoded.rowless is None else set(decoded.rowless + before)
            for number in range(before, before + decoded.lines):
                if number not in rowless:
                    found.rows.add(places[number])
                elif number not in bad:
                    found.filtered.add(places[number])
            before += decoded.lines
        if before != len(places):
            raise AssertionError("the number of decoded lines differs from the quarantined ones")
    return found


def _joined(lines: Sequence[QuarantinedLine]) -> bytes:
    return b"".join(line.raw + b"\n" for line in lines)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Stores with in-memory source files."""

    bodies: Mapping[str, bytes]
    """By file key."""
    table: Store
    name: str = ""

    def source(self, name: str) -> Reader:
        # A unit uses only `stream` and `require_unchanged` of a source.
        return cast("Reader", replace(self, name=name))

    def sink(self) -> Store:
        return self.table

    def stream(self, path: str, *, start: int = 0, **_object: object) -> Iterator[bytes]:
        yield self.bodies[f"{self.name}:{path}"][start:]

    def require_unchanged(self, _path: str, _etag: str | None) -> None:
        """Do nothing: data in memory does not change."""
