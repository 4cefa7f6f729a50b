"""`penguin vacuum` and `penguin fsck` on every store: what nobody needs goes, and nothing else."""

import time
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from blizzard.pipeline_log import PipelineLog
from blizzard.repair.redo import RedoRequest, redo
from lakebed.clock import Clock
from lakebed.deltalog.segment import whole_segment
from lakebed.deltalog.table_files import active_files
from lakebed.layout import file_name
from lakebed.storage.remote import for_delta
from penguin.upkeep.fsck import FsckFault, check
from penguin.upkeep.repair import RepairOrder
from penguin.upkeep.vacuum import VacuumOrder
from tests.support.dying import Fate
from tests.support.servers_lake import Lake
from tests.support.servers_reached import Contestant

pytestmark = pytest.mark.stores

A_TICK = 1.5
"""Stores tell times to the second."""


@pytest.fixture
def lake(contestant: Contestant, tmp_path: Path) -> Lake:
    """A table with one data file in each of two partitions."""
    lake = Lake(contestant, tmp_path)
    for day in ("01", "02"):
        lake.land(f"date=2024-01-{day}/a b%.ndjson")
        lake.life(Fate.none())
    return lake


def data(lake: Lake) -> set[str]:
    """Name the data files that are there."""
    return {one.path for one in lake.store("table").objects() if one.path.startswith("date=")}


def opened(lake: Lake) -> DeltaTable:
    access = for_delta(lake.contestant.options(), uri=lake.table)
    return DeltaTable(lake.table, storage_options=access)


def test_only_what_no_version_needs_is_vacuumed(lake: Lake) -> None:
    """Files that wait for their commit stay, whatever their age."""
    store, (settings,) = lake.store("table"), lake.programs.tables
    lake.land("date=2024-01-01/later.ndjson")
    lake.life(Fate.none())
    opened(lake).optimize.compact()
    lake.land("date=2024-01-02/waits.ndjson")
    lake.programs.blizzard(Fate.none())
    there = data(lake)
    named = active(lake)
    time.sleep(A_TICK)
    order = VacuumOrder(settings=settings, older_than=timedelta(0), ignore_retention=True)
    seen = order.look(store)
    done = order.carry_out(store)
    assert seen is not None
    assert done is not None
    assert (done.files, done.bytes, done.some) == (seen.files, seen.bytes, seen.some)
    assert (done.oldest, done.newest, done.recorded) == (seen.oldest, seen.newest, True)
    left = data(lake)
    assert named <= left
    # The small files that were put together: two in the first partition.
    assert len(there - left) == done.files == 2
    lake.programs.penguin(Fate.none())
    lake.balances()


def test_a_missing_file_is_taken_out_and_its_sources_are_read_again(lake: Lake) -> None:
    store = lake.store("table")
    assert check(store).damaged == ()
    lost = min(active(lake))
    store.delete(lost)
    (one,) = check(store).damaged
    assert (one.path, one.trouble) == (lost, FsckFault.MISSING)
    done = RepairOrder().carry_out(store)
    assert [one.path for one in done.files] == [lost]
    assert check(store).damaged == ()
    (settings,) = lake.programs.pipelines
    wanted = RedoRequest(files=frozenset({file_name(lost)}))
    _, entry = redo(store, settings.name, PipelineLog(settings).fates, clock=Clock(), wanted=wanted)
    assert entry is not None
    for _ in range(2):
        lake.life(Fate.none())
    lake.balances()


def active(lake: Lake) -> set[str]:
    """Name the files of the newest version."""
    store = lake.store("table")
    return {one.path for one in active_files(store, whole_segment(store))}
