"""Progress bars on a terminal, with log lines above them."""

import threading
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID
from rich.text import Text

WAITS = "waits"
"""The field of a waiting line: a function that returns its text."""
Words = Callable[[Task], str]


class _LiveText(ProgressColumn):
    """Text that is computed at each refresh; empty on waiting lines."""

    def __init__(self, words: Words) -> None:
        super().__init__()
        self._words = words

    def render(self, task: Task) -> Text:
        """Return the words for a task."""
        is_waiting = WAITS in task.fields and self._words is not _title
        return Text("" if is_waiting else self._words(task), no_wrap=True)


class _Bar(BarColumn):
    """A bar, except on waiting lines."""

    def render(self, task: Task) -> Any:  # noqa: ANN401 - rich's own
        """Return the bar of a task."""
        return Text("") if WAITS in task.fields else super().render(task)


def _title(task: Task) -> str:
    return str(task.fields[WAITS]()) if WAITS in task.fields else task.description


class ProgressBars:
    """One line for each item in progress or waited for, by name."""

    def __init__(self, to: Console, *after_bar: Words) -> None:
        self._console = to
        # A signal handler emits, too, and may interrupt us here.
        self.lock = threading.RLock()
        self._lines: dict[str, TaskID] = {}
        self._progress = Progress(
            _LiveText(_title),
            _Bar(bar_width=20),
            *map(_LiveText, after_bar),
            console=to,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def write(self, line: str) -> None:
        """Print a log line above the bars, unchanged."""
        self._console.print(Text(line), soft_wrap=True)

    def show(self, name: str, description: str, *, total: float | None, **fields: Any) -> None:  # noqa: ANN401 - rich takes any field
        """Show or update a bar; one without a total only shows activity."""
        if name in self._lines:
            line = self._lines[name]
            self._progress.update(line, description=description, total=total, **fields)
            return
        if not self._lines:
            self._progress.start()
        self._lines[name] = self._progress.add_task(description, total=total, **fields)

    def waiting(self, name: str, waits: Callable[[], str]) -> None:
        """Show a waiting line, without a bar."""
        self.show(f"{name} {WAITS}", "", total=None, waits=waits)

    def update(self, name: str, **changes: Any) -> None:  # noqa: ANN401
        """Update a bar if it is shown."""
        if name in self._lines:
            self._progress.update(self._lines[name], **changes)

    def end(self, *names: str) -> None:
        """Remove lines if they are shown."""
        for name in names:
            if (line := self._lines.pop(name, None)) is not None:
                self._progress.remove_task(line)
                if not self._lines:
                    self._progress.stop()

    def end_waiting(self, *names: str) -> None:
        """Remove the waiting lines of these names, or all without names."""
        lines = [f"{name} {WAITS}" for name in names]
        self.end(*lines or [line for line in self._lines if line.endswith(f" {WAITS}")])
