"""The arithmetic of docs/scaling.md, against what a person can check and against the code."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from bench import figures, limits, scaling, writing
from bench.arithmetic import (
    DAY,
    GB,
    PB,
    ROLLING,
    SOURCE,
    TABLE,
    TB,
    Limits,
    Load,
    advised,
    alone_seconds,
    batches_of,
    checkpoints_kept,
    commits_of,
    cores_for,
    growth_of,
    price_of,
    requests_of,
    strain_of,
    sweeps_of,
    total,
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


def test_source_files_are_counted_as_they_are_packed() -> None:
    assert Load(plain=600 * GB, file_size=MB).files(GIVEN) == pytest.approx(100_000)


def test_a_small_load_makes_a_batch_when_its_first_file_has_waited_long_enough() -> None:
    found = batches_of(Load(plain=10 * GB, file_size=MB), 1, Limits(), GIVEN)
    assert found.a_day == pytest.approx(DAY / ROLLING.rollover)


def test_no_batch_is_smaller_than_a_source_file() -> None:
    found = batches_of(Load(plain=10 * GB, file_size=128 * MB), 1, Limits(), GIVEN)
    assert (found.files, found.plain) == (1, 128 * MB * 6)
    assert found.a_day == pytest.approx(10 * GB / (128 * MB * 6))


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


def test_with_nothing_set_the_units_of_many_cores_write_small_files() -> None:
    found = batches_of(Load(plain=100 * TB, file_size=MB), 200, Limits(), GIVEN)
    assert found.data_file_size == pytest.approx(10_000 * MB * 6 * 0.2 / 200)


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


def test_each_source_file_is_read_by_one_request() -> None:
    asked = day_of(Load(plain=600 * GB, file_size=MB))
    assert asked["reading source files"] == {"get": pytest.approx(100_000)}


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


def test_a_sweep_lists_a_page_for_each_thousand_names() -> None:
    without = day_of(PETABYTE, replace(GIVEN, swept_days=0))["finding source files"]
    swept = day_of(PETABYTE, replace(GIVEN, swept_days=3))["finding source files"]
    names = 3 * PETABYTE.files(GIVEN)
    assert swept["list"] - without["list"] == pytest.approx(24 * names / 1000)


def test_a_large_source_is_swept_every_hour_and_a_small_one_at_every_poll() -> None:
    assert sweeps_of(10**7) == 24
    assert sweeps_of(500) == DAY / SOURCE.poll_interval


def test_writes_and_reads_have_prices_of_their_own_and_deletes_none() -> None:
    prices = Prices(per_1000_writes=5.0, per_1000_reads=0.4)
    writes: dict[str, float] = {"put": 100, "list": 200, "begin": 300, "part": 200, "complete": 200}
    assert price_of(writes, prices) == pytest.approx(5.0)
    assert price_of({"get": 600, "head": 400}, prices) == pytest.approx(0.4)
    assert price_of({"delete": 10**6}, prices) == 0


def test_requests_are_added_up_by_kind() -> None:
    assert total({"get": 1, "put": 2}, {"get": 3}) == {"get": 4, "put": 2}


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


def test_penguin_pays_for_every_active_file() -> None:
    strain = strain_of(10**6, 100, COSTS)
    assert strain.memory == pytest.approx(8 * GB)
    assert strain.commit == pytest.approx(0.2 + 80 + 0.025)


def test_every_tenth_commit_leaves_a_checkpoint_of_all_active_files() -> None:
    # 30 days with 20 commits make 60 checkpoints, of half the files on average.
    assert checkpoints_kept(10_000, 20, COSTS) == pytest.approx(60 * 5_000 * 1_400)


def test_the_driver_works_alone_for_the_books_of_a_batch() -> None:
    found = batches_of(PETABYTE, 386, advised(PETABYTE, 386, GIVEN), GIVEN)
    expected = 0.2 + 10 * 0.03 + found.files * 20e-6
    assert alone_seconds(found, COSTS, GIVEN) == pytest.approx(expected)


def test_what_breaks_comes_in_the_order_of_the_loads() -> None:
    found = limits.breaks(16 * MB, COSTS, GIVEN)
    assert [one.load for one in found] == sorted(one.load for one in found)
    assert len({one.what for one in found}) == len(found)


def test_smaller_source_files_break_the_same_things_no_later() -> None:
    small = {one.what: one.load for one in limits.breaks(MB, COSTS, GIVEN)}
    large = {one.what: one.load for one in limits.breaks(128 * MB, COSTS, GIVEN)}
    assert all(small[what] <= large[what] for what in large)


def test_memory_breaks_when_a_month_of_files_fills_it() -> None:
    found = next(one for one in limits.breaks(16 * MB, COSTS, GIVEN) if "8 GB" in one.what)
    assert found.at == pytest.approx(10**6)
    written = found.load * 30 * GIVEN.parquet_ratio / mebibytes(128)
    assert written == pytest.approx(found.at)


def test_penguin_keeps_up_while_a_full_commit_takes_no_longer_than_filling_it() -> None:
    rate = limits.most_committed(COSTS)
    most = TABLE.max_files_per_commit
    active = rate * DAY * 30
    assert strain_of(active, most, COSTS).commit == pytest.approx(most / rate)


def test_the_default_batch_fills_the_files_of_the_cores_that_are_named_and_no_more() -> None:
    cores = limits.most_cores(16 * MB, GIVEN)
    load = Load(plain=PB, file_size=MB)
    fits = Limits(max_files=1e9)
    assert batches_of(load, int(cores), fits, GIVEN).data_file_size == pytest.approx(mebibytes(128))
    assert batches_of(load, int(cores) + 2, fits, GIVEN).data_file_size < mebibytes(127)


def test_names_are_written_more_than_once_and_seldom() -> None:
    assert limits.rewrites(1) == 1
    assert limits.rewrites(2) == 2
    assert limits.rewrites(1000) < 10


def test_the_throughput_is_that_of_the_results_where_there_are_some() -> None:
    seconds = {"blizzard": {"seconds": [9.0, 5.0, 1.0]}, "other": {"seconds": [0.1]}}
    results = {"workloads": {"a": {"bytes": 10**9, "contestants": seconds}}}
    assert figures.bytes_per_core(results) == pytest.approx(10**8)
    assert figures.bytes_per_core({**results, "machine": {"cores": 4}}) == pytest.approx(10**8 / 2)


def test_the_throughput_is_supposed_where_there_is_no_result() -> None:
    failed = {"bytes": 10**9, "contestants": {"blizzard": {"seconds": [], "error": "no Java"}}}
    some: list[figures.Figures | None] = [None, {"workloads": {}}, {"workloads": {"a": failed}}]
    for results in some:
        assert figures.bytes_per_core(results) == figures.SUPPOSED_BYTES_PER_CORE


def test_costs_are_those_of_the_largest_sizes_measured() -> None:
    growth = [
        {"measure": name, "n": n, "cpu_seconds": 0.5 + n / 1000, "requests": n // 100}
        for name in ("first_look", "sweep", "planning", "start", "commit")
        for n in (1000, 10_000)
    ]
    sizes = json.loads((figures.HERE / "sizes.json").read_text())
    sizes["log"] = [
        {**sizes["log"][0], "active": n, "memory_bytes": 5 * 10**7 + 7 * n} for n in (10, 1000)
    ]
    found = figures.costs_of(growth, sizes, None)
    assert found.sweep == pytest.approx(10.5 / 10_000)
    assert found.sweep_requests == pytest.approx(0.01)
    assert found.memory_per_active == pytest.approx(7)
    assert found.memory_fixed == pytest.approx(5 * 10**7)
    assert found.commit_per_file == pytest.approx(10.5 / 10_000)


def test_a_page_without_a_place_for_a_table_is_an_error() -> None:
    page = "<!-- a: begin -->old<!-- a: end -->"
    assert scaling.filled(page, {"a": "new"}) == "<!-- a: begin -->\nnew\n<!-- a: end -->"
    with pytest.raises(ValueError, match="unpack"):
        scaling.filled(page, {"b": "new"})


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (writing.number(0), "0"),
        (writing.number(1234), "1,230"),
        (writing.number(16_666), "16.7 k"),
        (writing.number(1_500_000), "1.5 M"),
        (writing.weight(403), "403 B"),
        (writing.weight(17_179_869_184), "17.2 GB"),
        (writing.duration(0.5), "500 ms"),
        (writing.duration(67.1), "67.1 s"),
        (writing.duration(7200), "2 h"),
        (writing.dollars(0.001), "< 0.01"),
        (writing.dollars(371.2), "371"),
        (writing.dollars(0), "0.00"),
    ],
)
def test_numbers_are_written_as_a_person_reads_them(written: str, expected: str) -> None:
    assert written == expected
