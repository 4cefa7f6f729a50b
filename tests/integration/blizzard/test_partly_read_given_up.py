"""The rest of a file that is gone after a part of it was read: an operator gives it up."""

import json
from dataclasses import replace

import pytest

from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from lakebed.clock import Clock
from lakebed.storage.store import Store
from tests.integration.blizzard.test_files import YESTERDAY, lands, of_day, said
from tests.integration.blizzard.test_partly_read import (
    NAME,
    ROWS,
    begun,
    books_balance,
    drain,
    ids,
    touch,
)
from tests.support.builders import entries, no_options, put
from tests.support.commands import Desk as Terminal
from tests.support.commands import told
from tests.support.desk import Desk
from tests.support.failed import give_up
from tests.support.live_files import on_the_page
from tests.support.pipelines import pipeline_of
from tests.support.stops import CUT, NEVER, Stopped, all_at


@pytest.fixture
def both(tmp_path) -> Desk:
    """Both programs on a table with a whole file, and a part of another that is gone since."""
    desk = Desk(tmp_path / "both")
    lands(desk, "a.ndjson", 3)
    desk.blizzard()
    lands(desk, NAME, 200)
    assert pipeline_of(replace(desk.settings, sizing=CUT), all_at(30)).step()
    desk.penguin()
    (desk.landing.folder / NAME).unlink()
    desk.blizzard()
    desk.penguin()
    return desk


def rows_in_table(desk: Desk) -> int:
    return sum(file.record_count for entry in entries(desk.table) for file in entry.files)


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def gone(desk: Terminal):
    """A part of a file is journaled, the file is gone, and a run has noticed it."""
    bench = begun(desk)
    body = (desk.landing / NAME).rename(desk.root / "aside")
    assert drain(bench).files_still_failed == 1
    return bench, body


def gives_up(desk: Terminal):
    done = desk.run("dlq", "discard", NAME, "--yes")
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("named", [NAME, "--deleted"])
def test_all_say_that_the_rest_of_a_deleted_file_was_given_up(both, named):
    """HOLES L32: before, only the file itself could end the failure."""
    open_day = of_day(both)
    assert (open_day.failed, open_day.lost, open_day.in_part) == (1, 1, 1)
    assert open_day.rows == rows_in_table(both)
    assert "of the failed ones deleted from the source" in open_day.sentence
    status = plain(both.cli("status").output)
    letters = plain(both.cli("dlq", "list").output)
    assert f"dlq discard default:{NAME} --yes gives up the rest" in letters
    assert "or give up the rest. blizzard" in status
    plan = plain(both.cli("dlq", "discard", named).output)
    assert "the rest of 1 source file that failed and is gone would be" in plan
    assert "of its lines are in the table" in plan
    count = len(entries(both.table))

    done = both.cli("dlq", "discard", named, "--yes", "--output", "json")

    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["files"] == [f"default:{NAME}"]
    there = rows_in_table(both)
    assert 3 < there < 203
    both.penguin()
    found = of_day(both)
    assert (found.landed, found.in_table, found.discarded, found.in_part) == (2, 1, 1, 1)
    assert (found.failed, found.lost, found.rows, found.uncounted) == (0, 0, there, 0)
    assert found.complete is True
    assert found.sentence.endswith("; 1 discarded")
    assert said(both, "--day", YESTERDAY, "--check")[0] == 0
    (source,) = json.loads(both.cli("status", "--output", "json").output)["sources"]
    assert (source["failed_files"], source["lost_files"], source["failures"]) == (0, 0, [])
    assert NAME not in both.cli("dlq", "list").output
    why = plain(both.cli("why", NAME).output)
    assert "an operator has given that up" in why
    assert f"({there - 3} rows from {there - 3} lines so far)" in why
    assert "gone: true discarded: true" in plain(both.cli("journal", str(count)).output)
    assert both.cli("audit", "--deep").exit_code == 0
    (row,) = on_the_page(both, NAME)
    assert (row.state, row.reason) == ("discarded", "partial_file_gone")

    run = pipeline_of(both.settings, all_at(NEVER))
    while run.step():
        pass
    assert run.statistics.files_still_failed == 0
    assert both.cli("dlq", "discard", "--deleted", "--yes").exit_code == 0
    assert len(entries(both.table)) == count + 1
    before = of_day(both)
    writer = SnapshotWriter(store=both.store, pipeline="default", clock=both.clock)
    writer.write(read_ledger(both.store, "default"))
    assert of_day(both) == before


def test_a_day_is_open_until_the_part_that_was_read_is_committed(tmp_path):
    desk = Desk(tmp_path / "both")
    lands(desk, NAME, 200)
    assert pipeline_of(replace(desk.settings, sizing=CUT), all_at(30)).step()
    (desk.landing.folder / NAME).unlink()
    desk.blizzard()
    assert desk.cli("dlq", "discard", NAME, "--yes").exit_code == 0

    before = of_day(desk)
    assert (before.journaled, before.discarded, before.complete) == (1, 0, False)
    assert "not committed yet" in plain(desk.cli("why", NAME).output)
    desk.penguin()
    after = of_day(desk)
    assert (after.journaled, after.discarded, after.complete) == (0, 1, True)
    assert after.rows == rows_in_table(desk)


def test_the_same_object_is_read_on_though_its_rest_was_given_up(gone, desk):
    bench, body = gone
    gives_up(desk)
    refused = desk.run("dlq", "retry", "--file", NAME)
    assert (refused.exit_code, "has given it up" in plain(refused.stderr)) == (1, True)
    body.rename(desk.landing / NAME)
    (why,) = told(desk.run("why", NAME, "--output", "json"))
    assert (why["state"], why["failure"]) == ("waiting", None)

    done = drain(bench)

    assert (done.files_failed, done.files_still_failed) == (0, 0)
    assert ids(bench) == list(range(ROWS))
    books_balance(bench)
    assert not read_ledger(desk.store, "default").unfinished


def test_another_object_is_a_changed_file_though_the_rest_was_given_up(gone, desk):
    """HOLES L32, D15: no row comes twice, and the operator may say that it has the same lines."""
    bench, body = gone
    gives_up(desk)
    kept = ids(bench)
    put(desk.landing, NAME, body.read_bytes())
    touch(desk.landing / NAME)

    assert drain(bench).files_still_failed == 1

    (failed,) = bench.entries()[-1].sources
    assert failed.failure.code == "partial_file_changed"
    assert (failed.gone, failed.discarded) == (False, False)
    assert ids(bench) == kept
    aside = (desk.landing / NAME).rename(desk.root / "aside")
    assert drain(bench).files_still_failed == 1
    (failed,) = bench.entries()[-1].sources
    assert (failed.failure.code, failed.discarded) == ("partial_file_gone", False), "gone again"
    gives_up(desk)
    assert drain(bench).files_still_failed == 0
    aside.rename(desk.landing / NAME)
    assert drain(bench).files_still_failed == 1
    assert desk.run("dlq", "retry", "--file", NAME, "--same-lines").exit_code == 0
    assert drain(bench).files_still_failed == 0
    assert ids(bench) == list(range(ROWS))
    books_balance(bench)


def test_a_rest_that_is_given_up_while_a_batch_reads_it_is_in_the_table_once(gone, desk):
    bench, body = gone
    body.rename(desk.landing / NAME)

    class Meanwhile(Stopped):
        def run(self, units, work):
            read = super().run(units, work)
            _found, entry = give_up(desk.store, "default", None, clock=Clock())
            assert entry is not None
            return read

    drain(replace(bench, runner=Meanwhile(lambda _unit: NEVER)))

    assert [entry.kind for entry in bench.entries()[-2:]] == ["discard", "batch"]
    assert ids(bench) == list(range(ROWS))
    books_balance(bench)
    assert not read_ledger(desk.store, "default").unfinished


def test_a_batch_that_is_faster_leaves_nothing_to_give_up(gone, desk):
    """The operator's entry comes second: looked at again, the file is done."""
    bench, body = gone
    body.rename(desk.landing / NAME)

    class Slow(Store):
        waits = True

        def create(self, path, data):
            if "/journal/" in path and self.waits:
                self.waits = False
                drain(bench)
            return super().create(path, data)

    slow = Slow(str(desk.table), no_options())
    found, entry = give_up(slow, "default", frozenset({f"default:{NAME}"}), clock=Clock())

    assert (found.records, found.unknown, entry) == ((), frozenset({f"default:{NAME}"}), None)
    assert ids(bench) == list(range(ROWS))
    books_balance(bench)
