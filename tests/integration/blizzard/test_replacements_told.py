"""Whoever asks about content that was to come in the place of rows is told of what is there."""

from pathlib import Path
from typing import Any

import pytest

from tests.integration.blizzard.test_files_reingested import BAD, QUARANTINE, counted, told
from tests.integration.blizzard.test_partly_read import NAME
from tests.integration.blizzard.test_retract_rejected import gone, ids, optimize, put_back
from tests.support.desk import Desk
from tests.support.promotions import ID
from tests.support.retractions import Taken

__all__ = ["gone"]


def three_rows(folder: Path, on_change: str = "replace", *, bad: int = 2, **schema: Any) -> Taken:
    """A table with a file of three rows and two bad lines; another one is to be rewritten too."""
    desk = Taken(
        folder,
        {"fields": [ID], "provenance": ["file"], **schema},
        source={"on_change": on_change},
        more=QUARANTINE,
    )
    desk.land("a.ndjson", {"id": 1}, {"id": 2}, {"id": 3}, *[BAD] * bad)
    desk.ingest()
    desk.land("z.ndjson", {"id": 100})
    desk.ingest()
    return desk


def overwrite(desk: Taken, *rows: Any) -> Path:
    """Overwrite the file with two rows and a bad line, or others; return where the old one is."""
    kept = (desk.landing.folder / "a.ndjson").rename(desk.folder / "as-it-was")
    desk.land("a.ndjson", *(rows or ({"id": 10}, {"id": 11}, BAD)))
    return kept


def overtaken(desk: Desk) -> None:
    """Let another program rewrite the files before penguin gets to the entry."""
    optimize(desk)
    desk.penguin()


def test_content_that_came_back_is_not_taken_for_what_was_not_put_in_its_place(
    tmp_path: Path,
) -> None:
    """The replacement gave up bad lines of it, and its data file is of other rows."""
    desk = three_rows(tmp_path)
    kept = overwrite(desk)
    desk.blizzard()
    overtaken(desk)
    kept.rename(desk.landing.folder / "a.ndjson")
    assert desk.ids() == [1, 2, 3, 100]

    (row,) = told(desk, "files", "a.ndjson")
    (why,) = told(desk, "why", "a.ndjson")
    assert (row["state"], why["state"]) == ("in_table", "in_table")
    assert {one["entry"] for one in why["data_files"]} == {1}
    assert "3 rows from 5 lines" in why["answer"]
    assert "discarded" not in why["answer"]
    assert desk.cli("files", "--check").exit_code == 0


@pytest.mark.parametrize("read_on", [False, True])
def test_a_part_that_was_not_replaced_is_told_with_the_rest_that_is_read_since(
    gone: tuple[Desk, Path], read_on: bool
) -> None:
    """What was to come in its place is no part of it."""
    desk, aside = gone
    before = len(ids(desk))
    desk.landing.land(NAME, 7)
    done = desk.cli("retract", NAME, "--replace", NAME, "--yes")
    assert done.exit_code == 0, done.output
    overtaken(desk)
    assert len(ids(desk)) == before
    put_back(desk, aside)
    if read_on:
        desk.blizzard()
        desk.penguin()

    (why,) = told(desk, "why", NAME)
    assert sum(one["rows"] for one in why["read"]) == len(ids(desk)) - 3
    assert why["state"] == ("in_table" if read_on else "waiting")
    assert counted(desk)["rows"] == len(ids(desk))


def test_rows_that_are_to_be_taken_back_stay_beside_others_until_then(tmp_path: Path) -> None:
    desk = three_rows(tmp_path, "reingest")
    desk.retract("a.ndjson")
    overwrite(desk)
    desk.blizzard()

    (why,) = told(desk, "why", "a.ndjson")
    assert why["read_before"] == [1]
    desk.penguin()
    (why,) = told(desk, "why", "a.ndjson")
    assert (why["read_before"], desk.ids()) == ([], [10, 11, 100])


def test_rows_that_took_the_place_of_another_file_name_it(tmp_path: Path) -> None:
    desk = three_rows(tmp_path)
    desk.land("x.ndjson", {"id": 20})
    desk.replace("a.ndjson", by="x.ndjson")
    desk.penguin()

    (why,) = told(desk, "why", "x.ndjson")
    assert "replaced in:a.ndjson with it" in why["answer"]


@pytest.mark.parametrize("snapshot", [False, True])
def test_rows_that_are_to_be_replaced_are_counted_until_then(
    tmp_path: Path, snapshot: bool
) -> None:
    desk = three_rows(tmp_path)
    overwrite(desk)
    desk.blizzard()
    if snapshot:
        desk.writes_a_snapshot()
    assert desk.ids() == [1, 2, 3, 100]

    (old, new) = told(desk, "files", "a.ndjson")
    assert (old["state"], old["entry"], old["overwritten"]) == ("in_table", 1, True)
    assert (new["state"], new["entry"]) == ("journaled", 3)
    assert counted(desk)["rows"] == 3 + 2 + 1
    (why,) = told(desk, "why", "a.ndjson")
    assert "Until then the rows of its earlier content stay as they are." in why["answer"]
    desk.penguin()
    (new,) = told(desk, "files", "a.ndjson")
    assert (new["state"], counted(desk)["rows"]) == ("in_table", 2 + 1)


def test_a_part_that_is_to_be_replaced_is_counted_until_then(gone: tuple[Desk, Path]) -> None:
    desk, _aside = gone
    before = len(ids(desk))
    desk.landing.land(NAME, 7)
    assert desk.cli("retract", NAME, "--replace", NAME, "--yes").exit_code == 0

    assert counted(desk)["rows"] == before + 7
    desk.penguin()
    assert counted(desk)["rows"] == len(ids(desk)) == 3 + 7


def test_bad_lines_of_rows_that_cannot_be_told_apart_are_counted(tmp_path: Path) -> None:
    """The replacement is not tried again, so what is in the source counts as not applied."""
    desk = three_rows(tmp_path, bad=0, provenance=[])
    overwrite(desk)
    desk.blizzard()
    overtaken(desk)
    assert desk.ids() == [1, 2, 3, 100]
    desk.blizzard()

    assert counted(desk)["quarantined_lines"] == 1


def test_bad_lines_of_what_was_not_applied_are_not_of_what_came_after(tmp_path: Path) -> None:
    desk = three_rows(tmp_path, bad=0)
    overwrite(desk)
    desk.blizzard()
    overtaken(desk)
    overwrite(desk, {"id": 30})

    assert counted(desk)["quarantined_lines"] == 1
    (why,) = told(desk, "why", "a.ndjson")
    assert [one["entry"] for one in why["read"]] == [1], "the rows that are taken out"
    assert "1 bad line of this name is waiting in quarantine." in why["answer"]


def test_bad_lines_of_a_file_that_was_to_replace_another_are_those_of_the_rejected_entry(
    tmp_path: Path,
) -> None:
    desk = three_rows(tmp_path, "reingest", bad=0)
    desk.land("x.ndjson", {"id": 20}, BAD)
    desk.replace("a.ndjson", by="x.ndjson")
    overtaken(desk)
    desk.land("x.ndjson", {"id": 20}, {"id": 21}, BAD)
    desk.blizzard()

    # Its new content is not read while the replacement is rejected.
    assert counted(desk)["quarantined_lines"] == 1
