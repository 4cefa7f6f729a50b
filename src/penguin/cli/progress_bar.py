"""How far the next commits are, as bars on a terminal; log lines pass above them.

While nothing waits to be committed to a table, a line says what is watched.
"""

from typing import Self

from rich.console import Console
from rich.progress import Task, TextColumn
from rich.text import Text

from lakebed.telemetry.events import Event, LastStepTaken, StepFailed, StepFinished, StopRequested
from lakebed.terminal.progress_bars import ProgressBars
from lakebed.units import plural
from penguin.events.backlog import FilesLookedAt, TableWatched

BAR = "files"
WORTH_A_BAR = 1000
"""Fewer files are looked at before a bar could be read."""


class Display:
    """One bar per table that has many files to commit, and one line per table that waits."""

    def __init__(self, console: Console) -> None:
        self._bars = ProgressBars(
            console, TextColumn("{task.completed:,.0f}/{task.total:,.0f} files")
        )
        self.write = self._bars.write
        self._watched: dict[str, str] = {}
        """What is watched of each table, in words."""

    def emit(self, event: Event) -> None:
        """Show what an event says of a commit in the making."""
        with self._bars.lock:
            match event:
                case TableWatched(table=table):
                    self._watched[table] = event.sentence()
                    self._idle(table)
                case StopRequested():
                    self._watched.clear()
                    self._bars.end_idle()
                case LastStepTaken(who=table):
                    self._bars.end(_idle_line(table))
                case FilesLookedAt(table=table, done=done, files=files) if files >= WORTH_A_BAR:
                    self._bars.end(_idle_line(table))
                    if table not in self._bars:
                        self._bars.begin(table, table, files)
                    what = "looking at" if done < files else "committing"
                    self._bars.update(
                        table, description=f"{table}: {what}", completed=done, total=files
                    )
                case StepFinished(who=table):
                    self._bars.end(table)
                    self._idle(table)
                case StepFailed(who=table):
                    self._bars.end(table)
                    self._bars.end(_idle_line(table))
                case _:
                    pass

    def _idle(self, table: str) -> None:
        text = self._watched.get(table)
        if text is not None:
            self._bars.idle(_idle_line(table), lambda: text)


def _idle_line(table: str) -> str:
    return f"{table} waits"


class _Files(TextColumn):
    """How many files are done, and of how many, if that is known."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        done = round(task.completed)
        if task.total is None:
            return Text(plural(done, "file"))
        return Text(f"{done:,}/{plural(round(task.total), 'file')}")


class FileBar:
    """One bar for one thing that is done file by file."""

    def __init__(self, console: Console) -> None:
        self._bars = ProgressBars(console, _Files())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_trouble: object) -> None:
        self._bars.end(BAR)

    def show(self, what: str, done: int, files: int | None) -> None:
        """Show how far it is; nothing is shown before the first call."""
        if BAR not in self._bars:
            self._bars.begin(BAR, what, files)
        self._bars.update(BAR, description=what, completed=done, total=files)
