"""A stop in the middle: what is in hand comes to a good end, the rest is read by the next run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from blizzard.execute.bisect import PATIENCE, PATIENCE_ALONE
from blizzard.model.settings import DecodeLimits, Sizing
from blizzard.model.source.file import cut
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.plan.planner import Planner
from blizzard.worker.download import OpenedStores
from blizzard.worker.unit import run_unit
from tests.support.builders import (
    Bench,
    gz,
    listed,
    ndjson,
    pipeline_settings,
    put,
    rows,
    unit,
    work,
)
from tests.support.readers import journaled_ids as ids
from tests.support.runner import RunsOnly
from tests.support.stops import NEVER, Told, all_at


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Land a file of several blocks."""
    put(tmp_path / "in", "large.ndjson.gz", gz(ndjson(rows(100_000))))
    return tmp_path


def stopped_early(root: Path) -> Bench:
    """Return a run that is stopped after the first record, and calls every file large."""
    settings = pipeline_settings(root / "in", root / "table", sizing=Sizing(decoded_budget=1))
    return Bench(settings, runner=all_at(1))


def test_a_unit_that_starts_after_the_stop_reads_nothing(tmp_path: Path) -> None:
    """The files stay for the next run: they are neither read nor failed."""
    put(tmp_path / "in", "a.ndjson", ndjson(rows(3)))
    outcome = run_unit(
        unit(listed(tmp_path / "in")),
        (given := work(tmp_path / "in", tmp_path / "table")),
        OpenedStores(given),
        Told(0),
    )

    assert (outcome.sources, outcome.files) == ((), ())


def test_small_files_in_hand_are_finished_and_the_next_is_not_begun(tmp_path: Path) -> None:
    """A stop waits for no more than the small files that are read together."""
    for name in ("a", "b", "c"):
        put(tmp_path / "in", f"{name}.ndjson", ndjson(rows(3)))
    sizing = Sizing(decoding=DecodeLimits(max_combined=2))
    given = work(tmp_path / "in", tmp_path / "table", sizing=sizing)
    outcome = run_unit(unit(listed(tmp_path / "in")), given, OpenedStores(given), Told(1))

    assert [(each.path, each.rows) for each in outcome.sources] == [
        ("a.ndjson", 3),
        ("b.ndjson", 3),
    ]
    assert sum(file.record_count for file in outcome.files) == 6


def test_a_large_file_is_journaled_partly_read_and_gone_on_with(large: Path) -> None:
    """Records 1 to n are in, the next run skips n lines and reads the rest, once (L02)."""
    bench = stopped_early(large)
    bench.pipeline().step()
    first = bench.entries()[1].sources[0]

    assert not first.complete
    assert 0 < first.rows < 100_000
    assert first.lines == first.rows
    assert bench.again(runner=all_at(NEVER)).pipeline().step()
    second = bench.entries()[2].sources[0]
    assert second.complete
    assert second.skipped == first.lines
    assert first.rows + second.rows == 100_000
    assert ids(large / "table") == list(range(100_000))
    assert not bench.again().pipeline().step()


def test_a_part_of_a_file_that_was_replaced_is_a_change_of_the_file(tmp_path: Path) -> None:
    """Two byte ranges of two different objects never make one file (D17)."""
    put(tmp_path / "in", "a.ndjson", ndjson(rows(3_000)))
    (file,) = listed(tmp_path / "in")
    parts = Planner(parallelism=1, file_size=1 << 27).plan([replace(file)])[0]
    put(tmp_path / "in", "a.ndjson", ndjson(rows(3_001)))
    given = work(tmp_path / "in", tmp_path / "table")
    whole = replace(parts, files=(replace(file, part=cut(file.size, 2)[1]),))
    (record,) = run_unit(whole, given, OpenedStores(given)).sources

    assert record.failure is not None
    assert record.failure.code == "object_changed"


def test_a_file_whose_runs_are_all_stopped_early_is_not_taken_for_one_that_kills(tmp_path: Path):
    """HOLES L02, W19: a process that stops in good order has not died."""

    @dataclass
    class Stopped(RunsOnly):
        parallelism: int = 2

        def run(self, units: Sequence[WorkUnit], _work: Work) -> list[UnitOutcome]:
            return [UnitOutcome(unit=unit.name, sources=(), files=()) for unit in units]

    put(tmp_path / "in", "a.ndjson", ndjson(rows(3)))
    bench = Bench(pipeline_settings(tmp_path / "in", tmp_path / "table"))
    for number in range(2 + PATIENCE + PATIENCE_ALONE):
        assert not bench.again(run_id=f"run-{number}", runner=Stopped()).pipeline().step()
    assert bench.pipeline().step()
    (record,) = bench.entries()[-1].sources
    assert (record.failure, record.rows) == (None, 3)
