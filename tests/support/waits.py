"""Stops and clocks that let nobody wait, and remember how long somebody wanted to."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lakebed.clock import Clock
from lakebed.polling import Stop


def at_once(_seconds: float) -> None:
    """Be over."""


def until(holds: Callable[[], object], *, every: float = 0.01) -> None:
    """Wait until something holds, which is looked at every so often; fail after some minutes."""
    end = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < end
        time.sleep(every)


def hurried(*, hours: float = 0.0) -> Clock:
    """Return the time, or that of so many hours later, and waits that are over at once.

    Spark's tasks get a copy of it: of what has no name, so that they need not find this module.
    """
    return Clock(seconds=lambda: time.time() + hours * 3600, sleep=lambda _seconds: None)


@dataclass(frozen=True)
class Hurry(Stop):
    """Nobody has asked for a stop, and no wait takes time."""

    def wait(self, seconds: float) -> bool:
        return self.requested


@dataclass(frozen=True)
class NotedStop(Stop):
    """Asks for a stop once so many threads have wanted to wait so many times."""

    most: int = 1
    threads: int = 1
    waits: dict[str, list[float]] = field(default_factory=dict)
    """What each thread wanted, by its name; waits for nothing are left out."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def wait(self, seconds: float) -> bool:
        if not seconds:
            return self.requested
        with self.lock:
            mine = self.waits.setdefault(threading.current_thread().name, [])
            mine.append(seconds)
            done = sum(len(each) >= self.most for each in self.waits.values())
        if done >= self.threads:
            self.request()
        elif len(mine) >= self.most:
            self.event.wait(300)
        return self.requested
