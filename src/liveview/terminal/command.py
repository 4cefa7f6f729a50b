"""`blizzard top`: the live page, in a terminal."""

import os
import re
import select
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Annotated, NamedTuple, get_args

import typer
from rich.console import Console
from rich.layout import Layout
from rich.live import Live as Display
from rich.text import Text

from blizzard.config import load as config
from lakebed.clock import Clock
from lakebed.terminal.call import Call, Output
from lakebed.terminal.console import console, print_json
from liveview.answer_cache import Timeouts
from liveview.headline import overview_of
from liveview.lake import OTHER_LAKE, Lake, ProgramName, Unreachable, lake_of
from liveview.live import Live
from liveview.model import Overview, Process, Program
from liveview.observer import Observer
from liveview.terminal.screen import ORDERS, View, listed, screen

TIMEOUT_SECS = 10.0
"""The first overview of many pipelines takes a while."""
SETTLE_SECS = 30.0
NOBODY = "neither program answers; this was read from journals and tables"
KEYS = "↑↓ choose   / filter   s sort by {order}   p pause   q quit"
TYPING = "filter: {search}_   Enter keeps it, Esc clears it"
PRESSED = {
    "up": ("\x1b[A", "\x1bOA", "k"),
    "down": ("\x1b[B", "\x1bOB", "j"),
    "first": ("\x1b[H", "\x1b[1~", "g"),
    "last": ("\x1b[F", "\x1b[4~", "G"),
    "filter": ("/",),
    "sort": ("s",),
    "pause": ("p", " "),
    "quit": ("q", "Q", ""),
}
"""The sequences that each key sends; a closed terminal sends an empty one."""
NAMES = {sent: name for name, sequences in PRESSED.items() for sent in sequences}
SEQUENCE = re.compile(r"\x1b[\[O][0-9;]*[@-~]|.", re.DOTALL)


def top(
    call: Call,
    pipeline: Annotated[str | None, typer.Option("-p", "--pipeline")] = None,
    interval: Annotated[float, typer.Option(min=0.1)] = 2.0,
) -> None:
    """Watch all pipelines and tables in the terminal.

    It asks a running program, at its metrics address. If none answers, it reads journals and
    tables itself. Nothing is written. Without a terminal, or as JSON, it prints once and exits.

    Args:
        pipeline NAME: Show only this pipeline.
        interval SECONDS: Time between refreshes.
    """
    files, folders = call.files or [], call.folders or []
    loaded = config.load(files, folders, os.environ)
    loaded.only(pipeline)  # Raise if there is no such pipeline.
    lake = lake_of(loaded, files, folders, os.environ)
    clock = Clock()
    with closing(Feed(lake, clock, only=pipeline)) as feed:
        if call.output is Output.JSON:
            print_json(feed.settled().overview)
        elif sys.stdin.isatty() and sys.stdout.isatty():
            _watch(feed, clock, interval)
        else:
            shown, seen = console(), feed.settled()
            width, now = shown.width, clock.now()
            with shown.capture() as drawn:
                shown.print(screen(seen.overview, View(), now=now, width=width, note=seen.note))
            sys.stdout.write(BLANK_END.sub(r"\1", drawn.get()))


BLANK_END = re.compile(r"[ \t]+((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)
"""Blanks that rich leaves at the ends of lines, before the escapes that end a colour."""


class ShownOverview(NamedTuple):
    """An overview with a note about its origin."""

    overview: Overview
    note: str = ""


class Feed:
    """Gets the overview from a running program, or reads journals and tables itself."""

    def __init__(
        self,
        lake: Lake,
        clock: Clock,
        *,
        only: str | None = None,
        patience: Timeouts | None = None,
        timeout: float = TIMEOUT_SECS,
    ) -> None:
        self._lake = lake
        self._clock = clock
        self._only = only
        self._patience = patience
        self._timeout = timeout
        self._observer: Observer | None = None

    def __call__(self) -> ShownOverview:
        """Return the current overview."""
        found, note = self._overview()
        if self._only is not None:
            pipelines = [each for each in found.pipelines if each.name == self._only]
            tables = [each for each in found.tables if self._only in each.pipelines]
            found = overview_of(found.at, found.programs, pipelines, tables)
        return ShownOverview(found, note)

    def settled(self) -> ShownOverview:
        """Return the overview once slow observations are done."""
        seen = self()
        if self._observer is None:
            return seen
        self._observer.settle(SETTLE_SECS)
        return self()

    def close(self) -> None:
        """Release what was opened for reading."""
        if self._observer is not None:
            self._observer.close()

    def _overview(self) -> ShownOverview:
        silent: list[Program] = []
        for name in get_args(ProgramName):
            process = self._lake.ask(name, "/api/v1/process", Process, timeout=self._timeout)
            if isinstance(process, Process) and not self._lake.shares(process.table_uris):
                process = Unreachable(OTHER_LAKE.format(address=self._lake.addresses[name]))
            if isinstance(process, Process):
                answer = self._lake.ask(name, "/api/v1/overview", Overview, timeout=self._timeout)
                if isinstance(answer, Overview):
                    return ShownOverview(answer)
                process = answer
            silent.append(self._lake.unreachable(name, process.note))
        found = self._own_observer().overview()
        return ShownOverview(overview_of(found.at, silent, found.pipelines, found.tables), NOBODY)

    def _own_observer(self) -> Observer:
        if self._observer is None:
            # This process runs no pipeline, so it reports none.
            live = Live("blizzard", version="", seconds=self._clock.seconds)
            self._observer = Observer(
                self._lake, live, "blizzard", clock=self._clock, patience=self._patience
            )
        return self._observer


def _watch(feed: Feed, clock: Clock, interval: float) -> None:
    """Draw the overview and refresh it after every interval, until quit."""
    shown = Console(markup=False, highlight=False, emoji=False)
    display = Display(console=shown, screen=True, auto_refresh=False, transient=True)
    view = View()
    with _single_keys() as descriptor, display:
        display.update(Text("Reading …"), refresh=True)
        try:
            seen, due = feed(), clock.seconds() + interval
            while True:
                if clock.seconds() >= due:
                    seen = seen if view.paused else feed()
                    due = clock.seconds() + interval
                view = marked(view, seen.overview)
                width, height = shown.size
                now, note = clock.now(), seen.note
                body = screen(seen.overview, view, now=now, width=width, height=height, note=note)
                layout = Layout()
                layout.split_column(Layout(body), Layout(Text(keys_line(view), "dim"), size=1))
                display.update(layout, refresh=True)
                for key in _pressed(descriptor, due - clock.seconds()):
                    if key == "" or (not view.typing and NAMES.get(key) == "quit"):
                        return
                    view = after_key(view, key, seen.overview)
        except KeyboardInterrupt:
            return  # Ctrl-C is a normal way to quit.


def keys_line(view: View) -> str:
    """Return the help line for the keys."""
    if view.typing:
        return TYPING.format(search=view.search)
    return KEYS.format(order=view.order) + (f"   filter: {view.search}" if view.search else "")


def marked(view: View, overview: Overview) -> View:
    """Select the first pipeline if the selected one is not shown."""
    names = [each.name for each in listed(overview, view)]
    return view if view.chosen in names else replace(view, chosen=names[0] if names else None)


def after_key(view: View, key: str, overview: Overview) -> View:
    """Return the view after a key press."""
    if view.typing:
        return marked(_after_letter(view, key), overview)
    view, name = marked(view, overview), NAMES.get(key)
    names = [each.name for each in listed(overview, view)]
    at = names.index(view.chosen) if view.chosen is not None else 0
    to = {"up": at - 1, "down": at + 1, "first": 0, "last": len(names) - 1}.get(name or "")
    if to is not None and names:
        return replace(view, chosen=names[min(max(to, 0), len(names) - 1)])
    if name == "sort":
        orders = list(ORDERS)
        return replace(view, order=orders[(orders.index(view.order) + 1) % len(orders)])
    if name == "filter":
        return replace(view, typing=True)
    return replace(view, paused=not view.paused) if name == "pause" else view


def _after_letter(view: View, key: str) -> View:
    """Return the view after a key that belongs to the search."""
    if key in ("\r", "\n"):
        return replace(view, typing=False)
    if key == "\x1b":
        return replace(view, typing=False, search="")
    if key in ("\x7f", "\b"):
        return replace(view, search=view.search[:-1])
    return replace(view, search=view.search + key) if key.isprintable() else view


def keys_of(typed: str) -> list[str]:
    """Split terminal input into keys; a closed terminal gives one empty key. Pure."""
    return SEQUENCE.findall(typed) or [""]


def _pressed(descriptor: int, seconds: float) -> list[str]:
    ready, _writable, _failed = select.select([descriptor], [], [], max(0.0, seconds))
    return keys_of(os.read(descriptor, 1024).decode(errors="replace")) if ready else []


@contextmanager
def _single_keys() -> Iterator[int]:
    """Read single keys without echo until the block ends."""
    import termios  # noqa: PLC0415 - only a terminal has keys
    import tty  # noqa: PLC0415

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
