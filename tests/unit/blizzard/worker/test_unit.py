"""One work unit over real folders, with the real decoder."""

import threading
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from blizzard.execute.merge import settle
from blizzard.model.settings import RollingPolicy, Sizing
from blizzard.model.source.file import SourceFile, cut
from blizzard.model.work import TaskLimits, UnitOutcome
from blizzard.worker.download import OpenedStores
from blizzard.worker.unit import run_unit
from lakebed.errors import StoreDenied
from tests.support import builders
from tests.support.builders import gz, listed, ndjson, put, rows, unit
from tests.support.stores import RefusesUploads
from tests.support.units import Place, With, failed

TINY_BUDGET = Sizing(decoded_budget=1)
"""Every file with rows is a large one."""


def test_small_files_share_an_output_file(place):
    for number in range(5):
        put(place.source, f"{number}.ndjson", ndjson(rows(10, number * 10)))
    outcome = place.run()
    (file,) = outcome.files
    assert sorted(place.ids(outcome)) == list(range(50))
    assert file.source_file is None
    assert file.source_files == tuple(f"default:{number}.ndjson" for number in range(5))
    assert {each.unit for each in outcome.sources} == {file.unit} == {"7.0"}


def test_a_file_alone_in_its_output_is_named_by_its_uri(place):
    put(place.source, "sub/a.ndjson", ndjson(rows(3)))
    (file,) = place.run().files
    assert file.source_file == f"{place.source}/sub/a.ndjson"


def test_large_files_have_outputs_of_their_own(place):
    put(place.source, "a.ndjson", ndjson(rows(3)))
    put(place.source, "b.ndjson", ndjson(rows(3, 10)))
    outcome = place.run(sizing=TINY_BUDGET)
    assert [file.source_files for file in outcome.files] == [
        ("default:a.ndjson",),
        ("default:b.ndjson",),
    ]
    assert len({file.unit for file in outcome.files}) == 2
    assert [each.unit for each in outcome.sources] == [file.unit for file in outcome.files]


def test_files_that_memory_cannot_hold_share_outputs_as_small_ones_do(place):
    """They wait on the local disk, until their last lines have parsed."""
    put(place.source, "a.ndjson", ndjson(rows(300)))
    put(place.source, "b.ndjson", ndjson(rows(300, 1000)))
    outcome = place.run(sizing=Sizing(decoded_budget=2000))
    (file,) = outcome.files
    assert file.source_files == ("default:a.ndjson", "default:b.ndjson")
    read = pq.read_table(place.table / file.filename)
    assert read["id"].to_pylist() == [*range(300), *range(1000, 1300)]


def test_a_file_that_waits_on_the_disk_and_fails_leaves_nothing_behind(place):
    put(place.source, "a.ndjson", ndjson(rows(300)) + b"{")
    put(place.source, "b.ndjson", ndjson(rows(3)))
    outcome = place.run(sizing=Sizing(decoded_budget=2000))
    (file,) = outcome.files
    assert file.source_files == ("default:b.ndjson",)
    assert list(failed(outcome)) == ["a.ndjson"]


def test_many_small_files_are_read_together_and_each_has_its_own_books(place):
    """L15: a bad one among them is out whole and named, with its line; the others are in."""
    for number in range(300):
        good = ndjson(rows(number % 3, number * 10))
        bad = number % 100 == 50
        put(place.source, f"{number:03}.ndjson", good + (b'{"id": "x"}\n' if bad else b"\n"))
    outcome = place.run()

    assert [
        (each.path, each.failure.line) for each in outcome.sources if each.failure is not None
    ] == [("050.ndjson", 3), ("150.ndjson", 1), ("250.ndjson", 2)]
    read = [each for each in outcome.sources if each.failure is None]
    assert [(each.path, each.lines, each.blank, each.rows) for each in read] == [
        (f"{number:03}.ndjson", number % 3 + 1, 1, number % 3)
        for number in range(300)
        if number % 100 != 50
    ]
    assert place.ids(outcome) == [
        number * 10 + row
        for number in range(300)
        for row in range(number % 3)
        if number % 100 != 50
    ]


A_GROUP_EACH = RollingPolicy(row_group_size=1)
"""Each batch that is written becomes a row group."""


def row_groups(place: Place, outcome: UnitOutcome) -> list[int]:
    """Return the rows of each row group in the only data file."""
    (file,) = outcome.files
    found = pq.read_metadata(place.table / file.filename)
    return [found.row_group(number).num_rows for number in range(found.num_row_groups)]


def test_every_attempt_writes_under_names_of_its_own(place):
    """D03: a second attempt cannot overwrite what the first one wrote."""
    put(place.source, "a.ndjson", ndjson(rows(3)))
    first, second = place.run(), place.run()
    assert first.files[0].filename != second.files[0].filename
    assert len(list(place.table.rglob("*.parquet"))) == 2


def test_nothing_is_left_on_the_local_disk(place, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    put(place.source, "a.ndjson", ndjson(rows(3)))
    refuses = RefusesUploads(place.table, StoreDenied("refused"))
    assert failed(place.run(stores=lambda shared: With(shared, refuses)))
    assert list(scratch.iterdir()) == []


MARK = b"\xef\xbb\xbf"


def outcome_of(place: Place, files: list[SourceFile]) -> tuple[str | None, int | None]:
    """Return why a file, or one of its parts, failed and at which line; its rows if it did not."""
    units = [unit([file], name=str(number)) for number, file in enumerate(files)]
    shared = builders.work(place.source, place.table)
    outcomes = [run_unit(each, shared, OpenedStores(shared)) for each in units]
    (record,) = settle(list(zip(units, outcomes, strict=True))).sources
    return (record.failure.code, record.failure.line) if record.failure else (None, record.rows)


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_a_mark_in_the_middle_of_a_file_is_refused_however_it_is_cut(place, parts):
    """HOLES W45: only the very first bytes of a file can be a byte order mark."""
    line = b'{"id": 1, "name": "xxxxxxxxxxxxxxx"}\n'
    put(place.source, "a.ndjson", line * 2 + MARK + line + line[: -len(MARK) - 1] + b"\n")
    (file,) = listed(place.source)
    cuts = [replace(file, part=part) for part in cut(file.size, parts)]

    assert outcome_of(place, cuts if parts > 1 else [file]) == ("not_json", 3)


def test_a_mark_after_the_lines_that_were_read_before_is_refused(place):
    """HOLES W45: a file that is gone on with means what it means as a whole."""
    put(place.source, "a.ndjson", b'{"id": 1}\n' + MARK + b'{"id": 2}\n')
    (file,) = listed(place.source)

    assert outcome_of(place, [replace(file, skip=1)]) == ("not_json", 2)


@pytest.mark.parametrize("parts", [1, 2])
def test_the_mark_at_the_start_of_a_file_is_skipped_however_it_is_cut(place, parts):
    """HOLES W45."""
    put(place.source, "a.ndjson", MARK + b'{"id": 1}\n{"id": 2}\n')
    (file,) = listed(place.source)
    cuts = [replace(file, part=part) for part in cut(file.size, parts)]

    assert outcome_of(place, cuts) == (None, 2)


def test_each_source_has_batches_of_its_own_size(place, tmp_path):
    """HOLES W32: the smallest does not hold for all."""
    other = tmp_path / "other"
    put(place.source, "a.ndjson", ndjson(rows(6)))
    put(other, "b.ndjson", ndjson(rows(6)))
    shared = builders.work(place.source, place.table, rolling=A_GROUP_EACH)
    shared = replace(
        shared,
        sources={**shared.sources, "two": replace(shared.sources["default"], uri=str(other))},
        limits={
            "default": TaskLimits(max_concurrent_files=1, batch_size=2),
            "two": TaskLimits(max_concurrent_files=1, batch_size=5),
        },
    )
    outcome = run_unit(
        unit([*listed(place.source), *listed(other, source="two")]), shared, OpenedStores(shared)
    )

    assert row_groups(place, outcome) == [2, 2, 2, 5, 1]


def test_a_file_that_a_thread_decompresses_is_read_as_any_other(place):
    put(place.source, "a.ndjson.gz", gz(ndjson(rows(30_000))))
    put(place.source, "b.ndjson.gz", gz(ndjson(rows(30_000, 30_000)))[:-9])
    put(place.source, "c.ndjson.gz", gz(ndjson(rows(30_000, 60_000)) + b"{"))
    put(place.source, "d.ndjson", ndjson(rows(10, 90_000)))
    alone = place.run()
    outcome = place.run(decompress_ahead=True, sizing=Sizing(worth_a_thread=1))
    assert sorted(place.ids(outcome)) == [*range(30_000), *range(90_000, 90_010)]
    assert failed(outcome) == failed(alone)
    assert [each.lines for each in outcome.sources] == [each.lines for each in alone.sources]
    assert not [each for each in threading.enumerate() if each.name == "decompress"]
