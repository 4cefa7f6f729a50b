"""Ends a wait early: there is something to look at, or a stop was asked for."""

import threading

from lakebed.polling import Stop

GATHER_SECS = 0.1
"""After the first message more are likely: they are followed by one look."""


class Bell:
    """Rung by whoever has something for a pipeline; the pipeline waits by it between steps."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._rung = threading.Event()
        # A stop is requested within a signal handler, which must not take a lock of ours.
        threading.Thread(target=self._ring_at_stop, name="notices-stop", daemon=True).start()

    def ring(self) -> None:
        """End the wait, or the next one if there is none."""
        self._rung.set()

    def wait(self, seconds: float) -> None:
        """Sleep, but not past a ring; what is rung for afterwards is for the next wait."""
        if self._rung.wait(seconds) and not self._stop.requested:
            self._stop.wait(GATHER_SECS)
        self._rung.clear()

    def _ring_at_stop(self) -> None:
        self._stop.event.wait()
        self.ring()
