"""The arithmetic of docs/scaling.md, against what a person can check and against the code."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from bench import figures, limits, scaling
from bench.arithmetic import (
    GB,
    PB,
    ROLLING,
    TB,
    Limits,
    Load,
    advised,
    batches_of,
    commits_of,
    cores_for,
    growth_of,
    requests_of,
    upload_of,
)
from bench.figures import Assumptions, Costs, Prices
from blizzard.model.settings import RollingPolicy
from blizzard.plan.recognise import plan
from blizzard.plan.trigger import Waiting, should_start
from lakebed.types import Codec
from lakebed.units import mebibytes
from tests.support.builders import NOON, source_file

MB = 10**6
GIVEN = Assumptions()
COSTS = Costs(
    bytes_per_core=60e6,
    first_look=20e-6,
    sweep=40e-6,
    sweep_requests=0.0011,
    plan=5e-6,
    encode=15e-6,
    decode=10e-6,
    merge=20e-6,
    start_requests=60,
    entry_fixed=2_000,
    entry_per_source=400,
    entry_per_data_file=1_700,
    name_bytes=135,
    commit_bytes=1_700,
    checkpoint_bytes=1_400,
    memory_fixed=10**8,
    memory_per_active=7_900,
    commit_fixed=0.2,
    commit_per_active=80e-6,
    commit_per_file=250e-6,
    poll=0.01,
    checkpoint_per_active=35e-6,
    requests={
        "batch": {"get": 6, "put": 2, "list": 1, "delete": 1},
        "keep": {"put": 5, "list": 1},
        "source_file": {"get": 1},
        "penguin_poll": {"get": 40, "list": 5},
        "penguin_commit": {"get": 100, "put": 2},
        "penguin_file": {"head": 1},
    },
)
PETABYTE = Load(plain=PB, file_size=16 * MB)


def day_of(load: Load, given: Assumptions = GIVEN) -> dict[str, dict[str, float]]:
    cores = cores_for(load, COSTS, given)
    found = batches_of(load, cores, advised(load, cores, given), given)
    return requests_of(load, found, COSTS, given)


def test_the_page_says_what_the_figures_give() -> None:
    page = scaling.PAGE.read_text()
    found = scaling.tables(figures.read_costs(), Prices(), GIVEN)
    assert scaling.filled(page, found) == page, "run python -m bench.scaling --write"


def test_a_petabyte_a_day_needs_twice_what_its_mean_needs() -> None:
    # 10^15 bytes in 86,400 s are 11.57 GB/s, which are 192.9 cores of 60 MB/s.
    assert cores_for(PETABYTE, COSTS, GIVEN) == 386
    assert cores_for(PETABYTE, COSTS, replace(GIVEN, headroom=1.0)) == 193


@pytest.mark.parametrize("plain", [TB, 100 * TB, PB])
@pytest.mark.parametrize("file_size", [MB, 16 * MB])
def test_the_advised_settings_give_data_files_of_the_size_that_is_wanted(
    plain: int, file_size: int
) -> None:
    load = Load(plain=plain, file_size=file_size)
    cores = cores_for(load, COSTS, GIVEN)
    found = batches_of(load, cores, advised(load, cores, GIVEN), GIVEN)
    assert found.data_file_size == pytest.approx(mebibytes(128))
    assert found.data_files == pytest.approx(plain / 5 / mebibytes(128))


def test_a_batch_is_cut_as_the_plan_cuts_it_and_starts_when_the_trigger_says() -> None:
    """The arithmetic repeats rules of the code; here they are asked."""
    cores, size = 4, 10**6
    load = Load(plain=10 * TB, file_size=size)
    found = batches_of(load, cores, Limits(), GIVEN)

    def starts(count: int) -> bool:
        waiting = Waiting(files=files[:count], oldest=NOON, newest=NOON, more=False)
        soon = NOON + timedelta(seconds=1)
        return should_start(waiting, RollingPolicy(), parallelism=cores, now=soon)

    files = [
        source_file(f"{number:06d}.ndjson.gz", size=size, codec=Codec.GZIP)
        for number in range(int(found.files) + 2)
    ]
    assert starts(int(found.files) + 1)
    assert not starts(int(found.files))
    units = plan(files[: int(found.files)], parallelism=cores, file_size=ROLLING.file_size)
    written = found.plain * GIVEN.parquet_ratio / found.data_file_size
    assert len(units) == pytest.approx(written, abs=1.5)


def test_uploads_ask_what_was_counted() -> None:
    counted = json.loads((figures.HERE / "sizes.json").read_text())["requests"]
    assert upload_of(mebibytes(12), part_size=mebibytes(5)) == counted["data_file_of_three_parts"]
    assert upload_of(mebibytes(4)) == counted["data_file_in_one_piece"]
    assert upload_of(mebibytes(128))["part"] == 4


def test_every_part_of_an_upload_is_counted() -> None:
    load = Load(plain=5 * 1000 * mebibytes(128), file_size=MB)  # A thousand full data files.
    asked = day_of(load)["uploading data files"]
    assert asked == pytest.approx({"begin": 1000, "part": 4000, "complete": 1000, "head": 1000})


def test_penguin_looks_at_each_file_and_polls_when_it_does_not_commit() -> None:
    load = Load(plain=PB, file_size=16 * MB)
    cores = cores_for(load, COSTS, GIVEN)
    found = batches_of(load, cores, advised(load, cores, GIVEN), GIVEN)
    asked = requests_of(load, found, COSTS, GIVEN)["penguin"]
    commits = commits_of(found)
    assert asked["head"] == pytest.approx(found.data_files)
    assert asked["get"] == pytest.approx(100 * commits + 40 * (8640 - commits))


def test_the_journal_grows_by_what_its_entries_name() -> None:
    load = Load(plain=TB, file_size=16 * MB)
    found = batches_of(load, 1, advised(load, 1, GIVEN), GIVEN)
    left = growth_of(load, found, COSTS, GIVEN)
    named = load.files(GIVEN) * 400 + found.data_files * 1700
    assert left.journal_a_day == pytest.approx(found.a_day * 2000 + named)
    assert left.log_a_day == pytest.approx(found.data_files * 1700)
    assert left.names_a_day == pytest.approx(load.files(GIVEN) * 135)
    assert left.active == pytest.approx(found.data_files * 30)
    assert left.active_optimized == pytest.approx(TB / 5 * 30 / GB + found.data_files)


def test_memory_breaks_when_a_month_of_files_fills_it() -> None:
    found = next(one for one in limits.breaks(16 * MB, COSTS, GIVEN) if "8 GB" in one.what)
    assert found.at == pytest.approx(10**6)
    written = found.load * 30 * GIVEN.parquet_ratio / mebibytes(128)
    assert written == pytest.approx(found.at)
