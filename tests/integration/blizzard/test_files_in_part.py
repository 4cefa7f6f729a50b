"""Files that were read in part: their rows and bad lines count, whatever became of the rest."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from blizzard.answers.file_counts import DayOrPartition
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


def fits(desk: Desk) -> DayOrPartition:
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
    assert f"1 source file: {rows_in_table(begun)} lines" in audited(begun)
    reads_a_part(begun)
    assert fits(begun).waiting == 1
    assert f"1 source file: {rows_in_table(begun)} lines" in audited(begun)

    listed = json.loads(begun.cli("files", NAME, "--output", "json").stdout)
    assert (listed["state"], listed["in_part"], listed["entry"]) == ("waiting", True, 2)
    begun.blizzard()
    begun.penguin()
    done = fits(begun)
    assert (done.in_table, done.rows, done.complete) == (1, 200, True)
    assert "1 source file: 200 lines" in audited(begun)


def test_the_rows_of_a_file_that_failed_partly_read_are_those_in_the_table(begun):
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


def test_bad_lines_that_wait_are_counted_until_they_are_dealt_with(tmp_path):
    desk = begun_with_bad_lines(tmp_path / "both")

    part = fits(desk)

    assert (part.waiting, part.quarantined_lines) == (1, 6)
    desk.blizzard()
    desk.penguin()
    assert fits(desk).quarantined_lines == 6
    assert desk.cli("dlq", "discard", "--all", "--yes").exit_code == 0
    assert fits(desk).quarantined_lines == 0


def begun_with_bad_lines(folder: Path) -> Desk:
    """A part of the only file is in the table, and bad lines of that part wait."""
    desk = Desk(folder)
    desk.file = config(desk.folder, error_handling="on_bad_record: quarantine")
    desk.landing.land(NAME, 200)
    file = desk.landing.folder / NAME
    file.write_bytes(b'{"id": "no"}\n' * 6 + file.read_bytes())
    dated(desk, NAME, YESTERDAY)
    reads_a_part(desk)
    return desk


def changes(desk: Desk) -> None:
    """Let the file be another object, with one line more, and a run notice it."""
    file = desk.landing.folder / NAME
    file.write_bytes(file.read_bytes() + b'{"id": 1}\n')
    dated(desk, NAME, YESTERDAY)
    desk.blizzard()
    desk.penguin()


def test_to_discard_bad_lines_of_a_changed_file_does_not_give_it_up_and_says_so(tmp_path):
    desk = begun_with_bad_lines(tmp_path / "both")
    changes(desk)
    warned = f"default:{NAME}: the rest of it is not given up: it failed (partial_file_changed)"
    plan = desk.cli("dlq", "discard", NAME)
    assert (plan.exit_code, warned in plan.stderr) == (1, True)

    done = desk.cli("dlq", "discard", NAME, "--yes")

    assert (done.exit_code, "6 lines discarded" in done.stdout) == (0, True)
    assert warned in done.stderr
    assert fits(desk).failed == 1


def test_a_changed_file_is_told_every_way_out_and_its_content_takes_the_place(begun):
    changes(begun)
    letters = " ".join(begun.cli("dlq", "list").stdout.split())
    key = f"default:{NAME}"
    assert f"blizzard retract {key} --replace {key} puts all of its current" in letters

    done = begun.cli("retract", NAME, "--replace", NAME, "--yes")

    assert done.exit_code == 0, done.output
    begun.penguin()
    assert fits(begun).rows == 201
    assert "no file is in a failed state now" in begun.cli("dlq", "list").stdout
