"""Files that wait so long that a VACUUM may take them: told before, whatever they wait for."""

import json
import os
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.clock import Clock
from lakebed.deltalog.log_contents import RETENTION_PROPERTY
from lakebed.errors import CommitUnconfirmed
from lakebed.telemetry.health import HealthPart, PartKind
from lakebed.telemetry.metrics_server import observed
from lakebed.types import DiscoverBy, Handoff
from penguin.delta.table import WritableTable
from penguin.events.backlog import (
    FilesAtRisk,
    FilesIgnored,
    FilesLeftOut,
    FilesNoLongerAtRisk,
)
from penguin.telemetry import METRICS
from tests.support.foreign import DAY, Directory, Visitor, name_at
from tests.support.handoffs import ring
from tests.support.penguin_commands import penguin as run_penguin
from tests.support.scrape import Pages
from tests.support.tables import Penguin, TableDirectory, log_of, rows_of

DAYS = 86_400.0
LONG = 8 * DAYS
"""More than half of the fourteen days of a table that penguin made."""


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    """A table with one committed file."""
    found = Directory(tmp_path / "table")
    found.file(1)
    found.penguin().drain()
    return found


def broken(table: Directory, age: float = LONG) -> str:
    """Leave half of an upload behind, modified so long ago."""
    path = table.path()
    (table.root / path).write_bytes(b"PAR1 half of an upload")
    then = table.hands.at - age
    os.utime(table.root / path, (then, then))
    return path


def alarms(penguin) -> int:
    return len(penguin.told(FilesAtRisk))


def test_a_file_of_another_program_that_is_left_out_for_too_long_raises_one_alarm(table):
    """HOLES W15: also where nothing else is to be done, and no pipeline writes here."""
    path = broken(table)
    penguin = table.penguin()
    for _ in range(3):
        penguin.drain()
    (alarm,) = penguin.told(FilesAtRisk)
    since = datetime.fromtimestamp(table.hands.at - LONG, UTC)
    assert (alarm.since, alarm.retention_secs) == (since.isoformat(), 14 * DAYS)
    table.file(2, path=path)
    penguin.drain()
    assert table.ids() == [1, 2]
    assert len(penguin.told(FilesNoLongerAtRisk)) == 1


def test_before_half_of_the_retention_there_is_no_alarm(table):
    """HOLES W15: from the time the file was last modified, which is what VACUUM goes by."""
    broken(table, age=6 * DAYS)
    penguin = table.penguin().drain()
    assert alarms(penguin) == 0
    table.hands.at += 2 * DAYS
    penguin.drain()
    assert alarms(penguin) == 1


def test_a_file_that_is_refused_whose_name_is_taken_or_that_a_meta_asks_for_raises_it_too(table):
    """HOLES W15: also one that is whole, and left out when it is held against the table."""
    refused = table.file(data=pa.table({"id": ["no number"]}), modified=table.hands.at - LONG)
    penguin = table.penguin().drain()
    assert [said.code for said in penguin.told(FilesLeftOut)] == ["schema_refused"]
    assert alarms(penguin) == 1
    (table.root / refused).unlink()
    first = next(table.root.glob(f"{DAY}/*.parquet")).name
    table.file(2, path=f"date=2024-01-02/{first}", modified=table.hands.at - LONG)
    assert alarms(table.penguin().drain()) == 1
    (table.root / f"date=2024-01-02/{first}").unlink()
    table.meta(broken(table))
    assert alarms(table.penguin(discovery=DiscoverBy.STAGING).drain()) == 1


def test_what_is_not_there_and_what_optimize_may_have_left_behind_raise_none(table):
    """HOLES W15: VACUUM has nothing to take of the one, and is welcome to the other."""
    table.meta(table.path())
    forgetful = {RETENTION_PROPERTY: "interval 2 hours"}
    table.delta().alter.set_table_properties(forgetful)
    table.delta().create_checkpoint()
    for version in (table.root / "_delta_log").glob("*.json"):
        version.unlink()
    checkpoint = next((table.root / "_delta_log").glob("*.checkpoint.parquet"))
    os.utime(checkpoint, (table.hands.at, table.hands.at))
    table.file(9, modified=table.hands.at - LONG)
    penguin = table.penguin().drain()
    assert {said.code for said in penguin.told(FilesLeftOut)} == {"file_missing"}
    assert [said.files for said in penguin.told(FilesIgnored)] == [1]
    assert alarms(penguin) == 0


def test_a_file_that_was_taken_away_before_its_commit_raises_none(table):
    """HOLES W15: there is nothing left to take."""
    path = table.file(2, modified=table.hands.at - LONG)
    away = [True]

    class Away(WritableTable):
        def commit(self, *given, **named):
            if away:
                raise CommitUnconfirmed("the store is away")
            super().commit(*given, **named)

    penguin = Visitor(table, log=log_of(Away))
    with pytest.raises(CommitUnconfirmed):
        penguin.run.step()
    away.clear()
    (table.root / path).unlink()
    penguin.drain()
    assert [said.code for said in penguin.told(FilesLeftOut)] == ["file_missing"]
    assert alarms(penguin) == 0


def test_a_name_of_a_time_that_no_calendar_has_harms_nobody(table):
    """HOLES W15, L22: the last millisecond that a UUIDv7 can say is in the year 10889."""
    whole = table.file(2, path=f"{DAY}/{name_at((1 << 48) - 1)}")
    torn = table.root / DAY / name_at((1 << 48) - 1, 7)
    torn.write_bytes(b"PAR1")
    then = table.hands.at - LONG
    os.utime(torn, (then, then))
    penguin = table.penguin().drain()
    assert alarms(penguin) == 1
    table.file(3)
    penguin.drain()
    table.hands.at += 3600
    penguin.drain()
    assert (table.ids(), len(table.rows())) == ([1, 2, 3], 3)
    assert whole.endswith(".parquet")


@pytest.mark.parametrize("retention", ["interval 99999999 weeks", f"interval {'9' * 40} days"])
def test_a_retention_that_no_calendar_has_harms_nobody(table, retention):
    """HOLES W15: times are reckoned from it, also where a checkpoint is read."""
    delta = table.delta()
    delta.alter.set_table_properties({RETENTION_PROPERTY: retention}, raise_if_not_exists=False)
    table.delta().create_checkpoint()
    broken(table, age=200 * DAYS)
    table.file(2)
    penguin = table.penguin().drain()
    assert table.ids() == [1, 2]
    assert alarms(penguin) == ("9" * 40 in retention)


def test_an_entry_that_is_not_handed_off_for_too_long_raises_it(tmp_path):
    """HOLES W15: its metas are not written, and its files lie there all the same."""
    table = TableDirectory(tmp_path / "table", handoff=Handoff.STAGING)
    entry = table.journal().batch(rows_of(1))
    penguin = Penguin(table, clock=_later(entry, days=8))
    for _ in range(2):
        penguin.step()
    assert [type(event).__name__ for event in penguin.events].count("FilesAtRisk") == 1
    ring(table, entry)
    penguin.drain()
    assert [type(event).__name__ for event in penguin.events].count("FilesNoLongerAtRisk") == 1


def test_an_entry_without_files_has_nothing_that_a_vacuum_could_take(tmp_path):
    """HOLES W15"""
    table = TableDirectory(tmp_path / "table")
    entry = table.journal().batch()
    penguin = Penguin(
        table, options={"partition_columns": ("name",)}, clock=_later(entry, days=8)
    ).drain()
    assert penguin.codes == {"events": "schema_refused"}
    assert not any(isinstance(event, FilesAtRisk) for event in penguin.events)


def _later(entry, *, days: int) -> Clock:
    at = datetime.fromisoformat(entry.created) + timedelta(days=days)
    return Clock(at.timestamp)


def test_health_and_metrics_tell_of_it_until_the_file_is_in(table):
    """HOLES W15: as they do for entries."""
    path = broken(table)
    pages = Pages()
    with observed(
        pages.log,
        address="127.0.0.1:0",
        specs=METRICS,
        parts={HealthPart(PartKind.TABLE, "events"): 10.0},
        seconds=table.hands.seconds,
    ) as emit:
        penguin = table.penguin()
        penguin.run.emit = penguin.run._announcer.emit = emit
        penguin.drain()
        status, document = pages.health()
        (told,) = document["tables"]["events"]["stopped"].values()
        assert (status, told["code"]) == (503, "files_wait_too_long")
        assert pages.value("penguin_files_in_danger", table="events") == 1
        table.file(2, path=path)
        penguin.drain()
        assert pages.health()[0] == 200
        assert pages.value("penguin_files_in_danger", table="events") == 0


@pytest.fixture
def status(tmp_path):
    return partial(run_penguin, tmp_path / "table", "status")


def test_status_tells_of_other_programs_files_and_of_entries_alike(table, status, tmp_path):
    """HOLES W15"""
    table.hands.at = Clock().seconds()
    (table.root / broken(table, age=DAYS)).rename(table.root / "away")
    assert json.loads(status("--output", "json").stdout)["in_danger"] is None
    path = broken(table)
    answer = status("--output", "json")
    told = json.loads(answer.stdout)["in_danger"]
    since = datetime.fromisoformat(told["since"]).timestamp()
    assert (answer.exit_code, told["retention_secs"]) == (1, 14 * DAYS)
    assert since == pytest.approx(table.hands.at - LONG, abs=1)
    assert "then a VACUUM may delete them" in status().stdout
    (table.root / path).unlink()
    assert status().exit_code == 0


def test_status_tells_of_entries_that_wait_too_long(tmp_path, status):
    """HOLES W15: penguin is down, so nobody else tells."""
    waiting = TableDirectory(tmp_path / "table")
    waiting.journal().batch(rows_of(1), created=datetime.now(UTC).isoformat())
    assert (status().exit_code, "VACUUM" in status().stdout) == (0, False)
    old = (datetime.now(UTC) - timedelta(days=9)).isoformat()
    waiting.journal("other").batch(rows_of(2), created=old)
    answer = status()
    assert (answer.exit_code, old in answer.stdout) == (1, True)
