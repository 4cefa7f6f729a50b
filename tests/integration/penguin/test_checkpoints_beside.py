"""Checkpoints are written beside the commits: none waits for one, and none fails with one."""

import signal
import subprocess
import sys
import threading

from penguin.delta.maintenance import Work, beside
from penguin.delta.table import WritableTable
from penguin.events.commits import CheckpointFailed, CheckpointWritten
from tests.support import penguin_commands
from tests.support.tables import Penguin, TableDirectory, log_of, rows_of

PATIENCE = 300


def noted(table: TableDirectory) -> list[str]:
    return sorted(one.name[:20] for one in (table.root / "_delta_log").glob("*.checkpoint.parquet"))


def test_no_commit_waits_for_a_checkpoint(table: TableDirectory) -> None:
    go_on, begun = threading.Event(), threading.Event()

    class Slow(WritableTable):
        def checkpoint(self) -> None:
            begun.set()
            assert go_on.wait(PATIENCE)
            super().checkpoint()

    penguin = Penguin(table, {"checkpoint_interval": 1}, log_of(Slow), begin=beside)
    for number in range(1, 4):
        table.journal().batch(rows_of(number))
        penguin.drain()
    assert begun.wait(PATIENCE)
    assert penguin.run.totals.commits == 3
    assert noted(table) == []
    assert table.ids() == [1, 2, 3]
    go_on.set()
    penguin.run.finish()
    # One at a time: of the first commit, since another was not begun meanwhile.
    assert [one.version for one in penguin.events if isinstance(one, CheckpointWritten)] == [1]
    table.journal().batch(rows_of(4))
    penguin.drain().run.finish()
    assert noted(table) == [f"{1:020d}", f"{4:020d}"]
    assert table.ids() == [1, 2, 3, 4]


def test_whatever_goes_wrong_in_a_checkpoint_is_told_and_ends_no_run(table: TableDirectory) -> None:
    class Broken(WritableTable):
        def checkpoint(self) -> None:
            raise ZeroDivisionError

    penguin = Penguin(table, {"checkpoint_interval": 1}, log_of(Broken), begin=beside)
    for number in (1, 2):
        table.journal().batch(rows_of(number))
        penguin.drain().run.finish()
    told = [one for one in penguin.events if isinstance(one, CheckpointFailed)]
    assert {(one.version, one.error) for one in told} == {
        (1, "ZeroDivisionError"),
        (2, "ZeroDivisionError"),
    }
    assert penguin.run.totals.commits == 2


def test_where_no_thread_can_be_started_the_commit_is_made_all_the_same(table):
    def begin(_work: Work) -> Work:
        raise RuntimeError("can't start new thread")

    table.journal().batch(rows_of(1))
    penguin = Penguin(table, {"checkpoint_interval": 1}, begin=begin).drain()
    assert penguin.run.totals.commits == 1
    told = {one.error for one in penguin.events if isinstance(one, CheckpointFailed)}
    assert told == {"can't start new thread"}


KILLED = """
import os, signal, sys
from pathlib import Path
from penguin.delta.maintenance import Work, beside
from penguin.delta.table import WritableTable
from tests.support.tables import Penguin, TableDirectory, log_of

class Killed(WritableTable):
    def checkpoint(self):
        super().checkpoint()
        (Path(sys.argv[1]) / "_delta_log" / "_last_checkpoint").unlink()  # It comes last.
        os.kill(os.getpid(), signal.SIGKILL)

table = TableDirectory(Path(sys.argv[1]))
Penguin(table, {"checkpoint_interval": 1}, log_of(Killed), begin=beside).drain()
"""


def test_a_kill_in_a_checkpoint_is_harmless(table: TableDirectory) -> None:
    table.journal().batch(rows_of(1))
    command = [sys.executable, "-c", KILLED, str(table.root)]
    killed = subprocess.run(command, check=False, timeout=PATIENCE)
    assert killed.returncode == -signal.SIGKILL
    assert table.ids() == [1]
    table.journal().batch(rows_of(2))
    Penguin(table, {"checkpoint_interval": 1}).drain()
    assert table.ids() == [1, 2]
    assert noted(table) == [f"{1:020d}", f"{2:020d}"]


def test_a_run_that_ends_waits_for_its_checkpoint(table: TableDirectory) -> None:
    """A table that is only ever committed with --once would otherwise never have one."""
    table.journal().batch(rows_of(1))
    done = penguin_commands.penguin(table.root, "--once", delta_checkpoint_interval=1)
    assert (done.exit_code, noted(table)) == (0, [f"{1:020d}"])
