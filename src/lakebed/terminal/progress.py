"""Progress on a terminal, with log lines above it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID
from rich.text import Text

from lakebed.listing.sort import Guide
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import ObjectFacts, Reader, Store
from lakebed.units import plural

AT_ONCE_SECS = 1.0
"""Nothing is shown of what is over by then."""
WAITS = "waits"
"""The field of a line without a bar: a function that returns what is waited for."""
Words = Callable[[Task], str]


class _LiveText(ProgressColumn):
    """Text that is computed at each refresh; a line without a bar has none."""

    def __init__(self, words: Words) -> None:
        super().__init__()
        self._words = words

    def render(self, task: Task) -> Text:
        """Return the words for a task."""
        is_waiting = WAITS in task.fields and self._words is not _title
        return Text("" if is_waiting else self._words(task), no_wrap=True)


class _Bar(BarColumn):
    """A bar, except on lines that only say what is waited for."""

    def render(self, task: Task) -> Any:  # noqa: ANN401 - rich's own
        """Return the bar of a task."""
        return Text("") if WAITS in task.fields else super().render(task)


def _title(task: Task) -> str:
    return str(task.fields[WAITS]()) if WAITS in task.fields else task.description


class ProgressBars:
    """One line for each thing in progress or waited for, by its name."""

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
        """Show a bar, or bring it up to date; one without a total only shows that it goes on."""
        if name in self._lines:
            line = self._lines[name]
            self._progress.update(line, description=description, total=total, **fields)
            return
        if not self._lines:
            self._progress.start()
        self._lines[name] = self._progress.add_task(description, total=total, **fields)

    def waiting(self, name: str, waits: Callable[[], str]) -> None:
        """Show a line that says what is waited for, without a bar."""
        self.show(f"{name} {WAITS}", "", total=None, waits=waits)

    def update(self, name: str, **changes: Any) -> None:  # noqa: ANN401
        """Bring a bar up to date, if it is shown."""
        if name in self._lines:
            self._progress.update(self._lines[name], **changes)

    def end(self, *names: str) -> None:
        """Take lines away, as far as they are shown."""
        for name in names:
            if (line := self._lines.pop(name, None)) is not None:
                self._progress.remove_task(line)
                if not self._lines:
                    self._progress.stop()

    def end_waiting(self, *names: str) -> None:
        """Take away the waiting lines of these names; without names, all of them."""
        lines = [f"{name} {WAITS}" for name in names]
        self.end(*lines or [line for line in self._lines if line.endswith(f" {WAITS}")])


@dataclass(slots=True)
class StoreProgress:
    """How much of stores was read so far."""

    names: int = 0
    documents: int = 0
    groups: int | None = None
    """Groups of files that are rewritten after the reading; None while that is under way."""
    groups_done: int = 0
    write: Callable[[str], None] | None = None
    """Takes log lines while this is shown on the same terminal; None otherwise."""

    def rewritten(self, done: int, groups: int) -> None:
        """Record how many of the groups of files are rewritten."""
        self.groups_done, self.groups = done, groups

    def sentence(self, what: str) -> str:
        """Return the progress in words."""
        if self.groups is not None:
            groups = plural(self.groups, "group")
            return f"{what}: {self.groups_done:,} of {groups} of files rewritten"
        names, documents = plural(self.names, "name"), plural(self.documents, "document")
        return f"{what}: {names} listed, {documents} read"


class CountedReader(Reader):
    """A reader that counts the names that it lists and the documents that it reads."""

    def __init__(self, uri: str, options: StorageOptions, progress: StoreProgress) -> None:
        super().__init__(uri, options)
        self.progress = progress

    def objects(self, prefix: str = "", *, after: str | None = None) -> Iterator[ObjectFacts]:
        """List every object below a prefix."""
        for facts in super().objects(prefix, after=after):
            self.progress.names += 1
            yield facts

    def in_order(
        self, prefix: str = "", *, after: str = "", guide: Guide | None = None
    ) -> Iterator[ObjectFacts]:
        """List every object below a prefix, in order."""
        is_local = self.local_root is not None  # Else the names come by `objects`.
        for facts in super().in_order(prefix, after=after, guide=guide):
            self.progress.names += is_local
            yield facts

    def get(self, path: str) -> bytes | None:
        """Read a whole object."""
        self.progress.documents += 1
        return super().get(path)

    def get_range(self, path: str, *, start: int, length: int) -> bytes | None:
        """Read some bytes of an object."""
        self.progress.documents += 1
        return super().get_range(path, start=start, length=length)

    def part(self, path: str, start: int, end: int, *, etag: str | None) -> bytes:
        """Read some bytes of the very object that was listed."""
        self.progress.documents += 1
        return super().part(path, start, end, etag=etag)

    def stream(self, path: str, *, size: int, etag: str | None, start: int = 0) -> Iterator[bytes]:
        """Read the very object that was listed."""
        self.progress.documents += 1
        return super().stream(path, size=size, etag=etag, start=start)


class CountedStore(CountedReader, Store):
    """A store that counts what it reads."""


@contextmanager
def store_progress(
    what: str,
    *,
    is_shown: bool,
    to: Console | None = None,
    seconds: Callable[[], float] = time.monotonic,
) -> Iterator[StoreProgress]:
    """Count what is read from stores; show it if that takes longer than a moment."""
    progress, began = StoreProgress(), seconds()
    if not is_shown:
        yield progress
        return
    bars = ProgressBars(to or Console(stderr=True))
    progress.write = bars.write
    bars.waiting(what, lambda: "" if seconds() - began < AT_ONCE_SECS else progress.sentence(what))
    try:
        yield progress
    finally:
        bars.end_waiting(what)
