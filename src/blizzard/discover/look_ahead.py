"""A look for the files of the next batch, while the batch before it runs."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from blizzard.discover.finding import Finding
from blizzard.discover.lister import SourceLister


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """One look at a source: what it found, and the lister that goes on from there."""

    finding: Finding
    lister: SourceLister


class LookAhead:
    """One look at the sources in a thread of its own; it reads, and writes nothing."""

    def __init__(
        self,
        look: Callable[[], dict[str, Looked]],
        *,
        delay: float,
        begun: float,
        taken: frozenset[str],
    ) -> None:
        self.begun = begun
        self.taken = taken
        """The files of the running batch, which the look takes for done."""
        self.found: dict[str, Looked] | None = None
        self.ended = threading.Event()
        self.journaled: set[str] = set()
        self._look = look
        self._delay = delay
        self._dropped = threading.Event()
        self._lock = threading.Lock()
        self._looks = False
        threading.Thread(target=self._run, name="look-ahead", daemon=True).start()

    @property
    def has_begun(self) -> bool:
        """Whether the look began before it was asked for; if not, it never will."""
        with self._lock:
            if not self._looks:
                self._dropped.set()
            return self._looks

    def drop(self) -> None:
        """Do not begin, if it has not begun."""
        self._dropped.set()

    def _run(self) -> None:
        try:
            if self._dropped.wait(self._delay):
                return
            with self._lock:
                if self._dropped.is_set():
                    return
                self._looks = True
            self.found = self._look()
        except Exception:  # noqa: BLE001, S110 - the next step looks for itself, and tells what is wrong
            pass
        finally:
            self.ended.set()
