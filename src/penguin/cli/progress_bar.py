"""The progress of commits on a terminal, below the log lines.

While nothing waits to be committed to a table, a line says what is watched.
"""

from rich.console import Console
from rich.progress import Task

from lakebed.telemetry.events import Event, LastStepTaken, StepFailed, StepFinished, StopRequested
from lakebed.terminal.progress import ProgressBars
from lakebed.units import plural
from penguin.events.backlog import FilesLookedAt, TableWatched

WORTH_A_BAR = 1000
"""Fewer files are read before a bar could be."""


def files_done(task: Task) -> str:
    """Return how many files are done, and of how many, if that is known."""
    done = round(task.completed)
    if task.total is None:
        return plural(done, "file")
    return f"{done:,}/{plural(round(task.total), 'file')}"


class CommitProgress:
    """One bar per table that has many files to commit, and one line per table that waits."""

    def __init__(self, console: Console | None = None) -> None:
        self._bars = ProgressBars(console or Console(stderr=True), files_done)
        self.write = self._bars.write
        self._watched: dict[str, str] = {}
        """What is watched of each table, in words."""

    def emit(self, event: Event) -> None:
        """Show what an event says about the next commit."""
        with self._bars.lock:
            match event:
                case TableWatched(table=table):
                    self._watched[table] = event.sentence()
                    self._wait(table)
                case StopRequested():
                    self._watched.clear()
                    self._bars.end_waiting()
                case LastStepTaken(who=table):
                    self._bars.end_waiting(table)
                case FilesLookedAt(table=table, done=done, files=files) if files >= WORTH_A_BAR:
                    self._bars.end_waiting(table)
                    what = f"{table}: {'looking at' if done < files else 'committing'}"
                    self._bars.show(table, what, total=files, completed=done)
                case StepFinished(who=table):
                    self._bars.end(table)
                    self._wait(table)
                case StepFailed(who=table):
                    self._bars.end(table)
                    self._bars.end_waiting(table)
                case _:
                    pass

    def _wait(self, table: str) -> None:
        text = self._watched.get(table)
        if text is not None:
            self._bars.waiting(table, lambda: text)
