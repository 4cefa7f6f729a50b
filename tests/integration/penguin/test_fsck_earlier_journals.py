"""`penguin fsck` on files that were written with a journal that another has taken the place of.

`blizzard redo` reads again what its own journal has: rows of an earlier one would be lost.
"""

import re
from pathlib import Path

import pytest
import yaml
from deltalake import DeltaTable

from lakebed.layout import journal_entry
from penguin.upkeep.fsck import check
from tests.support.desk import Desk

PARTS = ("source", "sink", "schema", "error_handling")


def with_a_past(folder: Path) -> tuple[Desk, str]:
    """Return a table of two batches, and the data file of the first."""
    desk = Desk(folder)
    desk.arrives("a.ndjson", 5)
    (first,) = desk.table.glob("*.parquet")
    desk.arrives("b.ndjson", 5)
    return desk, first.name


def rename(desk: Desk, name: str) -> None:
    """Give the pipeline another name, in the configuration."""
    given = yaml.safe_load(desk.file.read_text())
    pipeline = {part: given.pop(part) for part in PARTS if part in given}
    desk.file.write_text(yaml.safe_dump(given | {"pipelines": {name: pipeline}}))


def assert_repair_is_refused(desk: Desk, lost: str) -> None:
    version = DeltaTable(str(desk.table)).version()
    shown = desk.order("fsck")
    assert shown.exit_code == 1
    assert "5 rows of pipeline default, entry 1 (batch), from:" in shown.stdout
    assert "blizzard redo --held" not in shown.stdout
    refused = desk.order("fsck", "--repair", "--with-unit", "--yes")
    assert refused.exit_code == 1
    told = f"{lost} (entry 1 of default: another journal has replaced that one)"
    assert told in refused.output
    assert DeltaTable(str(desk.table)).version() == version


def test_rows_of_a_pipeline_that_was_renamed_are_lost_only_by_order(tmp_path: Path) -> None:
    desk, lost = with_a_past(tmp_path)
    desk.ends_well()
    rename(desk, "later")
    taken = desk.cli("journal", "new", "--from", "default", "--yes")
    assert taken.exit_code == 0, taken.output
    before = DeltaTable(str(desk.table)).to_pyarrow_table()
    (desk.table / lost).unlink()

    assert_repair_is_refused(desk, lost)
    done = desk.order("fsck", "--repair", "--rows-lost", "--yes")

    assert done.exit_code == 0, done.output
    audit = desk.cli("audit")
    assert audit.exit_code == 0, audit.output
    (words,) = re.findall(r"    blizzard (retract .*)", done.stdout)
    again = desk.cli(*words.split())
    assert again.exit_code == 0, again.output
    desk.penguin()
    after = DeltaTable(str(desk.table)).to_pyarrow_table()
    assert after.sort_by("id").select(["id"]) == before.sort_by("id").select(["id"])


@pytest.mark.unbalanced("entry_missing", "file_unnamed", "file_gone")
def test_rows_of_a_journal_that_is_kept_aside_are_lost_only_by_order(tmp_path: Path) -> None:
    desk, lost = with_a_past(tmp_path)
    desk.ends_well()
    (desk.table / journal_entry("default", 2)).unlink()
    taken = desk.cli("journal", "new", "--from", "default", "--yes")
    assert taken.exit_code == 0, taken.output
    (desk.table / lost).unlink()

    assert_repair_is_refused(desk, lost)
    (one,) = check(desk.store).damaged
    assert one.origin is not None
    assert one.origin.sources == ("default:a.ndjson",)
