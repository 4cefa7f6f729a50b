"""Look again and again, draw what is seen, and do what the keys ask for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rich.text import Text

from lakebed.clock import Clock
from liveview.model import Overview
from liveview.terminal.keys import Key
from liveview.terminal.screen import View, in_order, screen


@dataclass(frozen=True, slots=True)
class Seen:
    """An overview, or the last one that could be had and why there is no newer one."""

    overview: Overview
    note: str = ""


class Look(Protocol):
    """Sees how things are now."""

    def __call__(self) -> Seen:
        """Return what there is to see; trouble is a note, not an error."""


class Wait(Protocol):
    """Waits for keys."""

    def __call__(self, seconds: float, /) -> Sequence[Key]:
        """Return the keys that are pressed, after so many seconds at the latest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """What a watch needs of a terminal."""

    size: Callable[[], tuple[int, int]]
    """Returns how wide and how high it is now."""
    draw: Callable[[list[Text]], None]
    keys: Wait


def watch(look: Look, terminal: Terminal, clock: Clock, *, interval: float) -> None:
    """Show what there is, and look again after every interval, until a key asks to quit."""
    view, seen = View(), look()
    due = clock.seconds() + interval
    while True:
        now = clock.now()
        if clock.seconds() >= due:
            seen = seen if view.paused else look()
            due = clock.seconds() + interval
        view = standing(view, seen.overview)
        width, height = terminal.size()
        terminal.draw(
            screen(seen.overview, view, now=now, width=width, height=height, note=seen.note)
        )
        for key in terminal.keys(min(interval, max(0.0, due - clock.seconds()))):
            if key is Key.QUIT:
                return
            view = pressed(view, key, seen.overview)


def standing(view: View, overview: Overview) -> View:
    """Return the view with a pipeline marked that exists: the first, where the old one is gone."""
    names = [each.name for each in in_order(overview.pipelines)]
    if view.chosen in names:
        return view
    return replace(view, chosen=names[0] if names else None, opened=False)


def pressed(view: View, key: Key, overview: Overview) -> View:
    """Return what is to be seen after a key was pressed. Pure."""
    names = [each.name for each in in_order(overview.pipelines)]
    at = names.index(view.chosen) if view.chosen in names else 0
    to = {
        Key.UP: at - 1,
        Key.DOWN: at + 1,
        Key.FIRST: 0,
        Key.LAST: len(names) - 1,
    }.get(key)
    if to is not None:
        chosen = names[min(max(to, 0), len(names) - 1)] if names else None
        return replace(view, chosen=chosen)
    match key:
        case Key.OPEN:
            return replace(view, opened=view.chosen is not None)
        case Key.BACK:
            return replace(view, opened=False)
        case Key.PAUSE:
            return replace(view, paused=not view.paused)
        case _:
            return view
