"""How far the next commits are, as bars on a terminal; log lines pass above them."""

import threading

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from lakebed.telemetry.events import Event, StepFailed, StepFinished
from penguin.events.backlog import FilesLookedAt

WORTH_A_BAR = 1000
"""Fewer files are looked at before a bar could be read."""


class Display:
    """One bar per table that has many files to commit; none at all while no table has."""

    def __init__(self, console: Console) -> None:
        self._console = console
        # A signal handler emits, too, and may interrupt us here.
        self._lock = threading.RLock()
        self._bars: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} files"),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def write(self, line: str) -> None:
        """Print a log line above the bars, just as it is."""
        self._console.print(Text(line), soft_wrap=True)

    def emit(self, event: Event) -> None:
        """Show what an event says of a commit in the making."""
        with self._lock:
            match event:
                case FilesLookedAt(table=table, done=done, files=files) if files >= WORTH_A_BAR:
                    self._update(table, done, files)
                case StepFinished(who=table) | StepFailed(who=table):
                    self._end(table)
                case _:
                    pass

    def _update(self, table: str, done: int, files: int) -> None:
        if not self._bars:
            self._progress.start()
        if table not in self._bars:
            self._bars[table] = self._progress.add_task(table, total=files)
        what = f"{table}: looking at" if done < files else f"{table}: committing"
        self._progress.update(self._bars[table], description=what, completed=done, total=files)

    def _end(self, table: str) -> None:
        bar = self._bars.pop(table, None)
        if bar is None:
            return
        self._progress.remove_task(bar)
        if not self._bars:
            self._progress.stop()
