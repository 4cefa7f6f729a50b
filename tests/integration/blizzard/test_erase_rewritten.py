"""Rows that another program has rewritten are erased, too; where they came from is not known."""

import pytest
from deltalake import DeltaTable

from tests.support.erasures import FIELDS, landed

X = "user = 'x'"
YOURSELF = "look for the value in the source files yourself"


@pytest.fixture
def desk(tmp_path):
    return landed(tmp_path)


def vacuum(desk):
    DeltaTable(str(desk.table)).vacuum(0, enforce_retention_duration=False, dry_run=False)


def update(desk):
    table = DeltaTable(str(desk.table))
    table.update(updates={"id": "id + 100"}, predicate=X)


@pytest.mark.parametrize("rewrite", [update, lambda desk: desk.optimize()])
def test_rows_of_unknown_source_files_are_counted_not_passed_over(desk, rewrite):
    rewrite(desk)
    left = desk.said("erase", "--where", X)
    assert (left["rows"], left["sources"], left["sources_unknown"]) == (4, [], 4)
    assert [(one["uri"], one["rows"], one["is_there"]) for one in left["possible_sources"]] == [
        (desk.uri("a.ndjson"), 2, True),
        (desk.uri("b.ndjson"), 1, True),
        (desk.uri("c.ndjson"), 1, True),
    ]
    shown = " ".join(desk.cli("erase", "--where", X).output.split())
    assert "the source files of 4 rows, found here or erased before, are not known" in shown
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
    assert "what is left is below" in shown
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


def test_where_every_row_is_known_nothing_is_said_of_unknown_ones(desk):
    left = desk.said("erase", "--where", X)
    assert (left["sources_unknown"], left["possible_sources"]) == (0, [])
    assert YOURSELF not in " ".join(desk.cli("erase", "--where", X).output.split())
