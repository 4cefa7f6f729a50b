"""The benchmarks' data and arithmetic are right, and the pages say what their figures say."""

import json
import random
import re
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import pytest

from bench import figures, growth, hard, page, plots, race, scaling
from bench.arithmetic import ROLLING, TB, Limits, Load, batches_of, upload_of
from bench.compaction import DAYS, results
from bench.figures import Assumptions, Prices
from bench.section import DOCS
from bench.workloads import WORKLOADS, Workload
from blizzard.model.settings import MAX_LINE_BYTES
from blizzard.plan.planner import Planner
from blizzard.plan.trigger import Timing
from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.lines import blocks
from lakebed.types import Codec
from lakebed.units import mebibytes
from tests.support.builders import NOON, pipeline_settings, source_file

each_workload = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())


@each_workload
def test_every_record_fits_the_schema_on_the_fast_path(workload: Workload):
    """A figure that was measured on the exact path would be the wrong one."""
    lines = list(islice(workload.lines(random.Random(0), 0, 300), 300))
    data = "".join(f"{line}\n" for line in lines).encode()
    (block,) = blocks([data])
    decoded = FastPath(workload.schema, max_line_bytes=MAX_LINE_BYTES).read(block)
    assert decoded is not None
    assert decoded.batch.num_rows == 300
    assert not decoded.dropped


def test_the_page_says_what_the_figures_say():
    figures = json.loads(race.FIGURES.read_text())
    written = page.SECTION.read()
    for line in (*page.table(figures), *page.memory(figures)):
        assert line in written


GIVEN = Assumptions()


def test_the_page_says_what_the_figures_give() -> None:
    page = scaling.PAGE.read_text()
    found = scaling.tables(figures.read_costs(), Prices(), GIVEN)
    assert scaling.filled(page, found) == page, "run python -m bench.scaling --write"


def test_a_batch_is_cut_as_the_plan_cuts_it_and_starts_when_the_trigger_says() -> None:
    """The arithmetic repeats rules of the code; here they are asked."""
    cores, size = 4, 10**6
    load = Load(plain=10 * TB, file_size=size)
    found = batches_of(load, cores, Limits(), GIVEN)

    def starts(count: int) -> bool:
        timing = Timing(settings=pipeline_settings(Path("/in"), Path("/table")))
        soon = NOON + timedelta(seconds=1)
        return timing.is_time(files[:count], more=False, cores=cores, now=soon)

    files = [
        source_file(f"{number:06d}.ndjson.gz", size=size, codec=Codec.GZIP)
        for number in range(int(found.files) + 2)
    ]
    assert starts(int(found.files) + 1)
    assert not starts(int(found.files))
    units = Planner(parallelism=cores, file_size=ROLLING.file_size).plan(files[: int(found.files)])
    written = found.plain * GIVEN.parquet_ratio / found.data_file_size
    assert len(units) == pytest.approx(written, abs=1.5)


def test_uploads_ask_what_was_counted() -> None:
    counted = json.loads((figures.HERE / "sizes.json").read_text())["requests"]
    assert upload_of(mebibytes(12), part_size=mebibytes(5)) == counted["data_file_of_three_parts"]
    assert upload_of(mebibytes(4)) == counted["data_file_in_one_piece"]
    assert upload_of(mebibytes(128))["part"] == 4


PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
FOUND = results()


@pytest.mark.parametrize("place", range(len(DAYS)), ids=[day.name for day in DAYS])
def test_after_a_day_there_are_at_most_twice_as_many_files_as_need_be(place):
    _day, result = FOUND[place]
    assert result.files <= 2 * result.ideal
    assert result.amplification < 3
    assert result.per_gb < result.per_gb_before


def test_the_page_has_these_figures():
    page = PAGE.read_text()
    for day, kept in FOUND:
        (row,) = re.findall(rf"^\| {re.escape(day.name)} \|.*$", page, re.MULTILINE)
        assert f"| {kept.files:,} | {kept.per_gb:,.1f} | {kept.ideal:,} |" in row


def test_the_growth_page_shows_the_figures_that_are_kept() -> None:
    found = json.loads(growth.FIGURES.read_text())["figures"]
    again = "run python -m bench.growth --draw"
    assert growth.SECTION.read() == growth.table_of(found), again
    assert plots.mark_of(growth.panels_of(found)) in growth.PLOT.read_text(), again
    assert f"images/{growth.PLOT.name}" in (DOCS / "performance.md").read_text()


def test_every_measure_has_a_panel_with_all_its_sizes() -> None:
    found = json.loads(growth.FIGURES.read_text())["figures"]
    panels = growth.panels_of(found)
    assert len(panels) == len(growth.MEASURES)
    for panel, name in zip(panels, growth.MEASURES, strict=True):
        sizes = [one["n"] for one in found if one["measure"] == name]
        assert [n for n, _seconds in panel.lines["CPU seconds"]] == sizes


@pytest.mark.parametrize(
    ("kind", "found", "expected"),
    [
        ("nothing hard", {}, (0, 0)),
        ("1.5 in an integer", {"id": 10}, (1, 0)),
        ("1.5 in an integer", {"id": None}, (0, 1)),
        ("1.5 in an integer", {"id": None, "_rescued": '{"id": 10.5}'}, (0, 0)),
        ("1.5 in an integer", {"id": None, "_rescued": '{"id": 10.50001}'}, (0, 1)),
        ("2^63 in an integer", {"id": -(2**63) + 10}, (1, 0)),
        ("1e400 in a float", {"amount": float("inf")}, (1, 0)),
        ("a number of 30 digits in a float", {"amount": 0.1}, (0, 0)),
        ("a field without a column", {}, (0, 1)),
        ("a field twice", {"user": "somebody else"}, (1, 0)),
        ("NUL in a string", {"user": "a"}, (1, 0)),
        ("a time with an offset", {"at": datetime(2024, 1, 1, 6, 30, 0, 500_000, UTC)}, (0, 0)),
        ("a time with an offset", {"at": datetime(2024, 1, 1, 12, 0, 0, 500_000, UTC)}, (1, 0)),
        ("a line cut short", None, (0, 1)),
    ],
)
def test_the_judge_of_hard_values_tells_kept_from_wrong_and_lost(kind, found, expected):
    line = hard.KINDS[kind](10)
    at = datetime(2024, 1, 1, 12, tzinfo=UTC)
    usual = {"id": 10, "user": "user-10", "action": "view", "amount": 10.25, "member": True}
    rows = [] if found is None else [{**usual, "at": at, **found}]
    verdict = hard.judged([line], hard.Found(rows=rows))
    assert (verdict.wrong, verdict.lost) == expected
    verdict = hard.judged([line], hard.Found(rows=(), quarantined=frozenset([line])))
    assert (verdict.wrong, verdict.lost) == (0, 0)
    assert hard.judged([line], None).share == 1.0
