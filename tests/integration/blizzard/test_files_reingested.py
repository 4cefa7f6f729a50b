"""Content that is read beside what was read under its name before: both are in the table.

`on_change: reingest` asks for that. Each is counted as the object that it was."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.integration.blizzard.test_partly_read import NAME
from tests.integration.blizzard.test_retract_rejected import gone, ids
from tests.support.compactions import crowded
from tests.support.desk import Desk
from tests.support.pipelines import pipeline_of
from tests.support.promotions import ID
from tests.support.retractions import Taken
from tests.support.stops import CUT, all_at

__all__ = ["gone"]
BAD = '{"id": "no number"}'
QUARANTINE = {"error_handling": {"on_bad_record": "quarantine", "max_bad_ratio": 0.9}}


def told(desk: Desk, *arguments: str) -> list[dict[str, Any]]:
    output = desk.cli(*arguments, "--output", "json").stdout
    return [json.loads(line) for line in output.splitlines()]


def reingesting(folder: Path, **source: Any) -> Taken:
    schema = {"fields": [ID], "provenance": ["file"]}
    return Taken(folder, schema, source={"on_change": "reingest", **source}, more=QUARANTINE)


def counted(desk: Desk) -> dict[str, int]:
    """Add up the days of `blizzard files`."""
    (answer,) = told(desk, "files")
    names = ("landed", "in_table", "overwritten", "rows", "quarantined_lines")
    return {name: sum(group[name] for group in answer["groups"]) for name in names}


def rows_of(answer: dict[str, Any]) -> int:
    return sum(read["rows"] for read in answer["read"])


@pytest.mark.parametrize("snapshot", [False, True])
def test_what_was_read_before_stays_counted(tmp_path: Path, snapshot: bool) -> None:
    desk = reingesting(tmp_path)
    for number in range(3):
        desk.land("a.ndjson", *({"id": 10 * number + one} for one in range(number + 1)))
        desk.ingest()
        if snapshot:
            desk.writes_a_snapshot()
    assert len(desk.ids()) == 1 + 2 + 3

    found = counted(desk)
    assert (found["landed"], found["in_table"], found["overwritten"]) == (3, 3, 2)
    assert found["rows"] == len(desk.ids())
    listed = told(desk, "files", "a.ndjson")
    assert [(one["entry"], one["overwritten"]) for one in listed] == [
        (1, True), (2, True), (3, False),
    ]  # fmt: skip
    (why,) = told(desk, "why", "a.ndjson")
    assert (why["state"], rows_of(why), why["read_before"]) == ("in_table", 3, [1, 2])
    assert "Other content of its name was read with entries 1 and 2" in why["answer"]
    assert desk.cli("audit").exit_code == 0


def test_rows_of_replayed_lines_count_with_the_content_that_had_them(tmp_path: Path) -> None:
    desk = reingesting(tmp_path)
    desk.land("a.ndjson", {"id": 1}, {"id": "2"})
    desk.ingest()
    desk.configure({"fields": [ID], "provenance": ["file"], "coerce": True})
    assert desk.cli("dlq", "replay", "--all", "--yes").exit_code == 0
    desk.ingest()
    desk.land("a.ndjson", {"id": 3})
    desk.ingest()
    (why,) = told(desk, "why", "a.ndjson")
    assert counted(desk)["rows"] == len(desk.ids()) == 3
    assert (rows_of(why), why["read_before"]) == (1, [1])


def test_all_that_was_read_under_a_name_is_taken_back_and_what_comes_after_is_all_that_counts(
    tmp_path: Path,
) -> None:
    """The journal is read from its first entry: the retraction is decided after all of them."""
    desk = reingesting(tmp_path)
    for number in range(2):
        desk.land("a.ndjson", *({"id": 10 * number + one} for one in range(number + 1)))
        desk.ingest()
    desk.land("b.ndjson", {"id": 100})
    desk.ingest()
    desk.take_back("a.ndjson")
    assert desk.ids() == [100]
    assert counted(desk)["rows"] == 1
    (why,) = told(desk, "why", "a.ndjson")
    assert (why["state"], why["read_before"]) == ("retracted", [])
    desk.land("a.ndjson", *({"id": 20 + one} for one in range(4)))
    desk.ingest()
    assert counted(desk)["rows"] == len(desk.ids()) == 1 + 4
    (why,) = told(desk, "why", "a.ndjson")
    assert (rows_of(why), why["read_before"]) == (4, [])


@pytest.mark.parametrize("applied", [True, False])
def test_a_replacement_counts_beside_what_is_read_after_it_if_it_was_applied(
    tmp_path: Path, applied: bool
) -> None:
    desk = reingesting(tmp_path)
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2})
    desk.ingest()
    desk.land("a.ndjson", {"id": 3}, {"id": 4})
    desk.replace("a.ndjson", by="a.ndjson")
    if not applied:
        desk.optimize()
    desk.penguin()
    desk.land("a.ndjson", {"id": 5}, {"id": 6}, {"id": 7})
    desk.ingest()
    assert desk.ids() == ([2, 3, 4, 5, 6, 7] if applied else [1, 2, 5, 6, 7])

    assert counted(desk)["rows"] == len(desk.ids())
    assert told(desk, "why", "a.ndjson")[0]["read_before"] == ([3] if applied else [1])


def test_the_part_of_a_given_up_file_is_counted_beside_what_is_read_whole(
    gone: tuple[Desk, Path],
) -> None:
    """Its rows are in the table: the day on which they came must not lose them."""
    desk, _aside = gone
    assert desk.cli("dlq", "discard", NAME, "--yes").exit_code == 0
    text = desk.file.read_text()
    desk.file.write_text(text.replace('landing"\n', 'landing"\n  on_change: reingest\n', 1))
    desk.arrives(NAME, 5)

    found = counted(desk)
    assert found["rows"] == len(ids(desk))
    (part, whole) = told(desk, "files", NAME)
    assert (part["state"], part["in_part"], part["overwritten"]) == ("discarded", True, True)
    assert part["reason"] == "partial_file_gone"
    assert (whole["state"], whole["in_part"]) == ("in_table", False)
    (why,) = told(desk, "why", NAME)
    assert (why["state"], rows_of(why), len(why["read_before"])) == ("in_table", 5, 1)
    assert desk.cli("files", "--check").exit_code == 0


def test_the_rest_of_a_file_that_was_overwritten_is_not_said_to_be_an_operators_decision(
    tmp_path: Path,
) -> None:
    desk = reingesting(tmp_path)
    desk.landing.land(NAME, 200)
    assert pipeline_of(replace(desk.settings, sizing=CUT), all_at(30)).step()
    desk.penguin()
    desk.land(NAME, {"id": 1})
    desk.ingest()
    (group,) = told(desk, "files")[0]["groups"]
    assert (group["discarded"], group["in_part"]) == (1, 1)
    assert "is complete" in group["sentence"]


def test_bad_lines_are_told_with_the_content_that_they_are_of(tmp_path: Path) -> None:
    desk = reingesting(tmp_path)
    desk.land("a.ndjson", BAD, BAD, {"id": 1})
    desk.ingest()
    desk.land("a.ndjson", BAD, {"id": 2}, {"id": 3})
    desk.ingest()

    assert [one["quarantined_lines"] for one in told(desk, "files", "a.ndjson")] == [2, 1]
    found = counted(desk)
    assert found["quarantined_lines"] == 3


def test_bad_lines_of_rows_that_a_repair_took_out_are_counted(tmp_path: Path) -> None:
    desk = reingesting(tmp_path)
    desk.land("a.ndjson", BAD, {"id": 1})
    desk.ingest()
    (lost,) = desk.active
    (desk.table / lost).unlink()
    done = desk.order("fsck", "--repair", "--yes")
    assert done.exit_code == 0, done.output

    (row,) = told(desk, "files", "a.ndjson")
    assert (row["state"], row["quarantined_lines"]) == ("removed", 1)
    found = counted(desk)
    assert (found["rows"], found["quarantined_lines"]) == (0, 1)


def test_bad_lines_of_what_was_not_put_in_place_are_counted(tmp_path: Path) -> None:
    desk = reingesting(tmp_path, on_change="error")
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2})
    desk.ingest()
    desk.land("a.ndjson", BAD, {"id": 3})
    desk.replace("a.ndjson", by="a.ndjson")
    desk.optimize()
    desk.penguin()
    assert desk.ids() == [1, 2]

    found = counted(desk)
    assert (found["rows"], found["quarantined_lines"]) == (2, 1)


def checked(desk: Desk) -> tuple[int, str]:
    done = desk.cli("files", "--check")
    return done.exit_code, " ".join(done.stdout.split())


def test_rows_that_were_given_up_are_not_in_the_table_until_they_are_read_again(
    tmp_path: Path,
) -> None:
    desk = crowded(tmp_path, files=3)
    desk.tidy()
    assert checked(desk)[0] == 0
    (lost,) = desk.active
    (desk.table / lost).unlink()
    done = desk.order("fsck", "--repair", "--rows-lost", "--yes")
    assert done.exit_code == 0, done.output

    code, told = checked(desk)
    assert code == 1, told
    assert " is incomplete: " in told
    assert "of 3 files, 3 removed from the table" in told
    assert "0.ndjson" in desk.cli("files", "--state", "removed").stdout

    for words in re.findall(r"blizzard (retract .*)", done.stdout):
        done = desk.cli(*words.split())
    assert done.exit_code == 0, done.output
    desk.penguin()
    code, told = checked(desk)
    assert (code, " is complete: " in told) == (0, True), told


@pytest.mark.parametrize("way", ["redo", "restore"])
def test_rows_that_wait_for_a_redo_are_not_in_the_table_unless_a_restore_puts_them_back(
    tmp_path: Path, way: str
) -> None:
    desk = Desk(tmp_path / "both")
    for name in ("a.ndjson", "b.ndjson"):
        desk.arrives(name, 5)
    lost = Path(DeltaTable(str(desk.table)).file_uris()[0])
    kept, before = lost.read_bytes(), DeltaTable(str(desk.table)).version()
    lost.unlink()
    repaired = desk.order("fsck", "--repair", "--yes")
    assert repaired.exit_code == 0, repaired.output

    code, told = checked(desk)
    assert code == 1, told
    assert "of 2 files, 1 removed from the table" in told
    if way == "restore":
        lost.write_bytes(kept)
        DeltaTable(str(desk.table)).restore(before)
        assert checked(desk)[0] == 0
        return
    why = desk.cli("why", "a.ndjson").stdout + desk.cli("why", "b.ndjson").stdout
    assert "ime travel" not in why
    assert " redo --file" in why

    audit = desk.cli("audit")
    waits = r"waiting for blizzard redo +1 +5"
    assert (audit.exit_code, bool(re.search(waits, audit.stdout))) == (0, True), audit.stdout
    assert "discarded" not in audit.stdout

    words = re.findall(r"blizzard (redo --held .*)", repaired.stdout)[-1]
    done = desk.cli(*words.split())
    assert done.exit_code == 0, done.output
    assert "of 2 files, 1 waiting to be read" in checked(desk)[1]
    assert "waiting for blizzard redo" not in desk.cli("audit").stdout
    desk.blizzard()
    assert "of 2 files, 1 waiting to be committed" in checked(desk)[1]
    desk.penguin()
    assert checked(desk)[0] == 0
