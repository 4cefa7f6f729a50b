"""Rows that are held or discarded are told of wherever somebody asks: they are not in the table."""

import pytest

from tests.support.commands import told
from tests.support.desk import Desk


@pytest.fixture
def desk(tmp_path):
    """A table with 5 rows, and 4 rows more that it cannot hold."""
    desk = Desk(tmp_path)
    desk.arrives("a.ndjson", 5)
    desk.declare("name", "int64")
    desk.landing.write("b.ndjson", b"".join(b'{"id": %d, "name": 7}\n' % n for n in range(4)))
    desk.blizzard()
    return desk


def held_name(desk):
    """Name the one file that is held."""
    (row,) = told(desk.order("held", "--output", "json"))
    return row["id"]


def test_penguin_once_exits_1_and_says_how_many_rows_it_holds(desk):
    """HOLES W24: before, it said `files 0, rows 0` and exited 0, with the rows nowhere."""
    done = desk.order("--once", "--output", "json")
    (row,) = told(done)
    assert (row["files"], row["rows"], row["error"]) == (0, 0, None)
    assert (done.exit_code, row["held_files"], row["held_rows"]) == (1, 1, 4)
    # Also a run that finds nothing new: the rows are still not in the table.
    again = desk.order("--once")
    assert again.exit_code == 1
    assert "1 file with 4 rows is held and not in the table" in again.stdout


def test_penguin_tells_of_what_was_discarded(desk):
    """HOLES W24: in status and history, until the sources are read again."""
    desk.penguin()
    assert desk.order("discard", held_name(desk), "--yes").exit_code == 0
    (row,) = told(desk.order("status", "--output", "json"))
    assert (row["held_files"], row["discarded_files"], row["discarded_rows"]) == (0, 1, 4)
    assert "1 file with 4 rows was discarded" in desk.order("status").stdout
    last, before, *_ = told(desk.order("history", "--output", "json"))
    assert (last["files_discarded"], before["files_held"]) == (1, 1)
    assert desk.order("--once").exit_code == 0


WHY = "name: the table has type string, the files have type long"


def test_blizzard_says_of_a_committed_entry_that_its_rows_are_held(desk):
    """HOLES W24: before, `status` said `committed up to entry 2 of 2`, and no word more."""
    desk.penguin()
    (row,) = told(desk.cli("status", "--output", "json"))
    assert (row["committed_entry"], row["held_files"], row["held_rows"]) == (2, 1, 4)
    assert row["held"] == [{"code": "schema_refused", "reasons": [WHY], "files": 1, "rows": 4}]
    shown = desk.cli("status").stdout
    assert "NOT in the table: 1 file with 4 rows, which penguin holds" in shown
    assert WHY in shown
    newest, first, _opening = told(desk.cli("journal", "--output", "json"))
    assert (newest["committed"], newest["held_rows"]) == (True, 4)
    assert first["held_rows"] == 0
    assert "held" in desk.cli("journal").stdout
    one = desk.cli("journal", "2").stdout
    assert "committed  yes" in one
    assert f"held       1 file with 4 rows, NOT in the table: {WHY} [schema_refused]" in one
    assert told(desk.cli("journal", "2", "--output", "json"))[0]["held_files"] == 1


def test_blizzard_says_of_a_committed_entry_that_its_rows_were_discarded(desk):
    """HOLES W24: before, the source counted as ingested and nothing said otherwise."""
    desk.penguin()
    desk.order("discard", held_name(desk), "--yes")
    (row,) = told(desk.cli("status", "--output", "json"))
    assert (row["held_rows"], row["discarded_files"], row["discarded_rows"]) == (0, 1, 4)
    assert "NOT in the table: 1 file with 4 rows, discarded" in desk.cli("status").stdout
    assert told(desk.cli("journal", "--output", "json"))[0]["discarded_rows"] == 4
    assert "discarded  1 file with 4 rows, NOT in the table" in desk.cli("journal", "2").stdout


def test_a_note_that_a_dead_penguin_left_is_not_counted_as_held(desk):
    desk.penguin()
    name = held_name(desk)
    note = desk.table / f"_staging/held/{name}.meta.json"
    body = note.read_bytes()
    desk.order("discard", name, "--yes")
    note.write_bytes(body)  # A penguin died before it could delete it.
    (row,) = told(desk.cli("status", "--output", "json"))
    assert (row["held_rows"], row["discarded_rows"]) == (0, 4)


@pytest.mark.unbalanced("unreadable")
def test_a_log_that_cannot_be_read_hides_nothing_else(desk):
    """What is held is then not known, and that is said."""
    desk.penguin()
    for version in (desk.table / "_delta_log").glob("*.json"):
        version.write_text("{")
    done = desk.cli("status")
    assert done.exit_code == 1
    assert "last batch 2" in done.stdout
    assert "it is not known what penguin holds" in done.stdout
    assert "held       unknown" in desk.cli("journal", "2").stdout


def test_the_summary_of_a_run_counts_what_is_held(desk):
    """HOLES W24: the next run reads nothing, and still says that four rows are not in the table."""
    desk.penguin()
    desk.declare("name", "string")
    desk.ends_well()
    done = desk.cli("--once", "--output", "json")
    (row,) = told(done)
    assert (done.exit_code, row["records_processed"]) == (0, 0)
    assert (row["held_files"], row["held_rows"], row["discarded_rows"]) == (1, 4, 0)


def test_whoever_commits_inline_exits_1_while_rows_are_held(desk):
    """HOLES W24: then blizzard is the one that holds them."""
    desk.penguin()
    desk.declare("name", "string")
    text = desk.file.read_text()
    desk.file.write_text(text.replace("sink:\n", "sink:\n  commit: inline\n"))
    desk.ends_well()
    assert desk.cli("--once").exit_code == 1


@pytest.mark.parametrize("on_change", ["reingest", "replace"])
def test_what_was_discarded_of_earlier_content_is_not_said_of_the_new(tmp_path, on_change):
    desk = Desk(tmp_path)
    held = desk.holds_a_file()
    text = desk.file.read_text()
    desk.file.write_text(text.replace("\nsink:", f"on_change: {on_change}\nsink:", 1))
    assert desk.order("discard", held, "--yes").exit_code == 0
    (before,) = told(desk.cli("why", "b.ndjson", "--output", "json"))
    assert before["state"] == "discarded"
    desk.arrives("b.ndjson", 7)
    (after,) = told(desk.cli("why", "b.ndjson", "--output", "json"))
    assert after["state"] == "in_table"
    (counts,) = told(desk.cli("files", "--output", "json"))
    (day,) = (group for group in counts["groups"] if group["landed"])
    assert day["in_table"] == 2
