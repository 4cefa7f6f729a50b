"""The search of the live page says of every file what `blizzard files` and `blizzard why` say."""

import json
from dataclasses import replace

import pytest
from deltalake import DeltaTable

from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from liveview.details import FileRow
from tests.support.desk import Desk
from tests.support.live_files import on_the_page
from tests.support.pipelines import pipeline_of
from tests.support.promotions import ID, Rescued
from tests.support.stops import UNCUT, all_at

NAME = "big.ndjson"


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path / "both")


def rows_in_table(desk: Desk) -> int:
    return DeltaTable(str(desk.table)).to_pyarrow_table().num_rows


def reads_a_part(desk: Desk) -> None:
    assert pipeline_of(replace(desk.settings, sizing=UNCUT), all_at(30)).step()


def done(desk: Desk, *arguments: str) -> None:
    found = desk.cli(*arguments)
    assert found.exit_code == 0, found.output


def only(desk: Desk, search: str = NAME) -> FileRow:
    """Return the one file that is found; `blizzard files` lists it in the same state."""
    (row,) = on_the_page(desk, search)
    listed = json.loads(desk.cli("files", search, "--output", "json").stdout)
    assert listed["state"] == row.state
    return row


def snapshot(desk: Desk) -> None:
    writer = SnapshotWriter(store=desk.store, pipeline="default", clock=desk.clock)
    writer.write(read_ledger(desk.store, "default"))


@pytest.mark.parametrize("kept", [False, True])
def test_a_retracted_file_is_retracted(desk, kept):
    desk.landing.land(NAME, 5)
    desk.landing.land("other.ndjson", 3)
    desk.blizzard()
    desk.penguin()
    before = only(desk)
    assert (before.state, before.rows, before.entry) == ("in_table", 5, 1)
    done(desk, "retract", NAME, "--yes")
    assert only(desk).state == "in_table"  # until the retraction is committed
    desk.penguin()
    if kept:
        snapshot(desk)

    row = only(desk)

    version = DeltaTable(str(desk.table)).version()
    assert (row.state, row.rows, row.entry, row.version) == ("retracted", 0, 2, version)
    assert only(desk, "other.ndjson").state == "in_table"


def test_what_failed_partly_read_and_was_retracted_is_retracted(desk):
    desk.landing.land(NAME, 200)
    reads_a_part(desk)
    desk.penguin()
    there = rows_in_table(desk)
    assert 0 < there < 200
    (waiting,) = on_the_page(desk, NAME)
    assert (waiting.state, waiting.reason) == ("waiting", "part_read")
    assert (waiting.rows, waiting.version) == (there, None)
    (desk.landing.folder / NAME).unlink()
    desk.blizzard()
    failed = only(desk)
    assert (failed.state, failed.reason) == ("failed", "partial_file_gone")
    assert (failed.rows, failed.version) == (there, None)
    done(desk, "dlq", "discard", NAME, "--yes")
    desk.penguin()
    assert only(desk).state == "discarded"

    done(desk, "retract", NAME, "--yes")
    desk.penguin()

    assert rows_in_table(desk) == 0
    assert (only(desk).state, only(desk).rows) == ("retracted", 0)


def test_the_rows_of_a_file_are_those_of_all_batches_that_read_it(desk):
    desk.landing.land(NAME, 200)
    reads_a_part(desk)
    reads_a_part(desk)
    desk.blizzard()
    desk.penguin()

    row = only(desk)

    assert (row.state, row.rows, row.entry) == ("in_table", 200, 3)
    assert row.version is not None


def test_a_file_that_an_earlier_journal_has_read_is_in_the_table(tmp_path):
    first = Rescued(tmp_path)
    first.land("a.ndjson", {"id": 1})
    first.ingest()
    first.ends_well()
    later = Rescued(tmp_path, pipeline="later")
    later.landing = first.landing
    later.configure({"fields": [ID]})
    done(later, "journal", "new", "--from", "default", "--yes")

    (row,) = on_the_page(later, "a.ndjson", "later")

    assert (row.state, row.reason, row.rows, row.version) == ("in_table", None, None, None)


def test_a_file_that_is_lost_is_in_no_version(desk):
    desk.landing.write("bad.ndjson", b"{nope\n")
    desk.landing.land("other.ndjson", 3)
    desk.blizzard()
    desk.penguin()
    (desk.landing.folder / "bad.ndjson").unlink()
    desk.blizzard()
    desk.penguin()

    lost = only(desk, "bad.ndjson")

    assert (lost.state, lost.reason) == ("failed", "not_json")
    assert (lost.rows, lost.version) == (None, None)


def test_a_file_that_penguin_holds_is_in_no_version(desk):
    desk.holds_a_file()

    row = only(desk, "b.ndjson")

    assert (row.state, row.rows, row.version) == ("held", 5, None)


def test_a_name_that_cannot_be_read_hides_no_other(desk):
    desk.landing.land(NAME, 5)
    desk.blizzard()
    desk.landing.land("a\nb.ndjson", 1)
    desk.landing.land("waits.ndjson", 1)

    assert only(desk, "waits").state == "waiting"
