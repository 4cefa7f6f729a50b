"""Keys that are pressed in a terminal, as soon as they are."""

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum


class Key(Enum):
    """What a key asks for."""

    UP = "up"
    DOWN = "down"
    FIRST = "first"
    LAST = "last"
    OPEN = "open"
    BACK = "back"
    PAUSE = "pause"
    QUIT = "quit"


PRESSED = {
    b"\x1b[A": Key.UP,
    b"\x1bOA": Key.UP,
    b"k": Key.UP,
    b"\x1b[B": Key.DOWN,
    b"\x1bOB": Key.DOWN,
    b"j": Key.DOWN,
    b"\x1b[H": Key.FIRST,
    b"\x1b[1~": Key.FIRST,
    b"g": Key.FIRST,
    b"\x1b[F": Key.LAST,
    b"\x1b[4~": Key.LAST,
    b"G": Key.LAST,
    b"\r": Key.OPEN,
    b"\n": Key.OPEN,
    b"\x1b[C": Key.OPEN,
    b"\x1bOC": Key.OPEN,
    b"\x1b": Key.BACK,
    b"\x7f": Key.BACK,
    b"\x1b[D": Key.BACK,
    b"\x1bOD": Key.BACK,
    b"p": Key.PAUSE,
    b" ": Key.PAUSE,
    b"q": Key.QUIT,
    b"Q": Key.QUIT,
}
LONGEST = max(map(len, PRESSED))


def parsed(typed: bytes) -> list[Key]:
    """Return the keys in what a terminal sent; what no key is known for is passed over. Pure."""
    keys: list[Key] = []
    at = 0
    while at < len(typed):
        sequence = next(
            (
                typed[at : at + length]
                for length in range(LONGEST, 0, -1)
                if typed[at : at + length] in PRESSED
            ),
            None,
        )
        # An escape begins every sequence, so one that is not known is left out as a whole.
        if sequence == b"\x1b" and typed[at + 1 : at + 2] in {b"[", b"O"}:
            at += 2
            while at < len(typed) and not 0x40 <= typed[at] <= 0x7E:
                at += 1
            at += 1
            continue
        if sequence is not None:
            keys.append(PRESSED[sequence])
        at += len(sequence or b"?")
    return keys


class Keyboard:
    """The keys of a terminal that gives each of them at once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def wait(self, seconds: float) -> list[Key]:
        """Return the keys that are pressed, after so many seconds at the latest."""
        ready, _writable, _failed = select.select([self._descriptor], [], [], max(0.0, seconds))
        if not ready:
            return []
        typed = os.read(self._descriptor, 1024)
        # A terminal that is gone has an end; without this, its program would live on.
        return parsed(typed) if typed else [Key.QUIT]


@contextmanager
def keyboard() -> Iterator[Keyboard]:
    """Take each key at once and show none of them, until the block ends."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
