"""Which records the rows of a data file come from, as its entry has it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from blizzard.execute.merge import settle
from blizzard.model.files import SourceFile, UnitOutcome
from blizzard.model.settings import RollingPolicy
from blizzard.model.source.byte_range import ByteRange, cut
from blizzard.worker.ndjson.decoder import blank_lines
from blizzard.worker.ndjson.lines import Decoded
from blizzard.worker.output.origins import (
    MOST_STRETCHES,
    Cutter,
    Origins,
    Stretch,
    record_numbers,
    stretches_of,
)
from blizzard.worker.output.parquet import RollingWriter
from lakebed.clock import Clock
from lakebed.columns.schema import Field, Schema
from lakebed.documents.data_file import Run
from lakebed.documents.source_record import Unread
from lakebed.types import FieldType
from tests.support.builders import listed, ndjson, put, rows, unit
from tests.support.units import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "table").mkdir()
    return Place(tmp_path / "in", tmp_path / "table")


def decoded(number: int, gaps: list[int] | None) -> Decoded:
    """Make rows of so many lines, of which some gave none."""
    lost = 0 if gaps is None else len(gaps)
    batch = pa.record_batch({"id": pa.array(range(number - lost))})
    rowless = None if gaps is None else np.array(gaps, np.int64)
    return Decoded(batch=batch, size=1, lines=number, blank=lost, dropped={}, rowless=rowless)


def test_lines_without_gaps_are_one_stretch() -> None:
    assert stretches_of(decoded(5, None), 11) == (Stretch(11, 5, 5),)
    assert stretches_of(decoded(2, [0, 1]), 11) == ()


def test_a_few_gaps_leave_every_number_known() -> None:
    some = decoded(7, [0, 3, 6])
    assert stretches_of(some, 11) == (Stretch(12, 2, 2), Stretch(15, 2, 2))
    numbers = record_numbers(some, 11)
    assert numbers is not None
    assert numbers.tolist() == [12, 13, 15, 16]


def test_many_gaps_are_one_stretch_of_which_no_number_is_known() -> None:
    gaps = list(range(0, MOST_STRETCHES * 2 + 2, 2))
    (one,) = stretches_of(decoded(1_000, gaps), 1)
    assert (one.rows, one.records, one.is_exact) == (1_000 - len(gaps), 1_000, False)


def test_lines_that_gave_no_row_for_an_unknown_reason_are_not_guessed() -> None:
    some = replace(decoded(7, [0, 3]), rowless=None)
    assert stretches_of(some, 1) == (Stretch(1, 5, 7),)
    assert record_numbers(some, 1) is None


def test_slices_have_the_records_of_their_own_rows() -> None:
    cutter = Cutter([Stretch(1, 3, 3), Stretch(5, 4, 4), Stretch(9, 2, 6)])
    assert cutter.next(2) == (Stretch(1, 2, 2),)
    assert cutter.next(3) == (Stretch(3, 1, 1), Stretch(5, 2, 2))
    assert cutter.next(3) == (Stretch(7, 2, 2), Stretch(9, 1, 6))
    assert cutter.next(2) == ()


def test_what_continues_is_one_run_and_what_is_unknown_makes_none() -> None:
    found = Origins()
    found.add("a", 1, [Stretch(1, 3, 3)])
    found.add("a", 1, [Stretch(4, 3, 3), Stretch(8, 1, 1)])
    found.add("b", 1, [Stretch(1, 2, 9)])
    found.add("b", 1, [Stretch(1, 3, 9)])
    found.add("b", 1, [Stretch(10, 1, 4)])
    assert found.runs() == (Run(0, 1, 6, 6), Run(0, 8, 1, 1), Run(1, 1, 6, 13))
    found.add("c", 1, ())
    assert (found.runs(), found.sources) == ((), ("a", "b", "c"))


def test_runs_of_one_source_stay_few() -> None:
    found = Origins()
    for number in range(1_000):
        found.add("a", 1, [Stretch(number * 2 + 1, 1, 1)])
    runs = found.runs()
    assert len(runs) == MOST_STRETCHES
    assert sum(run.rows for run in runs) == 1_000
    last = runs[-1]
    assert last.first is not None
    assert (last.is_exact, last.first + last.records) == (False, 2_000)


@pytest.mark.parametrize(
    ("data", "blank"),
    [
        (b"a\nb\n", []),
        (b"\na\n\n \t\r\nb", [0, 2, 3]),
        (b" a\n  ", [1]),
        (b"\n", [0]),
        (b"a\n\n", [1]),
    ],
)
def test_blank_lines_are_found(data: bytes, blank: list[int]) -> None:
    assert blank_lines(data).tolist() == blank


def test_small_files_that_share_an_output_have_a_run_each(place: Place) -> None:
    put(place.source, "a.ndjson", ndjson(rows(3)) + b"\n")
    put(place.source, "b.ndjson", b"\n" + ndjson(rows(2)))
    put(place.source, "c.ndjson", b"\n\n")
    (file,) = place.run().files
    assert file.source_files == ("default:a.ndjson", "default:b.ndjson")
    assert file.runs == (Run(0, 1, 3, 3), Run(1, 2, 2, 2))


def parts(folder: Path, number: int) -> list[SourceFile]:
    (file,) = listed(folder)
    return [replace(file, part=part) for part in cut(file.size, number)]


def test_parts_are_numbered_from_the_start_once_all_before_them_are_read(place: Place) -> None:
    put(place.source, "a.ndjson", ndjson(rows(90)))
    cuts = parts(place.source, 3)
    outcomes = [place.run((each,)) for each in cuts]
    (file,) = outcomes[1].files
    assert cuts[1].part is not None
    assert file.runs == (Run(0, None, 30, 30, cuts[1].part.start, 1),)

    settled = settle([unit([each]) for each in cuts], outcomes)
    assert [run for file in settled.files for run in file.runs] == [
        Run(0, 1, 31, 31),
        Run(0, 32, 30, 30),
        Run(0, 62, 29, 29),
    ]


def test_a_part_whose_number_is_not_known_keeps_its_byte(place: Place) -> None:
    put(place.source, "a.ndjson", ndjson(rows(90)))
    cuts = parts(place.source, 3)
    unread = UnitOutcome(unit="7", sources=(), files=())
    outcomes = [place.run((cuts[0],)), unread, place.run((cuts[2],))]

    settled = settle([unit([each]) for each in cuts], outcomes)
    assert cuts[2].part is not None
    assert [run for file in settled.files for run in file.runs] == [
        Run(0, 1, 31, 31),
        Run(0, None, 29, 29, cuts[2].part.start, 1),
    ]


def test_what_was_left_of_a_file_is_numbered_at_once(place: Place) -> None:
    body = ndjson(rows(90))
    put(place.source, "a.ndjson", body)
    (file,) = listed(place.source)
    start = len(ndjson(rows(40)))
    unread = (Unread(start=start, end=file.size, lines_before=40),)
    rest = replace(file, skip=40, unread=unread, part=ByteRange(start, file.size))
    (made,) = place.run((rest,)).files
    assert made.runs == (Run(0, 41, 50, 50),)


def test_a_file_that_rolls_when_a_column_comes_names_only_sources_of_its_own_rows(
    tmp_path: Path,
) -> None:
    """The rows that wait are in the next file, and so are their sources."""
    columns = (Field(name="id", type=FieldType.INT64),)
    schema = Schema(columns).with_rescued().arrow()
    writer = RollingWriter(
        schema=schema,
        policy=RollingPolicy(row_group_size=1),
        marks={},
        folder=tmp_path,
        clock=Clock(),
    )

    def some(rescued: str | None) -> pa.RecordBatch:
        return pa.record_batch([pa.array([1]), pa.array([rescued])], schema=schema)

    closed = [
        *writer.write(some(None), "s:a", 10, [Stretch(1, 1, 1)]),
        *writer.write(some("{}"), "s:b", 10, [Stretch(1, 1, 1)]),
        *writer.close(),
    ]
    assert [(file.sources, file.runs) for file in closed] == [
        (("s:a",), (Run(0, 1, 1, 1),)),
        (("s:b",), (Run(0, 1, 1, 1),)),
    ]
