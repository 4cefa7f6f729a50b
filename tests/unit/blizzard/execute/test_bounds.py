"""A batch that ends before all of its files are read, because it is old enough."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from blizzard.events import BatchCutShort
from blizzard.model.progress import Instruction, Supervisor
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.worker.download import OpenedStores
from blizzard.worker.progress import ProgressChannel, ProgressClient, ProgressServer
from blizzard.worker.unit import run_unit
from lakebed.documents.records import SourceRecord
from tests.support.bounds import FOR_EVER, SMALL_PIECES, settings_of
from tests.support.builders import (
    Bench,
    Hands,
    gz,
    listed,
    ndjson,
    put,
    rows,
    source_settings,
    unit,
    work,
)
from tests.support.readers import journaled_ids as ids
from tests.support.runner import InProcessRunner, RunsOnly
from tests.support.slow import SlowRunner, slow


def bench_of(folder: Path, *, pace: float = 1.0, **given: Any) -> Bench:
    hands = Hands()
    return Bench(settings_of(folder, **given), runner=SlowRunner(hands, pace), hands=hands)


def drained(bench: Bench) -> list[list[SourceRecord]]:
    """Step as `--once` does, and give the source files of each entry."""
    pipeline = bench.pipeline()
    steps = 0
    while pipeline.step():
        steps += 1
        assert steps < 200, "it never comes to an end"
    return [list(entry.sources) for entry in bench.entries()[1:]]


def test_a_batch_that_is_old_enough_is_handed_in_and_the_rest_goes_on(tmp_path: Path) -> None:
    """HOLES W29: files that are whole are journaled in time, those not begun come next."""
    for number in range(10):
        put(tmp_path / "in", f"{number}.ndjson", ndjson(rows(10, number * 10)))
    bench = bench_of(tmp_path, pace=15)
    found = drained(bench)

    assert [[each.path for each in batch] for batch in found] == [
        ["0.ndjson", "1.ndjson", "2.ndjson"],
        ["3.ndjson", "4.ndjson", "5.ndjson"],
        ["6.ndjson", "7.ndjson", "8.ndjson"],
        ["9.ndjson"],
    ]
    assert all(each.complete for batch in found for each in batch)
    assert ids(bench.table) == list(range(100))
    told = [event.sentence() for event in bench.said(BatchCutShort)]
    assert told[0] == (
        "default: batch 1 was closed after 7 min 30 s (rollover_timeout_secs); the next one "
        "continues with 7 source files, or with what is left to read in them"
    )
    assert len(told) == 3


def test_an_open_file_waits_no_longer_though_no_row_comes_for_it(tmp_path: Path) -> None:
    """HOLES W29: rows of a small file are handed off while a large one is still being read."""
    put(tmp_path / "in", "a.ndjson", ndjson(rows(5)))
    put(tmp_path / "in", "b.ndjson.gz", gz(ndjson(rows(2_000, 5))))
    bench = bench_of(tmp_path)
    began = bench.hands.at
    pipeline = bench.pipeline()
    assert pipeline.step()

    small, large = bench.entries()[1].sources
    assert (small.rows, small.complete) == (5, True)
    assert 0 < large.rows < 400
    assert not large.complete
    assert bench.hands.at - began < 400, "not the 2,005 s that the batch would have taken"
    while pipeline.step():
        pass
    assert ids(bench.table) == list(range(2_005))


@pytest.mark.parametrize("name", ["large.ndjson", "large.ndjson.gz"])
def test_the_rest_of_a_file_is_gone_on_with_at_once_and_not_at_the_next_look(
    tmp_path: Path, name: str
) -> None:
    """HOLES W29: while polling, neither a trigger nor a poll is waited for."""
    body = ndjson(rows(1_000))
    put(tmp_path / "in", name, gz(body) if name.endswith("gz") else body)
    source = source_settings(tmp_path / "in", poll_interval=FOR_EVER)
    bench = replace(bench_of(tmp_path, sources=(source,)), once=False)
    pipeline = bench.pipeline()
    assert not pipeline.step(), "it waits for its batch"
    bench.hands.at += 300
    steps = 0
    while pipeline.step():
        steps += 1

    assert steps > 2
    assert ids(bench.table) == list(range(1_000))


def test_a_block_that_takes_longer_than_a_batch_may_still_gets_every_batch_further(tmp_path: Path):
    """HOLES W29: no batch ends without something in it."""
    put(tmp_path / "in", "a.ndjson", ndjson(rows(600)))
    put(tmp_path / "in", "b.ndjson.gz", gz(ndjson(rows(600, 600))))
    bench = bench_of(tmp_path, pace=1_000, rollover=0.001)
    found = drained(bench)

    assert all(sum(each.lines for each in batch) > 0 for batch in found)
    assert len(found) > 8
    assert ids(bench.table) == list(range(1_200))


def test_what_has_to_be_skipped_first_does_not_eat_the_time_of_every_batch(tmp_path: Path) -> None:
    """HOLES W29: a resumed file is read for at least as long as it took to come there."""
    body = gz(ndjson(rows(2_000)))
    put(tmp_path / "in", "large.ndjson.gz", body)
    bench = bench_of(tmp_path, rollover=100)
    runner = SlowRunner(bench.hands, byte_pace=250 / len(body))
    found = drained(replace(bench, runner=runner))

    assert ids(bench.table) == list(range(2_000))
    assert 4 < len(found) < 15, "it would be 70 with a block in each"


def test_a_unit_that_the_driver_does_not_reach_goes_by_its_own_age(tmp_path: Path) -> None:
    """HOLES W29: the line is advisory."""
    for number in range(4):
        put(tmp_path / "in", f"{number}.ndjson", ndjson(rows(10)))
    hands = Hands()
    given = work(
        tmp_path / "in",
        tmp_path / "table",
        clock=hands.clock,
        max_seconds=15,
        sizing=SMALL_PIECES,
    )
    line = ProgressChannel(progress=slow(hands, 1))
    outcome = run_unit(unit(listed(tmp_path / "in")), given, OpenedStores(given), line)

    assert [each.path for each in outcome.sources] == ["0.ndjson", "1.ndjson"]
    assert outcome.handed_in


def test_a_unit_that_was_told_to_go_on_reads_its_first_file_whatever_comes_next(tmp_path: Path):
    """HOLES W29: between the first word and the first file the time may be over."""

    @dataclass
    class Changing(ProgressChannel):
        asked: int = 0

        @property
        def hand_in(self) -> bool:
            self.asked += 1
            return self.asked > 1

    for number in range(3):
        put(tmp_path / "in", f"{number}.ndjson", ndjson(rows(10)))
    given = work(tmp_path / "in", tmp_path / "table", sizing=SMALL_PIECES)
    outcome = run_unit(unit(listed(tmp_path / "in")), given, OpenedStores(given), Changing())

    assert [each.path for each in outcome.sources] == ["0.ndjson"]


def test_a_batch_in_which_nothing_was_read_in_time_is_done_again_without_a_bound(tmp_path: Path):
    """HOLES W29: a worker that dies and is run again late may find the time over."""

    @dataclass
    class Late(RunsOnly):
        parallelism: int = 2
        bounds: list[float | None] = field(default_factory=list)

        def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
            self.bounds.append(work.max_seconds)
            if work.max_seconds is None:
                return InProcessRunner().run(units, work)
            return [
                UnitOutcome(unit=each.name, sources=(), files=(), handed_in=True) for each in units
            ]

    put(tmp_path / "in", "a.ndjson", ndjson(rows(3)))
    runner = Late()
    bench = Bench(settings_of(tmp_path), runner=runner)

    assert [len(batch) for batch in drained(bench)] == [1]
    assert ids(bench.table) == [0, 1, 2]
    assert runner.bounds == [300, None]


def test_the_age_counts_from_the_first_word_and_whoever_says_it_goes_on() -> None:
    """HOLES W29: Spark may need longer to begin than a batch may take."""
    hands = Hands()
    supervisor = Supervisor(10, hands.seconds)
    hands.at += 1_000

    assert supervisor.answer() is Instruction.GO_ON
    hands.at += 10
    assert supervisor.answer() is Instruction.GO_ON
    hands.at += 0.1
    assert supervisor.answer() is Instruction.HAND_IN
    assert Supervisor(None, hands.seconds).answer() is Instruction.GO_ON


def test_a_unit_hears_that_it_is_to_hand_in_unless_it_is_run_again() -> None:
    """HOLES W29: a file that kills its worker must not hide behind the end of the batch."""
    server = ProgressServer(
        "127.0.0.1",
        stop_requested=lambda: False,
        heard=lambda *_: None,
        instruction=lambda _unit: Instruction.HAND_IN,
    )
    with ProgressClient(server.address, "p/1", patience=300) as line:
        assert (line.hand_in, line.stop_soon) == (True, False)
    with ProgressClient(server.address, "p/1", again=True, patience=300) as line:
        assert (line._answered.is_set(), line.hand_in) == (True, False)
    server.close()
