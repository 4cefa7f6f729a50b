"""A retraction that penguin rejects: its source files are what they were before it.

Another program has rewritten the files that it replaces. All of it is done or nothing.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from tests.integration.blizzard.test_partly_read import NAME
from tests.support.desk import Desk
from tests.support.pipelines import pipeline_of
from tests.support.stops import CUT, all_at

LINES = 200


def optimize(desk: Desk) -> None:
    """Rewrite the files of the table, as another program does."""
    DeltaTable(str(desk.table)).optimize.compact()


def ids(desk: Desk) -> list[Any]:
    return DeltaTable(str(desk.table)).to_pyarrow_table(columns=["id"])["id"].to_pylist()


@pytest.fixture
def gone(tmp_path: Path) -> tuple[Desk, Path]:
    """A table with a part of a file that is gone since, which a run has noticed."""
    desk = Desk(tmp_path / "both")
    desk.arrives("a.ndjson", 3)
    desk.landing.land(NAME, LINES)
    assert pipeline_of(replace(desk.settings, sizing=CUT), all_at(30)).step()
    desk.penguin()
    aside = (desk.landing.folder / NAME).rename(tmp_path / "aside")
    desk.blizzard()
    desk.penguin()
    return desk, aside


def retracted_in_vain(desk: Desk) -> None:
    done = desk.cli("retract", NAME, "--yes")
    assert done.exit_code == 0, done.output
    optimize(desk)
    desk.penguin()


def put_back(desk: Desk, aside: Path) -> None:
    aside.rename(desk.landing.folder / NAME)


def write_snapshot(desk: Desk) -> None:
    writer = SnapshotWriter(store=desk.store, pipeline="default", clock=desk.clock)
    writer.write(read_ledger(desk.store, "default"))


@pytest.mark.parametrize("snapshot", [False, True])
@pytest.mark.parametrize("looked_before", [False, True])
def test_the_rest_of_a_file_that_was_not_taken_back_is_read_on(
    gone: tuple[Desk, Path], snapshot: bool, looked_before: bool
) -> None:
    """HOLES L39: it counted as read to its end, and its rest was lost."""
    desk, aside = gone
    before = ids(desk)
    retracted_in_vain(desk)
    assert sorted(ids(desk)) == sorted(before), "nothing was taken out"
    status = json.loads(desk.cli("status", "--output", "json").stdout)
    assert status["sources"][0]["failed_files"] == 1, "as before"
    assert desk.cli("files", "--check").exit_code == 1
    answer = json.loads(desk.cli("why", NAME, "--output", "json").stdout)
    assert (answer["state"], answer["failure"]["code"]) == ("failed", "partial_file_gone")
    if looked_before:
        desk.blizzard()
    if snapshot:
        write_snapshot(desk)

    put_back(desk, aside)
    (row,) = map(json.loads, desk.cli("files", NAME, "--output", "json").stdout.splitlines())
    assert row["state"] == "waiting", "its rest is"
    plan = desk.cli("--dry-run")
    desk.blizzard()
    desk.penguin()

    assert NAME in plan.output
    assert len(ids(desk)) == len(set(ids(desk))) == 3 + LINES
    desk.blizzard()
    desk.penguin()
    assert len(ids(desk)) == 3 + LINES


@pytest.mark.parametrize("decided", [True, False])
def test_a_file_that_was_or_is_to_be_taken_back_is_not_read_on(
    gone: tuple[Desk, Path], decided: bool
) -> None:
    """It would be in the table twice, where the retraction is carried out after all."""
    desk, aside = gone
    assert desk.cli("retract", NAME, "--yes").exit_code == 0
    if decided:
        desk.penguin()
        desk.blizzard()
    put_back(desk, aside)
    for _run in range(2):
        desk.blizzard()
        desk.penguin()
        assert len(ids(desk)) == 3
