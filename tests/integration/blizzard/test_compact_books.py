"""After a compaction every question still has its answer: trace, why, retract, erase, promote."""

import json
from decimal import Decimal

import pytest

from tests.support.builders import entries
from tests.support.commands import recorded
from tests.support.compactions import crowded
from tests.support.promotions import ID, PRICE


@pytest.fixture
def desk(tmp_path):
    return crowded(tmp_path)


def origins(desk):
    """Return where each row came from, as `trace` has it."""
    told = desk.cli("trace", "--where", "id >= 0", "--output", "json", "--limit", "100").stdout
    rows = [json.loads(line) for line in told.splitlines()]
    found = {row["values"]["id"]: (row["source"], row["line"]) for row in rows}
    return {key: (source.rpartition("/")[2], line) for key, (source, line) in found.items()}


def every_origin(ids):
    return {number: (f"{number // 2}.ndjson", 1 + number % 2) for number in ids}


def test_trace_why_and_the_journal_know_what_was_compacted(desk):
    desk.tidy()
    (new,) = desk.active
    assert origins(desk) == every_origin(range(10))
    told = desk.said("why", desk.uri("1.ndjson"))
    (file,) = told["data_files"]
    assert (file["state"], file["replaced_by"]) == ("rewritten", new)
    told = desk.said("why", str(desk.table / new))
    assert told["state"] == "in_table"
    assert sorted(told["sources"]) == [f"in:{number}.ndjson" for number in range(5)]
    old = desk.said("why", str(desk.table / entries(desk.table)[1].files[0].filename))
    assert (old["state"], new in old["answer"]) == ("rewritten", True)
    shown = desk.cli("journal", "show", str(entries(desk.table)[-1].sequence)).stdout
    (rewrite,) = recorded(shown)["rewrites"]
    assert (len(rewrite["old"]), len(rewrite["new"])) == (5, 1)
    assert "compact" in desk.cli("journal").stdout


def test_source_files_are_taken_back_out_of_compacted_files_again_and_again(desk):
    desk.tidy()
    done = desk.take_back("2.ndjson")
    assert done.rows == {"in:2.ndjson": 2}
    assert desk.ids() == [0, 1, 2, 3, 6, 7, 8, 9]
    assert desk.amounts() == {"in_table": 8, "replaced": 18, "retracted": 2}
    assert origins(desk) == every_origin(desk.ids())
    assert desk.take_back("2.ndjson").entry is None
    for number in range(5, 12):
        desk.land(f"{number}.ndjson", {"id": 2 * number, "user": f"user-{2 * number}"})
        desk.ingest()
    desk.tidy()
    left = [0, 1, 2, 3, 6, 7, 8, 9, *range(10, 24, 2)]
    assert desk.ids() == left
    assert origins(desk) == every_origin(left)
    desk.take_back("0.ndjson", "7.ndjson")
    assert desk.ids() == [number for number in left if number not in (0, 1, 14)]
    assert origins(desk) == every_origin(desk.ids())


def test_rows_are_erased_from_a_compacted_file_and_counted_by_their_source_files(desk):
    desk.tidy()
    desk.forget("user = 'user-3'")
    assert desk.ids() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert entries(desk.table)[-1].erased == {desk.uri("1.ndjson"): 1}
    assert desk.amounts() == {"in_table": 9, "replaced": 19, "retracted": 1}
    assert origins(desk) == every_origin(desk.ids())


def test_a_compaction_that_gave_way_is_told_as_such(tmp_path):
    desk = crowded(tmp_path)
    desk.compact()
    desk.optimize()
    desk.penguin()
    (new,) = entries(desk.table)[-1].rewrites[0].new
    assert desk.said("why", str(desk.table / new.filename))["state"] == "discarded"
    assert desk.amounts() == {"removed_by_others": 10}


def test_a_column_is_promoted_in_a_compacted_file_and_back(tmp_path):
    desk = crowded(tmp_path, {"fields": [ID]}, files=0)
    for number in range(4):
        desk.land(f"{number}.ndjson", {"id": number, "price": number + 0.5})
        desk.ingest()
    desk.tidy()
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    desk.penguin()
    for number in range(4, 8):
        desk.land(f"{number}.ndjson", {"id": number, "price": number + 0.5})
        desk.ingest()
    desk.tidy()
    assert len(desk.active) == 1
    assert desk.column("price") == [(Decimal(f"{n}.50"), None) for n in range(8)]
    assert {key: name for key, (name, _line) in origins(desk).items()} == {
        number: f"{number}.ndjson" for number in range(8)
    }
    desk.take_back("1.ndjson", "6.ndjson")
    assert desk.ids() == [0, 2, 3, 4, 5, 7]
