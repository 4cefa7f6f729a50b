"""What is answered of a file that is in the table in part: after a takeover, and before a run."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.integration.blizzard.test_files import YESTERDAY, lands, of_day
from tests.integration.blizzard.test_partly_read import NAME, touch
from tests.integration.penguin.test_fsck_earlier_journals import rename
from tests.support.builders import entries
from tests.support.desk import Desk
from tests.support.pipelines import pipeline_of
from tests.support.stops import CUT, all_at

ROWS = 200


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A table with a part of a file that is gone since, which no run has noticed so far."""
    desk = Desk(tmp_path / "both")
    lands(desk, NAME, ROWS)
    assert pipeline_of(replace(desk.settings, sizing=CUT), all_at(30)).step()
    desk.penguin()
    (desk.landing.folder / NAME).rename(desk.folder / "aside")
    return desk


def said(desk: Desk, *arguments: str) -> dict[str, Any]:
    shown = desk.cli(*arguments, "--output", "json")
    assert shown.exit_code == 0, shown.output
    found: dict[str, Any] = json.loads(shown.stdout)
    return found


def why(desk: Desk) -> dict[str, Any]:
    return said(desk, "why", NAME)


def runs(desk: Desk) -> None:
    desk.blizzard()
    desk.penguin()


def put_back(desk: Desk) -> Path:
    target = desk.landing.folder / NAME
    (desk.folder / "aside").rename(target)
    return target


def gives_up(desk: Desk) -> None:
    assert desk.cli("dlq", "discard", NAME, "--yes").exit_code == 0


def test_rows_that_an_earlier_journal_has_counted_are_told_as_such(desk):
    """Before, the same answer had lines of it in the table, and no row."""
    runs(desk)
    desk.ends_well()
    read = entries(desk.table)[1].sources[0].lines
    rename(desk, "later")
    taken = desk.cli("journal", "new", "--from", "default", "--yes")
    assert taken.exit_code == 0, taken.output
    told = f"{read} lines of it were read before that, perhaps under an earlier journal"

    failed = why(desk)
    assert (failed["state"], failed["earlier_lines"]) == ("failed", read)
    assert told in failed["answer"]
    assert "no row of it" not in failed["answer"]

    gives_up(desk)
    gone = why(desk)
    assert (gone["state"], gone["gone"]) == ("discarded", True)
    assert told in gone["answer"]
    (way,) = gone["next"]
    assert way["advice"] == "Put it back unchanged if the rest is wanted; reading then continues."

    put_back(desk)
    back = why(desk)
    assert (back["reason"], back["earlier_lines"]) == ("part_read", read)
    assert told in back["answer"]
    assert "0 lines" not in back["answer"]

    runs(desk)
    done = why(desk)
    assert (done["state"], done["earlier_lines"]) == ("in_table", read)
    assert f"{ROWS - read} rows from {ROWS - read} lines" in done["answer"]
    assert told in done["answer"]


def test_when_it_failed_is_not_when_it_was_given_up(desk):
    """The time and the entry are those of the failure, whatever was said of the file since."""
    runs(desk)
    number = len(entries(desk.table)) - 1
    failed_at = datetime.fromisoformat(entries(desk.table)[number].created)
    gives_up(desk)
    failure = why(desk)["failure"]
    assert failure["entry"] == number
    assert datetime.fromisoformat(failure["failed_at"]) == failed_at


def comes_back_changed(desk: Desk) -> Path:
    """Put another object under the name, in which the lines stand that were read."""
    target = put_back(desk)
    touch(target)
    return target


def all_say(desk: Desk, state: str, reason: str) -> None:
    """Ask everybody how the file stands, and compare it with what the next run does."""
    answer = why(desk)
    listed = desk.cli("files", NAME, "--day", YESTERDAY, "--output", "json")
    (row,) = [one for one in map(json.loads, listed.stdout.splitlines()) if "path" in one]
    (source,) = said(desk, "status")["sources"]
    dry = desk.cli("--dry-run", "--output", "json").stdout
    told = (answer["state"], answer["reason"], row["state"], row["reason"])
    failures = [one["code"] for one in source["failures"]]
    assert (*told, failures) == (
        *(state, reason, state, reason),
        [reason] if state == "failed" else [],
    )
    assert source["failed_files"] == (state == "failed")
    assert (f'"{reason}"' in dry) is (state == "failed")


@pytest.mark.parametrize("before", ["unnoticed", "failed", "given up"])
def test_another_object_fails_for_all_before_a_run_has_said_so(desk, before):
    """Before, it was waiting, gone or failed, depending on who was asked."""
    if before != "unnoticed":
        runs(desk)
    if before == "given up":
        gives_up(desk)
    comes_back_changed(desk)

    all_say(desk, "failed", "partial_file_changed")
    assert "The next run records that" in why(desk)["answer"]

    runs(desk)
    all_say(desk, "failed", "partial_file_changed")


@pytest.mark.parametrize("same", ["object", "lines"])
def test_a_file_that_is_the_same_or_has_the_same_lines_is_waiting_for_all(desk, same):
    """Before, `why` alone knew that its rest is read."""
    runs(desk)
    if same == "object":
        put_back(desk)
    else:
        comes_back_changed(desk)
        asked = desk.cli("dlq", "retry", "--file", NAME, "--same-lines")
        assert asked.exit_code == 0, asked.output
    all_say(desk, "waiting", "part_read")
    runs(desk)
    assert why(desk)["state"] == "in_table"


def with_bad_lines(desk: Desk) -> None:
    text = desk.file.read_text()
    text = text.replace("max_failures: 0", "max_failures: 0\n  on_bad_record: quarantine")
    desk.file.write_text(text.replace('landing"\n', 'landing"\n  on_change: reingest\n', 1))


def test_what_was_read_of_a_file_whose_rest_was_given_up_is_counted_until_it_is_read_whole(desk):
    """`on_change: reingest` takes the new object; the rows of the old one stay in the table."""
    runs(desk)
    gives_up(desk)
    read = entries(desk.table)[1].sources[0].rows
    with_bad_lines(desk)
    comes_back_changed(desk)

    found = of_day(desk)

    assert (found.landed, found.waiting, found.discarded, found.overwritten) == (2, 1, 1, 1)
    assert (found.in_part, found.deleted, found.rows) == (1, 0, read)
    assert found.complete is False


def test_bad_lines_of_what_was_read_before_are_not_forgotten(tmp_path):
    """They wait, whatever was read under the name since."""
    desk = Desk(tmp_path / "both")
    desk.landing.folder.mkdir(parents=True)
    with_bad_lines(desk)
    (desk.landing.folder / NAME).write_bytes(b'{"id": "no number"}\n{"id": 1}\n')
    runs(desk)
    assert "1 bad line of it was quarantined" in why(desk)["answer"]
    (desk.landing.folder / NAME).write_bytes(b'{"id": 2}\n{"id": 3}\n{"id": 4}\n')
    runs(desk)

    answer = why(desk)

    assert (answer["state"], answer["bad_lines"]) == ("in_table", 1)
    assert answer["answer"].endswith("1 bad line of this name is waiting in quarantine.")
    assert "The list shows the waiting bad lines and their faults." in [
        way["advice"] for way in answer["next"]
    ]
