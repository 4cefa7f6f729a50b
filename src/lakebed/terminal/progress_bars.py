"""Progress bars on a terminal, with log lines above them."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID
from rich.table import Table
from rich.text import Text

from lakebed.listing.sort import Guide
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import ObjectFacts, Reader, Store
from lakebed.terminal.fitting import shortened
from lakebed.units import plural

AT_ONCE_SECS = 1.0
"""A look that is over by then shows nothing."""
IDLE = "idle"
"""The field of a line that says for what is waited: a function that returns it."""


BAR = 20
LEAST_BAR = 8
LEAST_NAME = 12


class Described(ProgressColumn):
    """What is under way."""

    def render(self, task: Task) -> Text:
        """Return the description, just as it is."""
        return Text(task.description)


class _Lines(Progress):
    """A line for each thing, however narrow the terminal is.

    Numbers stay whole. The bar gives way first, then the numbers at the end, then the middle of the
    name: log lines have the whole of it.
    """

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield what is under way, then what is waited for."""
        busy = [task for task in self.tasks if IDLE not in task.fields]
        if busy:
            yield self._bars(busy)
        for task in self.tasks:
            if IDLE in task.fields:
                yield Text(shortened(task.fields[IDLE](), self.console.width), no_wrap=True)

    def _bars(self, tasks: list[Task]) -> Table:
        columns = [column for column in self.columns if not isinstance(column, str)]
        rows = [[column(task) for column in columns] for task in tasks]
        numbers = [
            max(cell_len(str(cell)) for cell in cells)
            for cells in list(zip(*rows, strict=True))[2:]
        ]
        while numbers and self._room(numbers) < LEAST_NAME + 1 + LEAST_BAR:
            numbers.pop()
        room = self._room(numbers)
        longest = max(cell_len(str(row[0])) for row in rows)
        bar = max(LEAST_BAR, min(BAR, room - 1 - longest))
        name = min(longest, max(1, room - 1 - bar))
        table = Table.grid(padding=(0, 1))
        for width in (name, bar, *numbers):
            table.add_column(width=width, no_wrap=True)
        for row in rows:
            shown = [Text(shortened(str(row[0]), name)), *row[1 : 2 + len(numbers)]]
            table.add_row(*shown)
        return table

    def _room(self, numbers: list[int]) -> int:
        """Return what numbers leave of the terminal for the name and the bar."""
        return self.console.width - sum(width + 1 for width in numbers)


class ProgressBars:
    """One bar for each thing under way, by its name; none at all while nothing is."""

    def __init__(self, to: Console, *after_bar: ProgressColumn) -> None:
        self._console = to
        # A signal handler emits, too, and may interrupt us here.
        self.lock = threading.RLock()
        self._bars: dict[str, TaskID] = {}
        self._progress = _Lines(
            Described(),
            BarColumn(bar_width=BAR),
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

    def idle(self, name: str, waits: Callable[[], str]) -> None:
        """Show a line that says for what is waited, without a bar."""
        if name in self._bars:
            self.update(name, **{IDLE: waits})
        else:
            self.begin(name, "", None, **{IDLE: waits})

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

    def end_idle(self) -> None:
        """Take away every line that says for what is waited."""
        tasks = {task.id: task for task in self._progress.tasks}
        for name in [name for name, bar in self._bars.items() if IDLE in tasks[bar].fields]:
            self.end(name)

    def __contains__(self, name: str) -> bool:
        return name in self._bars


@dataclass(slots=True)
class Looked:
    """How much of stores was looked at so far."""

    names: int = 0
    documents: int = 0
    groups: int | None = None
    """How many groups of files are rewritten after the look; None while it is under way."""
    groups_done: int = 0
    write: Callable[[str], None] | None = None
    """Takes log lines where this is shown on the same terminal; None where nothing is."""

    def rewritten(self, done: int, groups: int) -> None:
        """Take note that some of the groups of files are rewritten."""
        self.groups_done, self.groups = done, groups

    def sentence(self, what: str) -> str:
        """Return how far a look is, or what is done after it."""
        if self.groups is not None:
            groups = plural(self.groups, "group")
            return f"{what}: {self.groups_done:,} of {groups} of files rewritten"
        names, documents = plural(self.names, "name"), plural(self.documents, "document")
        return f"{what}: {names} listed, {documents} read"


class _Counting(Reader):
    """Counts the names that are listed and the documents that are read."""

    looked: Looked

    def objects(self, prefix: str = "", *, after: str | None = None) -> Iterator[ObjectFacts]:
        for facts in super().objects(prefix, after=after):
            self.looked.names += 1
            yield facts

    def in_order(
        self, prefix: str = "", *, after: str = "", guide: Guide | None = None
    ) -> Iterator[ObjectFacts]:
        is_local = self.local_root is not None  # Else the names come by `objects`.
        for facts in super().in_order(prefix, after=after, guide=guide):
            self.looked.names += is_local
            yield facts

    def get(self, path: str) -> bytes | None:
        self.looked.documents += 1
        return super().get(path)

    def get_range(self, path: str, *, start: int, length: int) -> bytes | None:
        self.looked.documents += 1
        return super().get_range(path, start=start, length=length)

    def stream(self, path: str, *, size: int, etag: str | None, start: int = 0) -> Iterator[bytes]:
        self.looked.documents += 1
        return super().stream(path, size=size, etag=etag, start=start)


class CountedReader(_Counting):
    """A reader whose looks are counted."""

    def __init__(self, uri: str, options: StorageOptions, looked: Looked) -> None:
        super().__init__(uri, options)
        self.looked = looked


class CountedStore(_Counting, Store):
    """A store whose looks are counted."""

    def __init__(self, uri: str, options: StorageOptions, looked: Looked) -> None:
        super().__init__(uri, options)
        self.looked = looked


@contextmanager
def looking(
    what: str,
    *,
    shown: bool,
    to: Console | None = None,
    seconds: Callable[[], float] = time.monotonic,
) -> Iterator[Looked]:
    """Yield what a look is counted in; one that takes longer than a moment shows how far it is."""
    looked, began = Looked(), seconds()
    if not shown:
        yield looked
        return
    bars = ProgressBars(to or Console(stderr=True))
    looked.write = bars.write
    bars.idle(what, lambda: "" if seconds() - began < AT_ONCE_SECS else looked.sentence(what))
    try:
        yield looked
    finally:
        bars.end(what)
