"""Files of every form, through a whole pipeline: rows, books, failures and what is left over."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from blizzard.events import BatchJournaled
from blizzard.journal.standings import JournalTotals
from blizzard.model.settings import Sizing
from blizzard.model.source.form import Form, SkipRule
from blizzard.plan.planner import USUAL
from lakebed.documents.records import SourceRecord
from lakebed.telemetry.measures import Count
from lakebed.types import SourceFormat
from tests.support.builders import Bench, gz, pipeline_settings, put, rows, source_settings
from tests.support.stops import all_at

JSON = Form(format=SourceFormat.JSON)
TRAIL = Form(format=SourceFormat.JSON, records=("Records",))
BULK = Form(skip=SkipRule(only_key=("index", "create", "update", "delete")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "in"


def bench_of(folder: Path, form: Form, *, sizing: Sizing = USUAL, **given: Any) -> Bench:
    source = source_settings(folder, form=form, **given)
    table = folder.parent / "table"
    return Bench(pipeline_settings(folder, table, sources=(source,), sizing=sizing))


def ingest(bench: Bench) -> dict[str, SourceRecord]:
    """Run until nothing is left; return the last record of each file."""
    pipeline = bench.pipeline()
    while pipeline.step():
        pass
    return {record.path: record for entry in bench.entries() for record in entry.sources}


def in_table(bench: Bench) -> list[dict[str, Any]]:
    files = [file.filename for entry in bench.entries() for file in entry.files]
    return [row for name in files for row in pq.read_table(bench.table / name).to_pylist()]


@pytest.mark.parametrize(
    ("form", "body"),
    [
        (JSON, json.dumps(rows(3), indent=2)),
        (JSON, "\n".join(json.dumps(row, indent=4) for row in rows(3))),
        (JSON, "".join(f"\x1e{json.dumps(row)}\n" for row in rows(3))),
        (TRAIL, json.dumps({"Records": rows(3), "more": None})),
        (Form(), "".join(f"\x1e{json.dumps(row)}\r\n" for row in rows(3))),
        (Form(), "\ufeff" + "".join(f"{json.dumps(row)}\r\n" for row in rows(3))),
        (BULK, "".join(f'{{"index":{{}}}}\n{json.dumps(row)}\n' for row in rows(3))),
    ],
)
@pytest.mark.parametrize("is_packed", [True, False])
def test_every_form_gives_the_same_rows(folder: Path, form: Form, body: str, is_packed: bool):
    put(folder, "a.json", gz(body.encode()) if is_packed else body.encode())
    bench = bench_of(folder, form)
    record = ingest(bench)["a.json"]
    assert in_table(bench) == rows(3)
    assert (record.rows, record.filtered) == (3, 3 if form is BULK else 0)
    assert record.lines == record.rows + record.blank + record.filtered


def test_the_books_count_what_is_skipped(folder: Path):
    put(folder, "a.json", b'{"index":{}}\n{"id":1}\n\n{"delete":{}}\n{"id":2}\n')
    bench = bench_of(folder, BULK)
    record = ingest(bench)["a.json"]
    assert (record.lines, record.rows, record.blank, record.filtered) == (5, 2, 1, 2)
    totals = JournalTotals()
    for entry in bench.entries():
        totals = totals.plus(entry)
    assert (totals.lines, totals.blank, totals.filtered, totals.rows) == (5, 1, 2, 2)
    assert totals.minus([record]).filtered == 0
    measured = {
        each.labels["outcome"]: each.amount
        for event in bench.said(BatchJournaled)
        for each in event.measures()
        if isinstance(each, Count) and each.name == "blizzard_records_total"
    }
    assert measured == {"ingested": 2, "blank": 1, "filtered": 2, "quarantined": 0}


@pytest.mark.parametrize(
    ("form", "body", "code", "line", "parts"),
    [
        (
            JSON,
            b'[\n {"id": 1},\n {"id": "x"}\n]',
            "wrong_type",
            3,
            "record 2, which begins at byte 15",
        ),
        (JSON, b'[\n {"id": 1},\n {"id": }\n]', "not_json", 3, "record 2, which begins at byte 15"),
        (JSON, b'[\n {"id": 1}\n {"id": 2}\n]', "not_json", 3, "record 2, at byte 14"),
        (JSON, b'\xef\xbb\xbf\xef\xbb\xbf{"id": 1}', "not_json", 1, "record 1, which"),
        (JSON, b'{"id": 1}\n{"id"', "truncated", 2, "record 2, at byte 15"),
        (TRAIL, b'{"Records": [{"id": 1}]}\n\n{"records": []}', "records_missing", 3, "record 2"),
        (TRAIL, b'{"Records": 7}', "records_missing", 1, "record 1, at byte 12"),
        (BULK, b'{"index":{}}\n{"id":"x"}\n', "wrong_type", 2, "expected"),
    ],
)
def test_a_bad_record_says_where_in_the_file_it_is(folder, form, body, code, line, parts):
    put(folder, "a.json", body)
    bench = bench_of(folder, form)
    failure = ingest(bench)["a.json"].failure
    assert failure is not None
    assert (failure.code, failure.line) == (code, line)
    assert parts in failure.message
    assert in_table(bench) == []


def test_a_file_of_documents_is_read_by_one_task(folder: Path):
    put(folder, "a.json", json.dumps(rows(5000), indent=1).encode())
    bench = bench_of(folder, JSON, sizing=Sizing(smallest_unit=4096))
    assert ingest(bench)["a.json"].rows == 5000
    assert in_table(bench) == rows(5000)


@pytest.fixture
def stopped(folder: Path) -> Bench:
    """A pipeline that was stopped when some of the records of a file were in the table."""
    put(folder, "a.json", json.dumps({"Records": rows(60_000)}, indent=1).encode())
    bench = bench_of(folder, TRAIL, sizing=Sizing(decoded_budget=1000))
    first = replace(bench, runner=all_at(100)).pipeline()
    assert first.step()
    (record,) = bench.entries()[-1].sources
    assert not record.complete
    assert 0 < record.lines < 60_000
    assert (record.unread, record.form) == ((), "json Records")
    return bench


def test_a_document_that_was_left_is_gone_on_with_by_its_records(stopped: Bench):
    assert ingest(stopped)["a.json"].complete
    assert in_table(stopped) == rows(60_000)


@pytest.mark.parametrize("form", [Form(), JSON, replace(TRAIL, records=("records",))])
def test_a_document_that_was_left_is_not_gone_on_with_in_another_form(stopped: Bench, form: Form):
    read = sum(record.rows for entry in stopped.entries() for record in entry.sources)
    source = stopped.settings.sources[0]
    changed = stopped.again(
        settings=replace(stopped.settings, sources=(replace(source, form=form),))
    )
    failure = ingest(changed)["a.json"].failure
    assert failure is not None
    assert failure.code == "partial_file_changed"
    assert f"source.records was changed before all of it was read: its records 1 to {read}" in (
        failure.message
    )
    assert ingest(stopped.again())["a.json"].complete
    assert in_table(stopped) == rows(60_000)


def test_a_file_that_failed_is_read_again_once_its_form_is_told(folder: Path):
    put(folder, "a.json", json.dumps({"Records": rows(3)}).encode())
    wrong = bench_of(folder, Form())
    assert ingest(wrong)["a.json"].failure is not None
    assert ingest(bench_of(folder, TRAIL))["a.json"].rows == 3
