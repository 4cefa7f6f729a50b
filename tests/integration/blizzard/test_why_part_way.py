"""What is answered of a file that is in the table in part: after a takeover, and before a run."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.integration.blizzard.test_files import lands
from tests.integration.blizzard.test_part_way import NAME
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


# ------------------------------------------------------------------------------ an earlier journal


def test_rows_that_an_earlier_journal_has_counted_are_told_as_such(desk):
    """Before, the same answer had lines of it in the table, and no row."""
    runs(desk)
    desk.ends_well()
    read = entries(desk.table)[1].sources[0].lines
    rename(desk, "later")
    taken = desk.cli("journal", "new", "--from", "default", "--yes")
    assert taken.exit_code == 0, taken.output
    told = f"{read} lines of it were read before, under journal "

    failed = why(desk)
    assert (failed["state"], failed["earlier_lines"]) == ("failed", read)
    assert failed["inherited"]["pipeline"] == "default"
    assert told in failed["answer"]
    assert "no row of it" not in failed["answer"]

    gives_up(desk)
    gone = why(desk)
    assert (gone["state"], gone["reason"]) == ("gone", "discarded")
    assert told in gone["answer"]
    assert gone["next"] == ["put it back as it was if the rest is wanted; it is then read on"]

    put_back(desk)
    back = why(desk)
    assert (back["state"], back["earlier_lines"]) == ("partial", read)
    assert told in back["answer"]
    assert "0 lines" not in back["answer"]

    runs(desk)
    done = why(desk)
    assert (done["state"], done["earlier_lines"]) == ("committed", read)
    assert f"{ROWS - read} rows from {ROWS - read} lines" in done["answer"]
    assert told in done["answer"]


# ------------------------------------------------------------------------------ when it failed


def test_when_it_failed_is_not_when_it_was_given_up(desk):
    """The time and the entry are those of the failure, whatever was said of the file since."""
    runs(desk)
    number = len(entries(desk.table)) - 1
    failed_at = datetime.fromisoformat(entries(desk.table)[number].created)
    gives_up(desk)
    failure = why(desk)["failure"]
    assert failure["entry"] == number
    assert datetime.fromisoformat(failure["last"]) == failed_at
