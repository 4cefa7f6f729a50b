"""`blizzard trace`: which source file and which line a row of the table came from."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from blizzard.answers.trace import RowOrigin
from lakebed.documents.records import Run
from tests.support.builders import entries
from tests.support.promotions import ID, PRICE, Rescued

AT = {"name": "at", "type": "timestamp"}
BY_DAY = {"prefix_template": "date=%Y-%m-%d", "timestamp_field": "at"}


@pytest.fixture
def desk(tmp_path: Path) -> Rescued:
    return Rescued(tmp_path)


def traced(desk: Rescued, where: str, *options: str) -> list[dict[str, Any]]:
    done = desk.cli("trace", "--where", where, "--output", "json", *options)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def source(desk: Rescued, name: str) -> str:
    return str(desk.landing.folder / name)


def test_a_row_is_shown_with_its_data_file_version_source_and_line(desk: Rescued) -> None:
    desk.land("a.ndjson", {"id": 1}, "", {"id": 2})
    desk.ingest()
    desk.land("b.ndjson", {"id": 3})
    desk.ingest()
    (two,) = traced(desk, "id = 2")
    (first, second) = (one.files[0] for one in entries(desk.table) if one.files)
    assert two == {
        "file": first.filename,
        "row": 2,
        "version": 1,
        "pipeline": "default",
        "entry": 1,
        "source": source(desk, "a.ndjson"),
        "line": 3,
        "records": None,
        "byte": None,
        "counted": "lines",
        "values": {"id": 2},
    }
    (three,) = traced(desk, "id > 2 and id is not null")
    assert (three["file"], three["version"], three["line"]) == (second.filename, 2, 1)
    shown = desk.cli("trace", "--where", "id = 2").stdout
    assert f"row 2 of {first.filename}, added in version 1, entry 1 of pipeline" in shown
    assert "a.ndjson, line 3" in shown.replace("\n", "")
    assert '{"id": 2}' in shown


def test_of_rows_that_are_spread_over_partitions_the_range_of_lines_is_known(
    tmp_path: Path,
) -> None:
    desk = Rescued(tmp_path, {"fields": [ID, AT]}, partition_by=BY_DAY)
    desk.land("a.ndjson", *({"id": n, "at": f"2024-01-0{1 + n % 3}T00:00:00Z"} for n in range(9)))
    desk.ingest()
    (row,) = traced(desk, "id = 4 and date = '2024-01-02'")
    assert (row["line"], row["records"]) == (None, [1, 9])
    assert "one of the lines 1 to 9" in desk.cli("trace", "--where", "id = 4").stdout


def test_lines_that_are_counted_from_a_byte_are_a_range_from_there() -> None:
    run = Run(source=0, first=None, rows=3, records=3, byte=45, nth=2)
    assert RowOrigin(uri="a.ndjson", run=run).among == (2, 4)
    assert RowOrigin(uri="a.ndjson", run=run._replace(byte=None, nth=None)).among is None


def test_row_groups_that_are_skipped_count(tmp_path: Path) -> None:
    desk = Rescued(tmp_path, row_group_size_bytes=1)
    desk.land("a.ndjson", *({"id": n} for n in range(5)))
    desk.land("b.ndjson", *({"id": n} for n in range(100, 105)))
    desk.ingest()
    (name,) = desk.active
    assert pq.read_metadata(desk.table / name).num_row_groups == 2
    (row,) = traced(desk, "id = 102")
    assert (row["row"], row["source"], row["line"]) == (8, source(desk, "b.ndjson"), 3)


@pytest.mark.parametrize("provenance", [["file", "line"], []])
def test_columns_say_it_after_another_program_has_rewritten_the_files(
    desk: Rescued, provenance: list[str]
) -> None:
    """Without them a rewritten row has no known source."""
    desk.configure({"fields": [ID], "provenance": provenance})
    for name in ("a", "b"):
        desk.land(f"{name}.ndjson", {"id": ord(name)})
        desk.ingest()
    DeltaTable(desk.table).optimize.compact()
    (row,) = traced(desk, "id = 98")
    expected = (source(desk, "b.ndjson"), 1) if provenance else (None, None)
    assert (row["entry"], row["source"], row["line"]) == (None, *expected)
    told = desk.cli("trace", "--where", "id = 98").stdout
    assert ("an unknown source" in told) is (not provenance)


def test_a_file_that_takes_the_place_of_another_has_its_origins(desk: Rescued) -> None:
    desk.land("a.ndjson", {"id": 1, "price": 1}, {"id": 2, "price": 2})
    desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    desk.penguin()
    (row,) = traced(desk, "price = 2")
    assert (row["source"], row["line"], row["version"]) == (
        *(source(desk, "a.ndjson"), 2),
        desk.version,
    )


def test_no_more_rows_are_shown_than_asked_for(desk: Rescued) -> None:
    desk.table.mkdir()
    assert "there is no table yet" in desk.cli("trace", "--where", "id = 1").output
    desk.land("a.ndjson", *({"id": n} for n in range(5)))
    desk.ingest()
    assert [row["row"] for row in traced(desk, "id >= 0", "--limit", "2")] == [1, 2]
    assert "more rows match" in desk.cli("trace", "--where", "id >= 0", "--limit", "2").stdout
    assert "no row of the table matches" in desk.cli("trace", "--where", "id = 7").stdout


def test_a_condition_that_cannot_be_read_says_where(desk: Rescued) -> None:
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    for where, told in (
        ("id =", "found the end"),
        ("id == 1", "expected a number"),
        ("nope = 1", "there is no column nope; there are: id"),
        ("id = 'x'", "the column id has the type int64, which cannot be compared with 'x'"),
        ("id = 1; drop", "unexpected ';' at character 7"),
        ("(id = 1", "found the end, expected )"),
    ):
        for command in ("trace", "erase"):
            done = desk.cli(command, "--where", where)
            assert done.exit_code == 2, where
            assert told in done.output


@pytest.mark.unbalanced("file_size_differs", "file_damaged")
def test_a_damaged_data_file_is_an_error_with_a_way_out(desk: Rescued) -> None:
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    (name,) = desk.active
    body = (desk.table / name).read_bytes()
    for broken in (body[:-20], body[:-60] + b"\xff" * 52 + body[-8:]):
        (desk.table / name).write_bytes(broken)
        for command in ("trace", "erase"):
            done = desk.cli(command, "--where", "id = 1")
            assert done.exit_code == 1, done.output
            shown = " ".join(done.output.split())
            assert "a data file of the table cannot be read; it is damaged: run penguin" in shown
            assert name in shown
