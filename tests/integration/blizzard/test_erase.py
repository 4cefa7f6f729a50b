"""Rows erased by what they hold, in one process with the real programs."""

from pathlib import Path
from typing import Any

import pytest

from blizzard.rewrite.transaction import PromotionPending
from tests.support.builders import entries
from tests.support.commands import recorded
from tests.support.erasures import FIELDS, USER, Forgetful, landed
from tests.support.promotions import ID, PRICE

PARTITIONED = {"partition_by": {"prefix_template": "date=%Y-%m-%d"}}


@pytest.fixture
def desk(tmp_path):
    return landed(tmp_path)


def test_rows_go_in_one_version_and_the_books_balance(desk):
    """Trace and why know the rows that stay and those that went, also from a snapshot."""
    before = desk.version
    desk.writes_a_snapshot()
    done = desk.forget("user = 'x'", reason="case 17")
    assert (done.found.rows, desk.ids(), desk.version) == (4, [2, 4, 7], before + 1)
    assert desk.amounts() == {"in_table": 3, "replaced": 2, "retracted": 4}
    assert desk.audited().totals.rows == 7
    last = entries(desk.table)[-1]
    assert (last.kind, last.reason, last.left_out) == ("erase", "case 17", 4)
    rows = {"a.ndjson": 2, "b.ndjson": 1, "c.ndjson": 1}
    assert last.erased == {desk.uri(name): count for name, count in rows.items()}
    assert [one.new for one in last.rewrites].count(()) == 1
    assert desk.ids(before) == [1, 2, 3, 4, 5, 6, 7]

    for number, name, line in ((2, "a.ndjson", 2), (4, "b.ndjson", 1)):
        traced = desk.said("trace", "--where", f"id = {number}")
        assert (traced["source"], traced["line"]) == (desk.uri(name), line)
    why = desk.said("why", "a.ndjson")
    assert [(one["entry"], one["rows"]) for one in why["erased"]] == [(4, 2)]
    assert "Entry 4 erases 2 rows of it, and no VACUUM" in why["answer"]
    assert "It is in the table: 1 row from 3 lines" in why["answer"]
    assert "Entry 4 erases 1 row of it" in desk.said("why", "c.ndjson")["answer"]
    assert desk.said("why", "d.ndjson")["erased"] == []
    shown = recorded(desk.cli("journal", "show", "4").output)
    assert (shown["erased"], shown["reason"]) == (last.erased, "case 17")
    desk.writes_a_snapshot()
    desk.land("e.ndjson", {"id": 8, "user": "y"})
    desk.ingest()
    assert [one["rows"] for one in desk.said("why", "b.ndjson")["erased"]] == [1]


def test_the_condition_is_written_nowhere(tmp_path):
    desk = Forgetful(tmp_path, FIELDS)
    # Its place between the others keeps it out of the statistics of data files.
    desk.land("a.ndjson", *({"id": n, "user": u} for n, u in enumerate(("a", "secret-7", "z"))))
    desk.ingest()
    known = {path for path in desk.table.rglob("*") if path.is_file()}
    told = desk.cli("erase", "--where", "user = 'secret-7'", "--yes")
    assert told.exit_code == 0, told.output
    assert "secret-7" not in told.output
    desk.penguin()
    new = [path for path in desk.table.rglob("*") if path.is_file() and path not in known]
    assert any(path.suffix == ".parquet" for path in new)
    assert not [path for path in new if b"secret-7" in path.read_bytes()]
    assert desk.ids() == [0, 2]


def test_no_row_and_every_row_are_told_and_null_is_meant_only_by_is_null(desk):
    none = desk.cli("erase", "--where", "user = 'nobody'", "--yes")
    assert none.exit_code == 0
    assert "no row in the table matches" in none.output
    assert [one.kind for one in entries(desk.table)][-1] == "batch"
    every = desk.cli("erase", "--where", "id > 0")
    assert every.exit_code == 1
    assert "ALL rows of the table" in every.output
    assert "add --yes" in every.output
    assert desk.ids() == [1, 2, 3, 4, 5, 6, 7]
    desk.forget("user != 'x'")
    assert desk.ids() == [1, 3, 5, 6, 7]
    desk.forget("user is null")
    assert desk.ids() == [1, 3, 5, 6]
    desk.forget("id > 0")
    assert desk.ids() == []


def test_twice_is_as_once_and_waits_for_penguin(desk):
    desk.erase("user = 'x'")
    with pytest.raises(PromotionPending, match="the erasure in entry 4 is not committed yet"):
        desk.erase("user = 'x'")
    desk.penguin()
    assert desk.erase("user = 'x'").entry is None
    desk.forget("user = 'y'")
    assert desk.ids() == [4, 7]


def test_rows_in_partitions_go_by_a_partition_and_by_nested_fields(tmp_path):
    nested = {"fields": [ID, {"name": "who", "type": "struct", "fields": [USER]}]}
    desk = Forgetful(tmp_path, nested, **PARTITIONED)
    for day in ("2024-01-01", "2024-01-02"):
        number = int(day[-1])
        desk.land(
            f"date={day}/a.ndjson",
            {"id": number, "who": {"user": "x"}},
            {"id": number + 10, "who": {"user": "y"}},
        )
    desk.ingest()
    desk.forget("who.user = 'x' and date = '2024-01-02'")
    assert desk.ids() == [1, 11, 12]
    done = desk.forget("date = '2024-01-01'")
    assert [one.is_whole for one in done.found.files] == [True]
    assert desk.ids() == [12]


@pytest.mark.parametrize("provenance", [[], ["file"]], ids=["unknown", "by their column"])
def test_after_optimize_rows_of_other_writers_go(tmp_path, provenance):
    desk = landed(tmp_path, {**FIELDS, "provenance": provenance})
    desk.optimize()
    done = desk.forget("user = 'x'")
    assert desk.ids() == [2, 4, 7]
    assert bool(done.found.sources) == bool(provenance)
    assert desk.amounts()["retracted"] == 4


@pytest.mark.parametrize("name", ["another", "next"], ids=["read before", "read after"])
def test_rows_of_another_pipeline_of_the_table_go_and_stay_its_own(tmp_path, name):
    desk = landed(tmp_path)
    other = Forgetful(tmp_path, FIELDS, pipeline=name)
    other.land("b.ndjson", {"id": 30, "user": "x"}, {"id": 31, "user": "y"})
    other.ingest()
    desk.forget("user = 'x'")
    assert desk.ids() == [2, 4, 7, 31]
    assert desk.amounts()["retracted"] == 5
    desk.take_back("b.ndjson")
    assert desk.ids() == [2, 7, 31]
    other.take_back("b.ndjson")
    assert desk.ids() == [2, 7]


@pytest.mark.parametrize("source", [{}, {"on_change": "replace"}], ids=["retract", "on_change"])
def test_content_read_after_an_erasure_has_all_its_rows(tmp_path, source):
    desk = landed(tmp_path, source=source)
    desk.forget("user = 'x'")
    desk.land("c.ndjson", {"id": 6, "user": "x"}, {"id": 9, "user": "y"})
    if source:
        desk.blizzard()
    else:
        desk.replace("c.ndjson", by="c.ndjson")
    desk.penguin()
    why = desk.said("why", "c.ndjson")
    assert (why["state"], why["erased"]) == ("in_table", [])
    assert "It is in the table: 2 rows from 2 lines" in why["answer"]
    assert [one["rows"] for one in desk.said("why", "a.ndjson")["erased"]] == [2]


def test_retract_and_promote_go_on_with_what_is_left(tmp_path):
    desk = Forgetful(tmp_path, FIELDS)
    for number, name in enumerate(("a", "b", "c"), start=1):
        desk.land(
            f"{name}.ndjson",
            f'{{"id":{number},"user":"x","price":{number}.25}}',
            f'{{"id":{number + 10},"user":"y","price":{number}.5}}',
        )
    desk.ingest()
    desk.forget("user = 'x'")
    desk.configure({"fields": [ID, USER, PRICE]})
    desk.promote("price")
    desk.penguin()
    desk.take_back("b.ndjson")
    assert [(row["id"], str(row["price"])) for row in desk.rows()] == [(11, "1.50"), (13, "3.50")]
    desk.forget("price > 3")
    assert desk.ids() == [11]


def test_a_file_that_others_rewrite_before_the_commit_leaves_the_table_as_it_is(desk):
    desk.erase("user = 'x'")
    desk.optimize()
    desk.penguin()
    assert desk.ids() == [1, 2, 3, 4, 5, 6, 7]
    assert "had no effect" in desk.said("why", "a.ndjson")["answer"]
    assert "run blizzard erase again" in " ".join(desk.cli("journal", "show", "4").output.split())
    desk.forget("user = 'x'")
    assert desk.ids() == [2, 4, 7]


def test_why_knows_of_an_erasure_after_the_source_was_moved(desk):
    """The entry names the rows by where the source was at that time."""
    desk.forget("user = 'x'")
    desk.ends_well()
    moved = desk.landing.folder.rename(desk.folder / "elsewhere")
    text = desk.file.read_text()
    desk.file.write_text(text.replace(str(desk.landing.folder), str(moved)))
    done = desk.cli("source", "set", "in", "--same-files", "--yes")
    assert done.exit_code == 0, done.output
    why = desk.said("why", "a.ndjson")
    assert [(one["entry"], one["rows"]) for one in why["erased"]] == [(4, 2)]
    assert "It is in the table: 1 row from 3 lines" in why["answer"]
    desk.forget("user = 'y'")
    assert [one["rows"] for one in desk.said("why", "a.ndjson")["erased"]] == [2, 1]


def both(folder: Path, schema: dict[str, Any] | None = None) -> tuple[Forgetful, Forgetful]:
    """Return two pipelines of one table, each with files of the same names."""
    one = Forgetful(folder, schema or FIELDS)
    other = Forgetful(folder, schema or FIELDS, pipeline="other")
    one.land("b.ndjson", {"id": 1, "user": "x"})
    one.ingest()
    other.land("b.ndjson", {"id": 3, "user": "y"}, {"id": 4, "user": "x"})
    other.land("c.ndjson", {"id": 5, "user": "z"})
    other.ingest()
    return one, other


def state_of(desk: Forgetful, name: str) -> tuple[str, str]:
    return desk.said("why", name)["state"], desk.said("files", name)["state"]


@pytest.mark.parametrize("where", ["id = 4", "id > 2"], ids=["one row", "all rows"])
def test_an_erasure_by_another_pipeline_is_shown_where_it_took_rows(tmp_path, where):
    one, other = both(tmp_path)
    one.forget(where)
    rows = 1 if where == "id = 4" else 2

    assert state_of(other, "b.ndjson") == ("in_table", "in_table")
    answer = other.said("why", "b.ndjson")
    (erased,) = answer["erased"]
    assert (erased["entry"], erased["pipeline"], erased["rows"]) == (2, "default", rows)
    assert f"{2 - rows} row" in answer["answer"]
    assert "Entry 2 of pipeline default erases" in answer["answer"]
    assert state_of(other, "c.ndjson") == ("in_table", "in_table")
    assert bool(other.said("why", "c.ndjson")["erased"]) is (where == "id > 2")
    assert one.said("why", "b.ndjson")["erased"] == []


def test_a_promotion_by_another_pipeline_leaves_rows_in_the_table(tmp_path):
    one, other = both(tmp_path, {"fields": [ID], "unknown_fields": "rescue"})
    fields = [ID, {"name": "user", "type": "string"}]
    one.configure({"fields": fields, "unknown_fields": "rescue"})
    one.promote("user")
    one.penguin()
    assert other.rows()[2]["user"] == "x"
    for name in ("b.ndjson", "c.ndjson"):
        assert state_of(other, name) == ("in_table", "in_table")
