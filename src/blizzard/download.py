"""Source files read ahead, by as many threads as allowed, through queues bounded in bytes.

When the reader of the pieces is slow, the queues fill and the downloads wait: memory is bounded by
settings, never by the size or the number of the files.
"""

import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from blizzard.flow import SourceFile
from lake.errors import LakeError, ObjectChanged, panic_as_error
from lake.retry import Backoff

PIECES_IN_FLIGHT = 64
"""Pieces of about 1 MiB that wait for the reader, over all files together."""
TRIES = 4
BACKOFF = Backoff(limit_secs=10)

OpenAt = Callable[[SourceFile, int], Iterator[bytes]]
"""Opens a file at so many bytes from where its reader wants it to begin."""


class Downloads:
    """Reads files ahead, in their order; each file's pieces come out in order.

    At most `ahead` files are begun and not yet read to their end. The next one begins when the
    reader is done with one, so that many small files do not pile up either.
    """

    def __init__(
        self,
        files: Sequence[SourceFile],
        open_at: OpenAt,
        *,
        ahead: int,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        threads = max(1, min(ahead, len(files)))
        self._open_at = open_at
        self._pause = pause
        self.retries = 0
        """How often a download went on after trouble."""
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="download")
        self._lanes = {file.key: _Lane(PIECES_IN_FLIGHT // threads) for file in files}
        self._waiting = deque(files)
        for _ in range(threads):
            self._begin_next()

    def pieces(self, file: SourceFile) -> Iterator[bytes]:
        """Give the bytes of a file; an error of its download is raised here, in its place.

        Files are asked for in their order. Leaving this iterator early lets the rest go.
        """
        lane = self._lanes[file.key]
        try:
            while (piece := lane.waiting.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            lane.abandon()
            self._begin_next()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._waiting.clear()
        for lane in self._lanes.values():
            lane.abandon()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _begin_next(self) -> None:
        if self._waiting:
            self._pool.submit(self._fetch, self._waiting.popleft())

    def _fetch(self, file: SourceFile) -> None:
        lane = self._lanes[file.key]
        try:
            for piece in self._tried(file):
                if not lane.put(piece):
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised again where the file is read
            lane.put(panic_as_error(error))
        else:
            lane.put(None)

    def _tried(self, file: SourceFile) -> Iterator[bytes]:
        """Go on after trouble that may pass, from the byte where it came, in the same object."""
        received = 0
        for attempt in range(1, TRIES + 1):
            try:
                for piece in self._open_at(file, received):
                    received += len(piece)
                    yield piece
            except LakeError as error:
                if attempt == TRIES or not error.retryable or isinstance(error, ObjectChanged):
                    raise
                with self._lock:
                    self.retries += 1
                self._pause(BACKOFF.wait(attempt, random.random))
            else:
                return


class _Lane:
    """The queue of one file, and whether anybody still wants it."""

    def __init__(self, room: int) -> None:
        self.waiting: queue.Queue[bytes | BaseException | None] = queue.Queue(max(2, room))
        self._abandoned = threading.Event()

    def put(self, piece: bytes | BaseException | None) -> bool:
        """Wait for room; False once nobody wants the file any more."""
        while not self._abandoned.is_set():
            try:
                self.waiting.put(piece, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def abandon(self) -> None:
        """Want nothing more of this file, and let go of what waits."""
        self._abandoned.set()
        while True:
            try:
                self.waiting.get_nowait()
            except queue.Empty:
                return
