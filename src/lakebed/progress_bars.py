"""Progress bars on a terminal, with log lines above them."""

import threading
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn
from rich.text import Text


class ProgressBars:
    """One bar for each thing under way, by its name; none at all while nothing is."""

    def __init__(self, to: Console, *after_bar: ProgressColumn) -> None:
        self._console = to
        # A signal handler emits, too, and may interrupt us here.
        self.lock = threading.RLock()
        self._bars: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            *after_bar,
            console=to,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def write(self, line: str) -> None:
        """Print a log line above the bars, just as it is."""
        self._console.print(Text(line), soft_wrap=True)

    def begin(self, name: str, description: str, total: float | None, **fields: Any) -> None:  # noqa: ANN401 - rich takes any field
        """Show a bar; one without a total only shows that it goes on."""
        if not self._bars:
            self._progress.start()
        self._bars[name] = self._progress.add_task(description, total=total, **fields)

    def update(self, name: str, **changes: Any) -> None:  # noqa: ANN401
        """Bring a bar up to date, if it is shown."""
        if name in self._bars:
            self._progress.update(self._bars[name], **changes)

    def end(self, name: str) -> None:
        """Take a bar away, if it is shown."""
        if (bar := self._bars.pop(name, None)) is None:
            return
        self._progress.remove_task(bar)
        if not self._bars:
            self._progress.stop()

    def __contains__(self, name: str) -> bool:
        return name in self._bars
