"""Erased rows: where else they may be."""

import pytest
from deltalake import DeltaTable

from blizzard.rewrite.transaction import PromotionPending
from tests.support.change_files import BOTH, write_changes
from tests.support.erasures import FIELDS, Forgetful, landed
from tests.support.retractions import overtaken

X = "user = 'x'"
QUARANTINE = {"error_handling": {"on_bad_record": "quarantine"}}


@pytest.fixture
def desk(tmp_path):
    return landed(tmp_path)


def vacuum(desk):
    DeltaTable(str(desk.table)).vacuum(0, enforce_retention_duration=False, dry_run=False)


def shown(desk):
    return " ".join(desk.cli("erase", "--where", X).output.split())


def test_source_files_are_named_and_old_files_are_counted_until_a_vacuum(desk):
    left = desk.said("erase", "--where", X)
    assert left["sources"] == {
        desk.uri("a.ndjson"): 2,
        desk.uri("b.ndjson"): 1,
        desk.uri("c.ndjson"): 1,
    }
    assert (left["sources_unknown"], left["outside_files"]) == (0, 0)
    assert "would bring the rows back" in shown(desk)
    old = {one.file.path for one in desk.forget(X).found.files}
    left = desk.said("erase", "--where", X)
    assert (left["rows"], left["entry"], left["outside_files"]) == (0, None, len(old))
    text = shown(desk)
    assert "no row in the table matches" in text
    assert f"{len(old)} data files outside the table, not searched" in text
    vacuum(desk)
    assert desk.said("erase", "--where", X)["outside_files"] == 0
    text = shown(desk)
    assert "outside the table" not in text
    assert "not searched: source files, other tables, backups" in text


def test_what_is_not_committed_is_counted(desk):
    desk.land("e.ndjson", {"id": 8, "user": "x"})
    desk.blizzard()
    assert desk.held(X).outside == 1
    assert "waiting for penguin" in shown(desk)


def test_a_file_that_penguin_holds_is_counted(tmp_path):
    desk = Forgetful(tmp_path, FIELDS)
    desk.land("a.ndjson", {"id": 1, "user": "x"})
    desk.ingest()
    desk.configure({"fields": [FIELDS["fields"][0], {"name": "user", "type": "int64"}]})
    desk.land("b.ndjson", {"id": 2, "user": 5})
    desk.ingest()
    assert desk.held("id = 2").outside == 1


def test_files_of_the_change_data_feed_are_counted(desk):
    write_changes(desk.table, [{"id": 1, "user": "x"}])
    assert desk.held(X).outside == len(BOTH)


def test_lines_in_quarantine_are_searched_and_discarded(tmp_path):
    desk = Forgetful(tmp_path, FIELDS, more=QUARANTINE)
    desk.land(
        "a.ndjson",
        {"id": 1, "user": "x"},
        {"id": "no", "user": "x"},
        '{"id": 3, "user": "x',
        {"id": "no", "user": "y"},
        '{"id": 4, "user": "y',
    )
    desk.land("b.ndjson", {"id": 2, "user": "y"}, {"id": "no", "user": "y"})
    desk.ingest()
    assert desk.held(X).bad_lines == {"in:a.ndjson": 2}
    text = shown(desk)
    assert "2 bad lines in quarantine with the value" in text
    assert f"blizzard -c {desk.file} dlq discard in:a.ndjson" in text
    assert desk.cli("dlq", "discard", "in:a.ndjson", "--yes").exit_code == 0
    assert desk.held(X).bad_lines == {"in:a.ndjson": 2}, "the file is there until gc deletes it"
    assert desk.cli("gc", "--delete", "--older-than", "0m").exit_code == 0
    assert desk.held(X).bad_lines == {}


def test_a_line_in_two_quarantine_files_is_one_line_of_its_source(tmp_path):
    desk = Forgetful(tmp_path, FIELDS, more=QUARANTINE)
    desk.land("a.ndjson", {"id": "no", "user": "x"})
    desk.land("b.ndjson", {"id": "no", "user": "x"})
    desk.ingest()
    (quarantined,) = desk.table.rglob("*quarantine*/**/*.parquet")
    last = "0" if quarantined.stem.endswith("1") else "1"
    copied = quarantined.with_stem(quarantined.stem[:-1] + last)
    copied.write_bytes(quarantined.read_bytes())
    assert desk.held(X).bad_lines == {"in:a.ndjson": 1, "in:b.ndjson": 1}
    copied.write_bytes(b"nothing")
    assert desk.held(X).unread == (str(copied.relative_to(desk.table)),)
    assert "1 quarantine file could not be read" in shown(desk)


def test_an_erasure_that_is_committed_while_another_looks_comes_first(desk, monkeypatch):
    desk.erase(X)
    overtaken(monkeypatch, desk.penguin)
    with pytest.raises(PromotionPending, match="the erasure in entry 4 is not committed yet"):
        desk.meant(X)
    monkeypatch.undo()
    assert desk.meant(X).rows == 0


def test_source_files_that_failed_are_counted(desk):
    """A file that failed would bring the row back later."""
    desk.land("failed.ndjson", {"id": 20, "user": "x"}, {"id": "no number", "user": "x"})
    desk.ingest()
    assert desk.held(X).unfinished == 1
    assert "1 source file failed or not read to the end: erase again" in shown(desk)


def update(desk):
    table = DeltaTable(str(desk.table))
    table.update(updates={"id": "id + 100"}, predicate=X)


@pytest.mark.parametrize("rewrite", [update, lambda desk: desk.optimize()])
def test_rows_of_unknown_source_files_are_counted_not_skipped(desk, rewrite):
    rewrite(desk)
    left = desk.said("erase", "--where", X)
    assert (left["rows"], left["sources"], left["sources_unknown"]) == (4, {}, 4)
    assert "the source files of 4 rows are unknown" in shown(desk)


def test_some_rows_may_be_known_and_others_not(desk):
    update(desk)
    desk.land("e.ndjson", {"id": 8, "user": "x"})
    desk.ingest()
    plan = desk.meant(X)
    assert (plan.sources, plan.unknown) == ({desk.uri("e.ndjson"): 1}, 4)


def test_rows_that_say_where_they_came_from_are_known(tmp_path):
    desk = landed(tmp_path, {**FIELDS, "provenance": ["file"]})
    desk.optimize()
    plan = desk.meant(X)
    assert (sum(plan.sources.values()), plan.unknown) == (4, 0)


def test_gc_deletes_no_files_of_the_change_data_feed(desk):
    write_changes(desk.table, [{"id": 1, "user": "x"}])
    (found,) = [desk.said("gc", "--delete", "--older-than", "0m")]
    assert found["left_alone"] == 0
    assert all((desk.table / path).exists() for path in BOTH)
    DeltaTable(str(desk.table)).create_checkpoint()
    desk.said("gc", "--delete", "--older-than", "0m")
    assert all((desk.table / path).exists() for path in BOTH)
