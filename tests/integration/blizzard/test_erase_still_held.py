"""Erased rows: who still holds them, in rewritten files and in those of the change data feed."""

import os
from datetime import UTC, datetime, timedelta

import pytest
from deltalake import DeltaTable

from blizzard.rewrite.transaction import PromotionPending
from lakebed.deltalog import tables
from lakebed.layout import log_version
from tests.support.change_files import BOTH, write_changes
from tests.support.erasures import FIELDS, Forgetful, landed
from tests.support.retractions import overtaken

X = "user = 'x'"
YOURSELF = "search the source files for the value yourself"
QUARANTINE = {"error_handling": {"on_bad_record": "quarantine"}}


@pytest.fixture
def desk(tmp_path):
    return landed(tmp_path)


@pytest.fixture
def changed(desk):
    """Files of the change data feed hold rows, too: they are history, not garbage."""
    write_changes(desk.table, [{"id": 1, "user": "x"}])
    return desk


def vacuum(desk):
    DeltaTable(str(desk.table)).vacuum(0, enforce_retention_duration=False, dry_run=False)


def test_old_files_are_named_until_a_vacuum_then_the_sources_are_left(desk):
    before = datetime.now(UTC)
    old = {one.file.path for one in desk.forget(X).found.files}
    left = desk.said("erase", "--where", X)
    assert (left["rows"], left["entry"]) == (0, None)
    assert {one["path"] for one in left["data_files"]} == old
    assert sum(one["rows"] for one in left["data_files"]) == 4
    for one in left["data_files"]:
        assert one["why"] == "removed"
        until = datetime.fromisoformat(one["deleted_from"])
        assert before + timedelta(days=7) - timedelta(seconds=2) <= until
    vacuum(desk)
    (desk.landing.folder / "c.ndjson").unlink()
    left = desk.said("erase", "--where", X)
    assert left["data_files"] == []
    assert [(one["uri"], one["rows"], one["is_there"]) for one in left["sources"]] == [
        (desk.uri("a.ndjson"), 2, True),
        (desk.uri("b.ndjson"), 1, True),
        (desk.uri("c.ndjson"), 1, False),
    ]
    shown = desk.cli("erase", "--where", X)
    assert shown.exit_code == 0
    text = " ".join(shown.output.split())
    assert "no row in the table matches" in text
    assert "2 source files" in text
    assert "would bring the rows back" in text
    assert (left["sources_unknown"], left["possible_sources"]) == (0, [])
    assert YOURSELF not in text


def test_what_is_not_committed_cannot_be_read_or_cannot_be_listed_is_told(desk):
    desk.land("e.ndjson", {"id": 8, "user": "x"})
    desk.blizzard()
    left = desk.held(X)
    assert [(one.rows, one.why) for one in left.data_files] == [(1, "waiting")]
    shown = " ".join(desk.cli("erase", "--where", X).output.split())
    assert "run penguin, then this again" in shown
    (desk.table / "broken.parquet").write_bytes(b"nothing")
    assert desk.held(X).unread == ("broken.parquet",)
    desk.landing.folder.rename(desk.landing.folder.with_name("gone"))
    shown = " ".join(desk.cli("erase", "--where", X).output.split())
    assert "source in could not be listed: the folder does not exist" in shown
    assert "; its files were not checked" in shown


def test_a_file_that_penguin_holds_is_told(tmp_path):
    desk = Forgetful(tmp_path, FIELDS)
    desk.land("a.ndjson", {"id": 1, "user": "x"})
    desk.ingest()
    desk.configure({"fields": [FIELDS["fields"][0], {"name": "user", "type": "int64"}]})
    desk.land("b.ndjson", {"id": 2, "user": 5})
    desk.ingest()
    left = desk.held("id = 2")
    assert [(one.rows, one.why) for one in left.data_files] == [(1, "held")]


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
    (left,) = desk.held(X).bad_lines
    assert (left.source, left.lines, left.maybe, left.waits) == ("in:a.ndjson", 1, 1, True)
    shown = " ".join(desk.cli("erase", "--where", X).output.split())
    assert "1 bad line, and 1 that may hold it" in shown
    assert f"blizzard -c {desk.file} dlq discard in:a.ndjson" in shown
    assert desk.cli("dlq", "discard", "in:a.ndjson", "--yes").exit_code == 0
    (left,) = desk.held(X).bad_lines
    assert (left.lines, left.waits) == (1, False)
    assert "blizzard gc" in desk.cli("erase", "--where", X).output


def test_a_line_in_two_quarantine_files_is_one_line_of_its_source(tmp_path):
    desk = Forgetful(tmp_path, FIELDS, more=QUARANTINE)
    desk.land("a.ndjson", {"id": "no", "user": "x"})
    desk.land("b.ndjson", {"id": "no", "user": "x"})
    desk.ingest()
    (quarantined,) = desk.table.rglob("*quarantine*/**/*.parquet")
    last = "0" if quarantined.stem.endswith("1") else "1"
    copied = quarantined.with_stem(quarantined.stem[:-1] + last)
    copied.write_bytes(quarantined.read_bytes())
    left = desk.held(X)
    assert {one.uri: one.rows for one in left.sources} == {
        desk.uri("a.ndjson"): 1,
        desk.uri("b.ndjson"): 1,
    }
    assert desk.cli("dlq", "discard", "in:a.ndjson", "in:b.ndjson", "--yes").exit_code == 0
    shown = desk.cli("erase", "--where", X).output
    assert shown.count(copied.name) == 1, shown


def test_odd_names_in_a_source_do_not_hide_its_other_files(desk, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (desk.landing.folder / "link").symlink_to(tmp_path / "elsewhere")
    desk.land("new\nline.ndjson", {"id": 8, "user": "x"})
    odd = os.fsencode(desk.landing.folder) + b"/odd\xff.ndjson"
    os.close(os.open(odd, os.O_CREAT))
    desk.land("waits.ndjson", {"id": 9, "user": "x"})
    left = desk.said("erase", "--where", X)
    waiting = {one["uri"] for one in left["not_searched"] if one["why"] == "waiting"}
    assert waiting == {desk.uri("new\nline.ndjson"), desk.uri("waits.ndjson")}
    assert left["unread"] == [desk.uri("link/"), desk.uri("odd\\xff.ndjson")]


def test_an_erasure_that_is_committed_while_another_looks_is_not_counted_twice(desk, monkeypatch):
    """Its rows are in the table that was looked at, and in the books as erased."""
    desk.erase(X)
    overtaken(monkeypatch, desk.penguin)
    with pytest.raises(PromotionPending, match="the erasure in entry 4 is not committed yet"):
        desk.meant(X)
    monkeypatch.undo()
    assert desk.meant(X).rows == 0
    rows = {one.uri: one.rows for one in desk.held(X).sources}
    assert rows == {desk.uri("a.ndjson"): 2, desk.uri("b.ndjson"): 1, desk.uri("c.ndjson"): 1}


def test_source_files_of_which_the_table_has_not_all_rows_are_named_as_not_searched(desk):
    """A file that failed would bring the row back later."""
    desk.take_back("c.ndjson")
    desk.land("failed.ndjson", {"id": 20, "user": "x"}, {"id": "no number", "user": "x"})
    desk.ingest()
    desk.land("waits.ndjson", {"id": 30, "user": "x"})
    desk.land("b.ndjson", {"id": 4, "user": "z"}, {"id": 5, "user": "x"}, {"id": 6, "user": "x"})
    desk.land("notes.txt", "user x")
    wanted = {"b": "changed", "c": "retracted", "failed": "failed", "waits": "waiting"}
    left = desk.said("erase", "--where", X)
    assert {one["uri"]: one["why"] for one in left["not_searched"]} == {
        desk.uri(f"{name}.ndjson"): why for name, why in wanted.items()
    }
    shown = " ".join(desk.cli("erase", "--where", X).output.split())
    assert "1 source file failed, so not searched: delete it, or erase again after it has" in shown


def update(desk):
    table = DeltaTable(str(desk.table))
    table.update(updates={"id": "id + 100"}, predicate=X)


@pytest.mark.parametrize("rewrite", [update, lambda desk: desk.optimize()])
def test_rows_of_unknown_source_files_are_counted_not_skipped(desk, rewrite):
    rewrite(desk)
    left = desk.said("erase", "--where", X)
    assert (left["rows"], left["sources"], left["sources_unknown"]) == (4, [], 4)
    assert [(one["uri"], one["rows"], one["is_there"]) for one in left["possible_sources"]] == [
        (desk.uri("a.ndjson"), 2, True),
        (desk.uri("b.ndjson"), 1, True),
        (desk.uri("c.ndjson"), 1, True),
    ]
    shown = " ".join(desk.cli("erase", "--where", X).output.split())
    assert "the source files of 4 rows, found here or erased before, are unknown" in shown
    assert YOURSELF in shown
    assert desk.uri("c.ndjson") in shown.replace(" ", "")


def test_erasures_of_unknown_source_files_are_told_once_nothing_else_is_left(desk):
    update(desk)
    desk.forget(X)
    vacuum(desk)
    left = desk.said("erase", "--where", X)
    assert (left["rows"], left["data_files"], left["sources"]) == (0, [], [])
    assert (left["sources_unknown"], left["possible_sources"]) == (4, [])
    shown = " ".join(desk.cli("erase", "--where", X).output.split())
    assert "no row in the table matches; other places that may hold such rows:" in shown
    assert YOURSELF in shown


def test_some_rows_may_be_known_and_others_not(desk):
    update(desk)
    desk.land("e.ndjson", {"id": 8, "user": "x"})
    desk.ingest()
    left = desk.held(X)
    assert [(one.uri, one.rows) for one in left.sources] == [(desk.uri("e.ndjson"), 1)]
    assert left.sources_unknown == 4


def test_rows_that_say_where_they_came_from_are_known(tmp_path):
    desk = landed(tmp_path, {**FIELDS, "provenance": ["file"]})
    desk.optimize()
    left = desk.held(X)
    assert sum(one.rows for one in left.sources) == 4
    assert (left.sources_unknown, left.possible_sources) == (0, ())


def test_they_are_told_as_history_that_a_vacuum_deletes(changed):
    """Also after a checkpoint, which does not have them, and beside what no version names."""
    sink, version = changed.settings.sink, changed.table / log_version(changed.version)
    committed = datetime.fromtimestamp(version.stat().st_mtime, UTC)
    until = committed + tables.file_retention(sink.table_uri, sink.storage_options)
    left = [one for one in changed.held(X).data_files if one.path in BOTH]
    assert {(one.path, one.rows, one.why) for one in left} == {(p, 1, "changes") for p in BOTH}
    for one in left:
        assert abs(one.deleted_from - until) < timedelta(seconds=1)
    shown = " ".join(changed.cli("erase", "--where", X).output.split())
    assert "2 data files of the change data feed, read through it until VACUUM deletes" in shown
    assert "not named by the Delta log" not in shown
    DeltaTable(str(changed.table)).create_checkpoint()
    changed.land("e.ndjson", {"id": 8, "user": "y"})
    changed.ingest()
    (changed.table / "dU/cdc-1.parquet").write_bytes((changed.table / BOTH[1]).read_bytes())
    found = {one.path: one.why for one in changed.held(X).data_files}
    assert found == {**dict.fromkeys(BOTH, "changes"), "dU/cdc-1.parquet": "unnamed"}


def test_gc_deletes_none_of_them_and_does_not_call_them_unnamed(changed):
    (found,) = [changed.said("gc", "--delete", "--older-than", "0m")]
    assert found["left_alone"] == 0
    assert all((changed.table / path).exists() for path in BOTH)
    DeltaTable(str(changed.table)).create_checkpoint()
    changed.said("gc", "--delete", "--older-than", "0m")
    assert all((changed.table / path).exists() for path in BOTH)
