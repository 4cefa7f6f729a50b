"""What source files are expected to become, from what others have become."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from blizzard.model.source.forecast import FULL_ENOUGH, MOST_OVER, PARQUET_PER_NDJSON, Forecast
from blizzard.model.source.form import codec_of
from lakebed.documents.entry import Entry, decode_entry
from tests.support.builders import entry_body, finished_file, record, source_file

SIZE = 1_000_000


def entry(sources: dict[str, int], files: list[tuple[str, str, int]], **given: Any) -> Entry:
    """Return an entry with source files by size, and data files: unit, region, size."""
    return replace(
        decode_entry(entry_body(1), "1"),
        sources=tuple(replace(record(path, size=size), **given) for path, size in sources.items()),
        files=tuple(
            replace(
                finished_file(f"{number}", unit=unit),
                size=size,
                partition_values={"region": region},
            )
            for number, (unit, region, size) in enumerate(files)
        ),
    )


def after(*entries: Entry) -> Forecast:
    forecast = Forecast()
    for one in entries:
        forecast = forecast.after(one, lambda _source, path: codec_of(path))
    return forecast


def test_the_first_entry_replaces_what_is_usual_and_later_ones_count_half():
    once = after(entry({"a.ndjson": 1000}, [("0.0", "x", 100)]))
    assert once == Forecast(ratio=0.1, partitions=1.0, learned=True)
    twice = after(
        entry({"a.ndjson": 1000}, [("0.0", "x", 100)]),
        entry({"a.ndjson": 1000}, [("0.0", "x", 300)]),
    )
    assert twice.ratio == pytest.approx(0.2)


@pytest.mark.parametrize("given", [{"complete": False}, {"skipped": 3}])
def test_a_file_that_was_read_in_part_tells_nothing(given: dict[str, Any]):
    assert not after(entry({"a.ndjson": 1000}, [("0.0", "x", 100)], **given)).learned


def test_an_entry_without_data_files_tells_nothing():
    assert not after(entry({"a.ndjson": 1000}, [])).learned
    gc = replace(entry({"a.ndjson": 1000}, [("0.0", "x", 9)]), kind="gc")
    assert not after(gc).learned


def test_partitions_are_those_that_one_unit_divides_its_rows_among():
    by_row = entry({"a": 9}, [("0.0", "x", 100), ("0.0", "y", 100), ("1.0", "x", 100)])
    assert after(by_row).partitions == pytest.approx((200 * 2 + 100 * 1) / 300)
    by_path = entry({"a": 9}, [("0.0", "x", 100), ("1.0", "y", 100)])
    assert after(by_path).partitions == 1.0
    late = entry({"a": 9}, [("0.0", "x", 1000), ("0.0", "y", 10)])
    assert after(late).partitions == pytest.approx(1.02, abs=0.01)


FILLED = st.floats(0.01, 40.0)


def sizes_of(total: float, closes_at: int) -> list[float]:
    """Return the files that a writer makes of so many bytes, and that closes each as it should."""
    full = closes_at * FULL_ENOUGH
    count = math.floor(total / full)
    rest = total - count * full
    return [full] * count + ([rest] if rest > 1 else [])


@given(FILLED)
def test_no_file_is_meant_to_exceed_what_is_asked_for_by_more_than_a_quarter(filled: float):
    forecast = Forecast(learned=True)
    files = [source_file(size=int(filled * SIZE / PARQUET_PER_NDJSON))]
    closes_at = forecast.closes_at(files, SIZE)
    assert closes_at is not None
    assert closes_at <= MOST_OVER * SIZE


@given(FILLED, st.floats(0.98, 1.02))
@example(1.1699, 1.02)
def test_a_good_forecast_leaves_no_small_rest(filled: float, error: float):
    """Files come out at half of what is asked for at least, where there is as much at all."""
    assume(filled > 0.55)
    files = [source_file(size=int(filled * SIZE / PARQUET_PER_NDJSON))]
    closes_at = Forecast(learned=True).closes_at(files, SIZE)
    assert closes_at is not None
    assume(filled * abs(error - 1) < 0.08)  # an error in a unit of many files is its last one's
    assert min(sizes_of(filled * SIZE * error, closes_at)) > 0.5 * SIZE
