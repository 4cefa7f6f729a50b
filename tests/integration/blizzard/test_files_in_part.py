"""Files that were read in part: their rows and bad lines count, whatever became of the rest."""

import json
from dataclasses import replace

import pytest
from deltalake import DeltaTable

from blizzard.inspect.files.reconcile import Group
from tests.integration.blizzard.test_files import YESTERDAY, dated, lands, of_day
from tests.support.desk import Desk
from tests.support.landing import config
from tests.support.pipelines import pipeline_of
from tests.support.stops import UNCUT, all_at

NAME = "large.ndjson"


@pytest.fixture
def begun(tmp_path) -> Desk:
    """A part of the only file is in the table."""
    desk = Desk(tmp_path / "both")
    lands(desk, NAME, 200)
    reads_a_part(desk)
    return desk


def reads_a_part(desk: Desk) -> None:
    assert pipeline_of(replace(desk.settings, sizing=UNCUT), all_at(30)).step()
    desk.penguin()


def rows_in_table(desk: Desk) -> int:
    return DeltaTable(str(desk.table)).to_pyarrow_table().num_rows


def fits(desk: Desk) -> Group:
    """Return the day, whose rows are those of the table."""
    found = of_day(desk)
    assert (found.rows, found.uncounted) == (rows_in_table(desk), 0)
    return found


def audited(desk: Desk) -> str:
    found = desk.cli("audit")
    assert found.exit_code == 0, found.output
    return " ".join(found.stdout.split())


def test_the_rows_of_a_file_that_waits_in_part_are_those_in_the_table(begun):
    assert 0 < rows_in_table(begun) < 200
    assert fits(begun).waiting == 1
    reads_a_part(begun)
    assert fits(begun).waiting == 1

    listed = json.loads(begun.cli("files", NAME, "--output", "json").stdout)
    assert (listed["state"], listed["in_part"], listed["entry"]) == ("waiting", True, 2)
    begun.blizzard()
    begun.penguin()
    done = fits(begun)
    assert (done.in_table, done.rows, done.complete) == (1, 200, True)


def test_the_rows_of_a_file_that_failed_part_way_are_those_in_the_table(begun):
    body = (begun.landing.folder / NAME).read_bytes()
    (begun.landing.folder / NAME).unlink()
    begun.blizzard()
    begun.penguin()
    assert (fits(begun).failed, fits(begun).in_part) == (1, 1)

    begun.landing.write(NAME, body[:-1] + b" \n")
    dated(begun, NAME, YESTERDAY)
    begun.blizzard()
    begun.penguin()
    changed = fits(begun)
    assert (changed.failed, changed.in_part, changed.lost) == (1, 0, 0)

    (begun.landing.folder / NAME).unlink()
    begun.blizzard()
    assert begun.cli("dlq", "discard", NAME, "--yes").exit_code == 0
    begun.penguin()
    assert (fits(begun).discarded, fits(begun).complete) == (1, True)


def test_a_file_that_failed_without_a_part_in_the_table_has_no_rows(tmp_path):
    desk = Desk(tmp_path / "both")
    lands(desk, "a.ndjson", 3)
    desk.landing.write("bad.ndjson", b"{nope\n")
    dated(desk, "bad.ndjson", YESTERDAY)
    desk.blizzard()
    desk.penguin()

    assert (fits(desk).failed, fits(desk).rows) == (1, 3)


def test_bad_lines_that_wait_are_among_those_that_were_set_aside(tmp_path):
    desk = Desk(tmp_path / "both")
    desk.file = config(desk.folder, error_handling="on_bad_record: quarantine")
    desk.landing.land(NAME, 200)
    file = desk.landing.folder / NAME
    file.write_bytes(b'{"id": "no"}\n' * 6 + file.read_bytes())
    dated(desk, NAME, YESTERDAY)
    reads_a_part(desk)

    part = fits(desk)

    assert (part.waiting, part.bad_lines, part.quarantined_lines) == (1, 6, 6)
    desk.blizzard()
    desk.penguin()
    assert (fits(desk).bad_lines, fits(desk).quarantined_lines) == (6, 6)
    assert desk.cli("dlq", "discard", "--all", "--yes").exit_code == 0
    assert (fits(desk).bad_lines, fits(desk).quarantined_lines) == (6, 0)


def test_an_audit_counts_a_file_of_which_a_part_is_in_the_table_once(begun):
    assert f"1 source file: {rows_in_table(begun)} lines" in audited(begun)
    reads_a_part(begun)
    assert f"1 source file: {rows_in_table(begun)} lines" in audited(begun)
    begun.blizzard()
    begun.penguin()
    assert "1 source file: 200 lines" in audited(begun)
