"""Bad lines of content that was to come in the place of rows, and has not, never become rows."""

from pathlib import Path

import pytest

from blizzard.rewrite.replay import ReplayOutcome, replay
from lakebed.clock import Clock
from tests.support.retractions import Taken
from tests.support.runner import InProcessRunner

ID = {"name": "id", "type": "int64", "nullable": False}
BAD = {"id": "7"}
QUARANTINE = {"error_handling": {"on_bad_record": "quarantine", "max_bad_ratio": 0.9}}


def readable(desk: Taken) -> None:
    """Let texts with digits be read as numbers from now on."""
    desk.configure({"fields": [{**ID, "coerce": True}], "provenance": ["file"]})


def replayed(desk: Taken) -> ReplayOutcome:
    return replay(desk.store, desk.settings, None, InProcessRunner(), clock=Clock())


@pytest.fixture
def desk(tmp_path: Path) -> Taken:
    """A table of two files; the new content of one, with a bad line, is rejected."""
    schema = {"fields": [ID], "provenance": ["file"]}
    desk = Taken(tmp_path, schema, more=QUARANTINE, source={"on_change": "error"})
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2})
    desk.ingest()
    (desk.landing.folder / "a.ndjson").rename(tmp_path / "a-as-it-was")
    desk.land("a.ndjson", BAD, {"id": 3})
    desk.replace("a.ndjson", by="a.ndjson")
    desk.optimize()
    desk.penguin()
    assert desk.ids() == [1, 2]
    return desk


def test_a_bad_line_of_what_was_not_put_in_place_is_not_replayed(
    desk: Taken, tmp_path: Path
) -> None:
    """HOLES L39: it would be a row of content that nobody has put into the table."""
    (tmp_path / "a-as-it-was").rename(desk.landing.folder / "a.ndjson")
    readable(desk)

    plan = desk.cli("dlq", "replay", "--all")
    assert "0 lines would be read again" in plan.output
    assert "1 line keeps waiting, of replacement content" in " ".join(plan.output.split())
    done = replayed(desk)

    assert (done.lines, done.left, done.not_in_place) == (0, 1, 1)
    desk.penguin()
    assert desk.ids() == [1, 2]
    assert "1 line discarded" in desk.cli("dlq", "discard", "--all", "--yes").output


def test_beside_it_others_are(desk: Taken) -> None:
    desk.land("c.ndjson", BAD, {"id": 4})
    desk.ingest()
    readable(desk)

    done = replayed(desk)

    assert (done.lines, done.left, done.not_in_place) == (1, 1, 1)
    desk.penguin()
    assert desk.ids() == [1, 2, 4, 7]


def test_put_in_place_the_second_time_its_bad_line_becomes_one_row(desk: Taken) -> None:
    desk.replace("a.ndjson", by="a.ndjson")
    desk.penguin()
    assert desk.ids() == [2, 3]
    readable(desk)

    done = replayed(desk)

    assert (done.lines, done.left) == (1, 0)
    desk.penguin()
    assert desk.ids() == [2, 3, 7]
