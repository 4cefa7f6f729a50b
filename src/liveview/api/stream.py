"""The overview as a stream of server-sent events: once, and whenever it changes."""

import threading
import time
from collections.abc import Callable, Generator

from lakebed.dataclass import dataclass

EVERY_SECS = 1.0
BEAT_SECS = 15.0
LONGEST_SECS = 600.0
MOST = 8


@dataclass(frozen=True, slots=True)
class Frame:
    """One state of the overview."""

    mark: object
    """Equal where nothing has changed but the time."""
    body: bytes


class Streams:
    """All streams that are open."""

    def __init__(
        self,
        frame: Callable[[], Frame],
        *,
        every: float = EVERY_SECS,
        beat: float = BEAT_SECS,
        longest: float = LONGEST_SECS,
        most: int = MOST,
        seconds: Callable[[], float] = time.monotonic,
        failed: Callable[[Exception], None] = lambda _error: None,
    ) -> None:
        self._frame = frame
        self._every, self._beat, self._longest, self._most = every, beat, longest, most
        self._seconds = seconds
        self._failed = failed
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._open = 0

    @property
    def full(self) -> bool:
        """Whether no more can be opened."""
        return self._open >= self._most

    def close(self) -> None:
        """End all streams."""
        self._closed.set()

    def pieces(self) -> Generator[bytes, None, None]:
        """Yield what one client is sent, until it goes, the program ends, or the time is up."""
        with self._lock:
            if self._open >= self._most:
                return
            self._open += 1
        try:
            yield from self._pieces()
        finally:
            with self._lock:
                self._open -= 1

    def _pieces(self) -> Generator[bytes, None, None]:
        end = self._seconds() + self._longest
        last: Frame | None = None
        sent = self._seconds()
        while True:
            try:
                frame = self._frame()
            except Exception as error:  # noqa: BLE001 - the client asks again, and is told why
                self._failed(error)
                return
            if last is None or frame.mark != last.mark:
                yield b"event: overview\ndata: " + frame.body + b"\n\n"
                last, sent = frame, self._seconds()
            elif self._seconds() - sent >= self._beat:
                yield b": still here\n\n"
                sent = self._seconds()
            if self._seconds() >= end or self._closed.wait(self._every):
                return
