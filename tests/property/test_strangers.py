"""Random arrivals, polls, restarts, twins and compactions: every file is in the table once."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.foreign import Directory

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
