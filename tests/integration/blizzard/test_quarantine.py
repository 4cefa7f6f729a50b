"""Bad lines that are quarantined, as an operator sees them: journal, status, gc and the log."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from blizzard.events import LinesQuarantined, SourcesListed
from blizzard.execute.runner import Runner, WorkersDied
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from blizzard.model.settings import QuarantineLimits, Sizing
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.repair.gc import GarbageKind, collect
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.telemetry.measures import GaugeReading
from tests.support.builders import Bench, entries, gz, pipeline_settings, put
from tests.support.open_table import ID, OpenTable
from tests.support.quarantined import BROKEN, bad, good, mixed, quarantined_rows, raws, text
from tests.support.runner import InProcessRunner
from tests.support.stops import CUT, NEVER, Stopped

QUARANTINE = {"on_bad_record": "quarantine"}
MANY = 100_000
"""Lines of a file that is not read at once."""


@pytest.fixture
def desk(tmp_path: Path) -> OpenTable:
    return OpenTable(tmp_path / "desk", {"fields": [ID]}, error_handling=QUARANTINE)


def named(table: Path) -> list[bytes]:
    """Return every bad line that an entry names, in order."""
    return sorted(raws(table, [file for one in entries(table) for file in one.quarantine]))


def bench_of(folder: Path, **given: Any) -> Bench:
    given = {"quarantine": QuarantineLimits(), **given}
    return Bench(pipeline_settings(folder / "in", folder / "table", **given))


def test_good_rows_are_committed_and_bad_lines_wait(desk: OpenTable) -> None:
    desk.land("a.ndjson", {"id": 1}, '{"id":', {"id": "x"})
    desk.ingest()

    assert [row["id"] for row in desk.rows()] == [1]
    assert named(desk.table) == [b'{"id":', b'{"id": "x"}']
    told = desk.cli("status").stdout
    assert "2 bad lines are in quarantine [bad_lines_waiting]" in told
    status = json.loads(desk.cli("status", "--output", "json").stdout)
    assert status["quarantine"] == {"waiting": 2, "replayed": 0, "filtered": 0, "discarded": 0}
    assert (status["totals"]["lines"], status["totals"]["quarantined"]) == (3, 2)
    shown = " ".join(desk.cli("journal", "show", "1").stdout.split())
    assert "quarantined: 2" in shown
    (file,) = entries(desk.table)[1].quarantine
    assert f"filename: {file.filename}" in shown


def test_a_table_without_bad_lines_has_no_quarantine(desk: OpenTable) -> None:
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()

    assert "quarantine" not in desk.cli("status").stdout
    (entry,) = (one for one in entries(desk.table) if one.kind == "batch")
    assert not entry.quarantine_files
    assert not (desk.table / "_blizzard/default/quarantine").exists()


def test_the_log_has_one_line_per_file_with_the_count_and_the_first_line(tmp_path: Path) -> None:
    put(tmp_path / "in", "a.ndjson", text([good(1), bad(1), BROKEN]))
    put(tmp_path / "in", "b.ndjson", text([good(2)]))
    put(tmp_path / "in", "c.ndjson", text([BROKEN]))
    bench = bench_of(tmp_path)
    bench.pipeline().step()

    told = [event for event in bench.said(LinesQuarantined) if isinstance(event, LinesQuarantined)]
    assert [(one.path, one.lines, one.line, one.code) for one in told] == [
        (f"{tmp_path}/in/a.ndjson", 2, 2, "wrong_type"),
        (f"{tmp_path}/in/c.ndjson", 1, 1, "not_json"),
    ]
    assert told[0].sentence() == (
        f"default: batch 1: quarantined 2 bad lines of {tmp_path}/in/a.ndjson; the first is line "
        "2, field id: found a string, expected an integer (int64) [wrong_type]"
    )


def waiting(bench: Bench) -> list[float]:
    return [
        each.value
        for event in bench.said(SourcesListed)
        for each in event.measures()
        if isinstance(each, GaugeReading) and each.name == "blizzard_quarantined_lines"
    ]


def test_how_many_lines_wait_is_a_metric_of_every_run_also_after_a_snapshot(tmp_path: Path) -> None:
    put(tmp_path / "in", "a.ndjson", text([good(1), bad(1), BROKEN]))
    bench = bench_of(tmp_path)
    pipeline = bench.pipeline()
    assert pipeline.step()
    assert not pipeline.step()
    assert waiting(bench) == [0, 2]

    store = bench.store(str(bench.table), bench.settings.sink.storage_options)
    SnapshotWriter(store=store, pipeline="default", clock=Clock()).write(
        read_ledger(store, "default")
    )
    again = bench.again()
    again.pipeline().step()
    assert waiting(again) == [2]


def test_gc_keeps_what_an_entry_names_and_takes_what_none_does(desk: OpenTable) -> None:
    desk.land("a.ndjson", {"id": 1}, {"id": "x"})
    desk.blizzard()
    (journal,) = (desk.table / "_blizzard/default/journal").glob("*1.json")
    journal.unlink()  # As if the process had died before it.
    desk.blizzard()
    journal_of = {file.filename for one in entries(desk.table) for file in one.quarantine}
    found = collect(desk.store, "default", frozenset, clock=Clock(), older_than=timedelta(0)).pieces

    gone = [piece.path for piece in found if piece.kind is GarbageKind.QUARANTINE]
    assert len(gone) == 1
    assert journal_of.isdisjoint(gone)
    assert named(desk.table) == [b'{"id": "x"}']


def whole(found: list[Entry]) -> tuple[int, int, int]:
    """Return how many lines, rows and bad lines all batches have of the one file."""
    records = [record for one in found for record in one.sources if record.failure is None]
    return (
        sum(record.lines for record in records),
        sum(record.rows for record in records),
        sum(record.quarantined for record in records),
    )


@pytest.mark.parametrize("packed", [True, False])
def test_a_file_read_over_several_batches_has_each_bad_line_once(
    tmp_path: Path, packed: bool
) -> None:
    lines = mixed(MANY, 10)
    body = text(lines)
    name = "a.ndjson.gz" if packed else "a.ndjson"
    put(tmp_path / "in", name, gz(body) if packed else body)
    bench = bench_of(tmp_path, sizing=Sizing(decoded_budget=1))
    bench.again(runner=Stopped(lambda _unit: 1)).pipeline().step()
    (first,) = bench.entries()[1].sources
    assert not first.complete
    assert first.quarantined > 0
    while bench.again(runner=Stopped(lambda _unit: NEVER)).pipeline().step():
        pass

    found = bench.entries()
    assert len(found) > 2
    assert whole(found) == (MANY, 9 * MANY // 10, MANY // 10)
    rows = quarantined_rows(bench.table, [file for one in found for file in one.quarantine])
    assert [row["raw"] for row in rows] == lines[9::10]
    assert [row["line"] for row in rows] == list(range(10, MANY + 1, 10))


@pytest.mark.parametrize("stops", [[30, 0, 200], [0, 90], [1, 1, 1]])
def test_a_file_that_tasks_share_over_several_batches_has_each_bad_line_once(
    tmp_path: Path, stops: list[int]
) -> None:
    """A number is the right one, or there is none while lines before it are unread."""
    lines = mixed(2_000, 7)
    put(tmp_path / "in", "a.ndjson", text(lines))
    bench = bench_of(tmp_path, sizing=CUT)
    for _batch in range(2):
        bench.again(runner=Stopped(lambda unit: stops[unit % len(stops)])).pipeline().step()
    while bench.again(runner=Stopped(lambda _unit: NEVER)).pipeline().step():
        pass

    found = bench.entries()
    assert found[1].sources[0].has_holes or stops == [1, 1, 1]
    assert whole(found) == (2_000, 1_715, 285)
    rows = quarantined_rows(bench.table, [file for one in found for file in one.quarantine])
    assert sorted(row["raw"] for row in rows) == sorted(lines[6::7])
    assert {row["line"] for row in rows} - {None} <= set(range(7, 2_001, 7))
    assert all(lines[row["line"] - 1] == row["raw"] for row in rows if row["line"] is not None)
    assert any(row["line"] is not None for row in rows)


class Speculative(InProcessRunner):
    """Runs every unit twice, as Spark does with slow ones, and takes the outcome of one attempt."""

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        super().run(units, work)
        return super().run(units, work)


class Dying(InProcessRunner):
    """A job of several files is done, and dies before anybody hears of it."""

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        done = super().run(units, work)
        if sum(len(unit.files) for unit in units) > 1:
            raise WorkersDied("the workers died")
        return done


@pytest.mark.parametrize("runner", [Speculative(), Dying()], ids=["speculation", "bisecting"])
def test_what_several_attempts_quarantined_is_named_once(tmp_path: Path, runner: Runner) -> None:
    put(tmp_path / "in", "a.ndjson", text([good(1), bad(1)]))
    put(tmp_path / "in", "b.ndjson", text([bad(2)]))
    bench = bench_of(tmp_path)
    bench.again(runner=runner).pipeline().step()

    written = list((bench.table / "_blizzard/default/quarantine").iterdir())
    assert len(written) > len(bench.entries()[1].quarantine)
    assert named(bench.table) == [bad(1), bad(2)]
    assert whole(bench.entries()) == (3, 1, 2)


def test_a_file_is_read_again_when_the_quarantine_is_turned_on_or_its_limit_is_higher(
    tmp_path: Path,
) -> None:
    put(tmp_path / "in", "a.ndjson", text([good(1), bad(1), bad(2)]))
    bench_of(tmp_path, quarantine=None).pipeline().step()
    low = QuarantineLimits(max_records=1)
    assert bench_of(tmp_path, quarantine=low).pipeline().step()
    assert not bench_of(tmp_path, quarantine=low).pipeline().step()
    bench = bench_of(tmp_path, quarantine=QuarantineLimits(max_records=2))
    assert bench.pipeline().step()

    records = [one.sources[0] for one in bench.entries()[1:]]
    assert [one.failure is None for one in records] == [False, False, True]
    assert (records[2].rows, records[2].quarantined) == (1, 2)
    assert named(bench.table) == [bad(1), bad(2)]


def test_what_a_redo_gives_up_waits_no_longer_and_is_quarantined_again(desk: OpenTable) -> None:
    """The lines are read again with their file: they must not be in quarantine twice."""
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    known = set(desk.table.glob("*.parquet"))
    desk.land("b.ndjson", {"id": 2}, {"id": "x"})
    desk.blizzard()
    (lost,) = set(desk.table.glob("*.parquet")) - known
    lost.unlink()
    desk.penguin()
    before = entries(desk.table)[-1].quarantine

    found, entry = desk.redo()
    assert entry is not None, found
    (resolved,) = entries(desk.table)[-1].resolved
    assert (resolved.old, resolved.lines, resolved.left) == (before[0].filename, 1, None)
    desk.ingest()
    status = json.loads(desk.cli("status", "--output", "json").stdout)
    assert status["quarantine"] == {"waiting": 1, "replayed": 0, "filtered": 0, "discarded": 0}
    assert status["totals"]["quarantined"] == 1
    assert [row["id"] for row in desk.rows()] == [1, 2]
