"""What is seen of a promotion afterwards: applied, or passed over and its files given up."""

import json
from datetime import timedelta

import pytest
from deltalake import DeltaTable

from blizzard.pipeline_log import PipelineLog
from blizzard.repair.gc import find_garbage
from lakebed.deltalog import tables
from tests.support.builders import entries
from tests.support.promotions import ID, PRICE, Rescued

AT_ONCE, A_DAY = timedelta(0), timedelta(days=1)


@pytest.fixture
def desk(tmp_path):
    desk = Rescued(tmp_path)
    for name, first in (("a", 1), ("b", 2)):
        desk.land(f"{name}.ndjson", f'{{"id":{first},"price":{first}.25}}')
        desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    return desk


@pytest.fixture
def passed_over(desk):
    """A promotion whose files somebody rewrote before penguin came to it."""
    DeltaTable(str(desk.table)).optimize.compact()
    desk.penguin()
    return desk


def new_files(desk):
    *_others, last = entries(desk.table, "default")
    return {file.filename for file in last.data_files}


def garbage(desk, older_than=AT_ONCE):
    sink = desk.settings.sink
    found = find_garbage(
        desk.store,
        "default",
        lambda: tables.named_files(sink.table_uri, sink.storage_options),
        now=desk.clock.now(),
        older_than=older_than,
        fates=PipelineLog(desk.settings).fates,
    )
    return {one.path for one in found.garbage}, {one.path for one in found.young}


def shown(desk, *words):
    return json.loads(desk.cli("journal", *words, "--output", "json").stdout.splitlines()[0])


def test_the_files_of_a_promotion_that_was_passed_over_are_garbage(passed_over):
    files = new_files(passed_over)
    assert len(files) == 2
    assert garbage(passed_over) == (files, set())
    assert garbage(passed_over, A_DAY) == (set(), files)


def test_they_are_deleted_and_the_command_can_be_run_again(passed_over):
    files = new_files(passed_over)
    answer = passed_over.cli("gc", "--delete", "--older-than", "0s", "--output", "json")
    assert {one["path"] for one in json.loads(answer.stdout)["pieces"]} == files
    assert not any((passed_over.table / one).exists() for one in files)
    passed_over.promote("price")
    passed_over.penguin()
    assert [price for price, _rescued in passed_over.column("price") if price is None] == []


def test_while_a_promotion_waits_its_files_are_kept(desk):
    """Also where the files that it replaces are gone already: penguin has yet to decide."""
    DeltaTable(str(desk.table)).optimize.compact()
    assert garbage(desk) == (set(), set())


def test_the_files_of_a_promotion_that_was_applied_are_kept(desk):
    desk.penguin()
    assert garbage(desk) == (set(), set())


def test_the_journal_says_which_promotion_was_passed_over(passed_over):
    number = str(len(list(entries(passed_over.table, "default"))) - 1)
    assert shown(passed_over, "list")["passed_over"] is True
    document = shown(passed_over, "show", number)
    assert (document["committed"], document["passed_over"]) == (True, True)
    assert "passed over" in passed_over.cli("journal", "list").stdout
    text = passed_over.cli("journal", "show", number).stdout
    assert "passed over: nothing in the table was changed" in text
    assert shown(passed_over, "show", "1")["passed_over"] is False


def test_one_that_was_applied_is_committed(desk):
    assert "waits" in desk.cli("journal", "list").stdout
    desk.penguin()
    assert shown(desk, "list")["passed_over"] is False
    assert "passed over" not in desk.cli("journal", "list").stdout


def test_rewritten_rows_are_not_added_rows(desk):
    desk.land("c.ndjson", '{"id":3,"price":3.25}')
    desk.blizzard()
    desk.penguin()
    lines = desk.order("history", "--output", "json").stdout.splitlines()
    newest = json.loads(lines[0])
    assert (newest["rows_added"], newest["files_rewritten"]) == (1, 2)
    assert (newest["files_added"], newest["files_removed"]) == (3, 2)
    assert "rewritten" in desk.order("history").stdout
    first = json.loads(lines[-2])
    assert (first["rows_added"], first["files_rewritten"]) == (1, 0)
