"""How far the next commits are, as bars on a terminal; log lines pass above them."""

from typing import Self

from rich.console import Console
from rich.progress import Task, TextColumn
from rich.text import Text

from lakebed.telemetry.events import Event, StepFailed, StepFinished
from lakebed.terminal.progress_bars import ProgressBars
from penguin.events.backlog import FilesLookedAt

BAR = "files"
WORTH_A_BAR = 1000
"""Fewer files are looked at before a bar could be read."""


class Display:
    """One bar per table that has many files to commit; none at all while no table has."""

    def __init__(self, console: Console) -> None:
        self._bars = ProgressBars(
            console, TextColumn("{task.completed:,.0f}/{task.total:,.0f} files")
        )
        self.write = self._bars.write

    def emit(self, event: Event) -> None:
        """Show what an event says of a commit in the making."""
        with self._bars.lock:
            match event:
                case FilesLookedAt(table=table, done=done, files=files) if files >= WORTH_A_BAR:
                    if table not in self._bars:
                        self._bars.begin(table, table, files)
                    what = "looking at" if done < files else "committing"
                    self._bars.update(
                        table, description=f"{table}: {what}", completed=done, total=files
                    )
                case StepFinished(who=table) | StepFailed(who=table):
                    self._bars.end(table)
                case _:
                    pass


class _Files(TextColumn):
    """How many files are done, and of how many, if that is known."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        total = "" if task.total is None else f"/{task.total:,.0f}"
        return Text(f"{task.completed:,.0f}{total} files")


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
