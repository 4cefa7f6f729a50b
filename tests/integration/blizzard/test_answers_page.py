"""docs/answers.md shows what the commands print, and names every difference that there is."""

import re
from pathlib import Path

import pytest
from deltalake import DeltaTable

from blizzard.inspect.audit.findings import FindingKind
from tests.support.audits import Damage
from tests.support.desk import Desk

PAGE = (Path(__file__).parents[3] / "docs" / "answers.md").read_text()
BLOCKS = re.findall(r"^```\n(table .*?)```$", PAGE, re.MULTILINE | re.DOTALL)
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def printed(desk: Desk) -> str:
    """Return what the command prints, with names that are the same each time."""
    text = desk.cli("audit").output.replace(str(desk.table), "/data/table")
    return re.sub(r"delta-rs:py-[\d.]+", "delta-rs", UUID.sub("0192…", text))


def batch(desk: Desk, name: str, count: int) -> list[int]:
    """Ingest one file; return the ids of its rows."""
    landed = [row["id"] for row in desk.landing.land(f"{name}.ndjson", count)]
    with (desk.landing.folder / f"{name}.ndjson").open("ab") as file:
        file.write(b"\n" if name == "c" else b"")
    desk.blizzard()
    return landed


@pytest.mark.unbalanced("entry_missing", "rows_removed", "file_unnamed")
def test_what_an_audit_prints_is_as_the_page_shows_it(tmp_path):
    desk = Desk(tmp_path)
    rewritten = batch(desk, "a", 5)
    desk.penguin()
    rewritten += batch(desk, "b", 4)
    desk.penguin()
    DeltaTable(str(desk.table)).optimize.compact()
    batch(desk, "c", 7)
    desk.penguin()
    batch(desk, "d", 3)
    shown = [printed(desk)]
    Damage(desk.table).entry_path(3).unlink()
    DeltaTable(str(desk.table)).delete(f"id IN ({', '.join(map(str, rewritten))})")
    shown.append(printed(desk))
    assert shown == BLOCKS


def test_every_difference_is_on_the_page():
    assert set(FindingKind) <= set(re.findall(r"`([a-z_]+)`", PAGE))
