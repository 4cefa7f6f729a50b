"""`blizzard top`: the live page, in a terminal."""

import os
import sys
from contextlib import closing
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live as Display
from rich.text import Text

from blizzard.config import load as config
from lakebed.clock import Clock
from lakebed.errors import ConfigInvalid
from lakebed.telemetry.levels import LogFormat
from lakebed.terminal.arguments import DONE, Files, Folders, Output, Shape, usage_is_checked
from lakebed.terminal.console import console, print_line
from liveview.lake import lake_of
from liveview.terminal.feed import Feed
from liveview.terminal.screen import View, screen
from liveview.terminal.watch import Terminal, watch

ALL_LINES = 100_000
"""How high a screen is that is printed, not watched."""


def top(
    files: Files = None,
    folders: Folders = None,
    pipeline: Annotated[
        str | None,
        typer.Option("-p", "--pipeline", metavar="NAME", help="Show only this pipeline."),
    ] = None,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Time between two looks.")
    ] = 2.0,
    output: Shape = Output.TEXT,
) -> None:
    """Watch all pipelines and tables in the terminal.

    It asks the program that runs, at its metrics address. Where none answers, it reads journals
    and tables itself. Nothing is written. Without a terminal, and as JSON, it prints one look.
    """
    with usage_is_checked(LogFormat.TEXT):
        settings = config.load(files or [], folders or [], os.environ)
        lake = lake_of(settings, files or [], folders or [], os.environ)
        if pipeline is not None and pipeline not in lake.pipelines:
            names = ", ".join(lake.pipelines)
            raise ConfigInvalid([f"there is no pipeline {pipeline!r}; there are: {names}"])
    clock = Clock()
    with closing(Feed(lake, clock, only=pipeline)) as feed:
        if output is Output.JSON:
            print_line(feed.settled().overview)
        elif sys.stdin.isatty() and sys.stdout.isatty():
            _watch(feed, clock, interval)
        else:
            _print(feed, clock)
    raise typer.Exit(DONE)


def _print(feed: Feed, clock: Clock) -> None:
    shown = console()
    seen = feed.settled()
    lines = screen(
        seen.overview,
        View(),
        now=clock.now(),
        width=shown.width,
        height=ALL_LINES,
        note=seen.note,
        keys=False,
    )
    for line in lines:
        line.rstrip()
        shown.print(line, soft_wrap=True)


def _watch(feed: Feed, clock: Clock, interval: float) -> None:
    from liveview.terminal.keys import keyboard  # noqa: PLC0415 - only a terminal has keys

    shown = Console(markup=False, highlight=False, emoji=False)
    with (
        keyboard() as keys,
        Display(console=shown, screen=True, auto_refresh=False, transient=True) as display,
    ):

        def draw(lines: list[Text]) -> None:
            for line in lines:
                line.no_wrap = True
            display.update(Group(*lines), refresh=True)

        display.update(Text("Looking …"), refresh=True)
        terminal = Terminal(
            size=lambda: (shown.size.width, shown.size.height), draw=draw, keys=keys.wait
        )
        try:
            watch(feed, terminal, clock, interval=interval)
        except KeyboardInterrupt:
            return  # This is how a watch is ended; it is not a failure.
