"""Rows that `penguin fsck --repair` took out are not in the table until they are read again."""

import re
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.compactions import crowded
from tests.support.desk import Desk


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
    assert "not everything of" in told
    assert (
        "of 3 files, the rows of 3 were taken out of the table, and nobody has read them again"
        in told
    )
    assert "0.ndjson" in desk.cli("files", "--state", "removed").stdout

    for words in re.findall(r"blizzard (retract .*)", done.stdout):
        done = desk.cli(*words.split())
    assert done.exit_code == 0, done.output
    desk.penguin()
    code, told = checked(desk)
    assert (code, "everything of" in told) == (0, True), told


def test_rows_that_wait_for_a_redo_are_not_in_the_table(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "both")
    for name in ("a.ndjson", "b.ndjson"):
        desk.landing.land(name, 5)
        desk.blizzard()
        desk.penguin()
    lost = DeltaTable(str(desk.table)).file_uris()[0]
    Path(lost).unlink()
    done = desk.order("fsck", "--repair", "--yes")
    assert done.exit_code == 0, done.output

    code, told = checked(desk)
    assert code == 1, told
    assert "of 2 files, the rows of 1 were taken out of the table" in told
    why = desk.cli("why", "a.ndjson").stdout + desk.cli("why", "b.ndjson").stdout
    assert "time travel" not in why
    assert "blizzard redo --file" in why

    audit = desk.cli("audit")
    waits = r"waiting for blizzard redo +1 +5"
    assert (audit.exit_code, bool(re.search(waits, audit.stdout))) == (0, True), audit.stdout
    assert "discarded" not in audit.stdout

    words = re.findall(r"blizzard (redo --held .*)", done.stdout)[-1]
    done = desk.cli(*words.split())
    assert done.exit_code == 0, done.output
    assert "1 is waiting to be read" in checked(desk)[1]
    assert "waiting for blizzard redo" not in desk.cli("audit").stdout
    desk.blizzard()
    assert "1 is waiting to be committed" in checked(desk)[1]
    desk.penguin()
    assert checked(desk)[0] == 0


@pytest.mark.unbalanced("file_given_up_active")
def test_a_file_that_a_restore_has_put_back_counts_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "both")
    for name in ("a.ndjson", "b.ndjson"):
        desk.landing.land(name, 5)
        desk.blizzard()
        desk.penguin()
    lost = Path(DeltaTable(str(desk.table)).file_uris()[0])
    kept = lost.read_bytes()
    lost.unlink()
    before = DeltaTable(str(desk.table)).version()
    assert desk.order("fsck", "--repair", "--yes").exit_code == 0
    assert checked(desk)[0] == 1
    lost.write_bytes(kept)
    DeltaTable(str(desk.table)).restore(before)
    assert checked(desk)[0] == 0
