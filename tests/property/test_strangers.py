"""Random arrivals, polls, restarts, twins and compactions: every file is in the table once."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.foreign import Directory
from tests.support.removals import HOUR, RETENTION, date_last, scan, take_out, trim, write_version

FOLDERS = ["date=2023-12-25/hour=05", "date=2023-12-31/hour=23", "date=2024-01-01/hour=00"]
STEPS: st.SearchStrategy[Any] = st.lists(
    st.one_of(
        st.tuples(
            st.just("arrive"),
            # How long before its upload ended the file got its name: far beyond the late window.
            st.tuples(st.integers(0, 2), st.sampled_from([0.0, 5.0, 90.0, 4000.0])),
        ),
        st.tuples(st.just("poll"), st.none()),
        st.tuples(st.just("restart"), st.none()),
        st.tuples(st.just("twin"), st.none()),
        st.tuples(st.just("clock"), st.sampled_from([1.0, 40.0, 700.0, -400.0])),
        st.tuples(st.just("compact"), st.none()),
        st.tuples(st.just("checkpoint"), st.none()),
    ),
    min_size=3,
    max_size=14,
)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_every_file_is_committed_exactly_once(steps):
    """HOLES L07, L08, L22, D08, D09"""
    with TemporaryDirectory() as folder:
        table = Directory(Path(folder) / "table")
        options = {"late_window": 60.0, "sweep_interval": 600.0, "max_files_per_commit": 3}
        penguin = table.penguin(**options)
        arrived: list[int] = []
        latest = table.hands.at
        for step, given_ in steps:
            match step:
                case "arrive":
                    place, age = given_
                    arrived.append(len(arrived))
                    table.file(arrived[-1], folder=FOLDERS[place], age=age)
                case "poll":
                    penguin.drain()
                case "restart":
                    penguin = table.penguin(**options).drain()
                case "twin":
                    table.penguin(**options).drain()
                case "clock":
                    table.hands.at += given_
                    latest = max(latest, table.hands.at)
                case "compact" if table.ids():
                    table.delta().optimize.compact()
                case "checkpoint" if table.ids():
                    table.delta().create_checkpoint()
        assert set(table.ids()) <= set(arrived)
        assert len(table.ids()) == len(set(table.ids()))
        # The process that ran all the time finds the rest by its next sweep, which is due by the
        # latest time that it has seen: the clock may have been set back since.
        table.hands.at = latest + 600.0
        penguin.drain()
        assert table.ids() == arrived


ROUNDS: st.SearchStrategy[Any] = st.lists(
    st.tuples(
        st.one_of(
            st.tuples(st.just("remove"), st.sampled_from([None, 0.0, 24.0 * 20])),
            st.tuples(st.just("retention"), st.sampled_from([0, 24 * 30])),
            st.just(("other", None)),
        ),
        st.booleans(),
        st.sampled_from([None, DeltaTable.create_checkpoint, trim]),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=40, deadline=None)
@given(ROUNDS)
def test_a_file_that_was_removed_never_comes_back_however_the_log_is_trimmed(rounds):
    """Another engine adds files and removes them, with a time or without one; penguin restarts."""
    with TemporaryDirectory() as folder:
        table = Directory(Path(folder) / "table")
        hours = iter(range(2 * len(rounds) + 1, 0, -1))
        scan(table, 0, hours_ago=next(hours), versions=2)
        removed: set[int] = set()
        for number, ((event, given_), scans, tidy) in enumerate(rounds, start=1):
            ago, before = next(hours), table.delta().version()
            table.hands.at = time.time() - ago * HOUR
            match event:
                case "remove":
                    path = table.file(number, modified=table.hands.at)
                    take_out(table, path, None if given_ is None else ago + given_, hours_ago=ago)
                    removed.add(number)
                case "retention":
                    retention = {RETENTION: f"interval {given_} hours"}
                    table.delta().alter.set_table_properties(retention)
                case "other":
                    write_version(table, {"commitInfo": {"timestamp": 1, "operation": "WRITE"}})
            date_last(table, ago, versions=table.delta().version() - before)
            ago = next(hours)
            if scans:
                scan(table, 100 + number, hours_ago=ago)
            if tidy is not None:
                tidy(table if tidy is trim else table.delta())
        table.penguin().drain()
        assert removed.isdisjoint(table.ids())
        assert len(table.ids()) == len(set(table.ids()))
