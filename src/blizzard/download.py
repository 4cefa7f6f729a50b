"""Source files read ahead, by as many threads as allowed, through queues bounded in bytes.

When the reader of the pieces is slow, the queues fill and the downloads wait: memory is bounded by
settings, never by the size or the number of the files.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from blizzard.flow import SourceFile

PIECES_IN_FLIGHT = 64
"""Pieces of about 1 MiB that wait in all queues together."""

Open = Callable[[SourceFile], Iterator[bytes]]


class Downloads:
    """Reads files ahead, in their order; each file's pieces come out in order."""

    def __init__(self, files: Sequence[SourceFile], open_file: Open, *, ahead: int) -> None:
        threads = max(1, min(ahead, len(files), PIECES_IN_FLIGHT // 2))
        self._open_file = open_file
        self._stopped = threading.Event()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="download")
        self._lanes = {file.key: _Lane(PIECES_IN_FLIGHT // threads) for file in files}
        # The pool starts them in this order, so the file that is waited for is always running.
        for file in files:
            self._pool.submit(self._fetch, file)

    def pieces(self, file: SourceFile) -> Iterator[bytes]:
        """Give the bytes of a file; an error of its download is raised here, in its place.

        Leaving this iterator early lets the rest of the file go.
        """
        lane = self._lanes[file.key]
        try:
            while (piece := lane.waiting.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            lane.abandoned.set()
            lane.drain()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        for lane in self._lanes.values():
            lane.abandoned.set()
            lane.drain()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _fetch(self, file: SourceFile) -> None:
        lane = self._lanes[file.key]
        if lane.abandoned.is_set() or self._stopped.is_set():
            return
        try:
            for piece in self._open_file(file):
                if not lane.put(piece):
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised again where the file is read
            lane.put(error)
        else:
            lane.put(None)


class _Lane:
    """The queue of one file, and whether anybody still wants it."""

    def __init__(self, room: int) -> None:
        self.waiting: queue.Queue[bytes | BaseException | None] = queue.Queue(max(2, room))
        self.abandoned = threading.Event()

    def put(self, piece: bytes | BaseException | None) -> bool:
        """Wait for room; False once nobody wants the file any more."""
        while not self.abandoned.is_set():
            try:
                self.waiting.put(piece, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def drain(self) -> None:
        """Let go of what waits."""
        while True:
            try:
                self.waiting.get_nowait()
            except queue.Empty:
                return
