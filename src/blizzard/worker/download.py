"""Read-ahead of source files by a bounded number of threads through bounded queues.

If the reader is slow, the queues fill and the downloads block: memory is bounded by settings, not
by the size or number of the files.
"""

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Protocol, Self

from blizzard.model.source.file import SourceFile
from blizzard.model.work import Work
from lakebed.errors import ObjectChanged, panic_as_error
from lakebed.retry import Backoff, attempts
from lakebed.storage.store import Reader, Store

BUNDLE_BYTES = 256 * 1024
MOST_IN_A_BUNDLE = 16
BUNDLES_PER_THREAD = 4
PIECES_IN_FLIGHT = 64
"""Queued pieces of about 1 MiB, for all files together."""
PIECES_OF_A_FILE = 16
"""Queued pieces per file: enough to keep the network busy while the reader works."""
DECOMPRESSED_AHEAD = 4
"""Pieces that a thread decompresses ahead of the parser."""
TRIES = 4
BACKOFF = Backoff(limit_secs=10)

SMALL_BYTES = 64 * 1024
"""Files on a local disk up to this size are read by the reader itself."""
WAITED_SECS = 0.05
SLOW_SECS = 0.001
"""A disk that has taken more than `WAITED_SECS` in total and `SLOW_SECS` per small file is read by
threads, like a network store."""

OpenAt = Callable[[SourceFile, int], Iterator[bytes]]
"""Opens a file at an offset from where its reader begins."""
AtOnce = Callable[[SourceFile], bytes | None]
"""Reads a small file on a local disk; None if it is elsewhere or unreadable."""


class Downloads:
    """Downloads files ahead of the reader, in order.

    `ahead` is the number of concurrent downloads of each source; the largest of them limits all
    sources together. Small files are downloaded in bundles, since handing each to a thread costs
    more than reading it. The next large file or bundle begins when the reader has finished one, so
    that small files do not pile up.

    The reader itself reads small local files with `at_once` while that is fast: no thread is faster
    if they are in the page cache. After the first failure, or if the disk is slow, threads download
    all remaining files.
    """

    def __init__(
        self,
        files: Sequence[SourceFile],
        open_at: OpenAt,
        *,
        ahead: Mapping[str, int],
        at_once: AtOnce | None = None,
        pause: Callable[[float], object] = time.sleep,
        timer: Callable[[], float] = time.perf_counter,
        pool: type[ThreadPoolExecutor] = ThreadPoolExecutor,
    ) -> None:
        by_source = [(name, list(some)) for name, some in groupby(files, attrgetter("source"))]
        self._ahead = {name: max(1, ahead[name]) for name, _some in by_source}
        threads = min(max(self._ahead.values(), default=1), max(1, len(files)))
        self._open_at = open_at
        self._pause = pause
        self.retries = 0
        """Resumed downloads."""
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._pool = pool(threads, thread_name_prefix="download")
        self._room = min(PIECES_OF_A_FILE, PIECES_IN_FLIGHT // threads)
        self._threads = threads
        self._waiting = deque(
            bundle
            for name, some in by_source
            for bundle in bundles(some, min(self._ahead[name], threads))
        )
        self._running: Counter[str] = Counter()
        """By source, the downloads that have begun and that the reader has not finished."""
        self._begun: dict[str, _Lane] = {}
        self._last: set[str] = set()
        """The last file of each bundle."""
        self._at_once = at_once
        self._timer = timer
        self._read_here = 0
        self._seconds = 0.0
        """The number of files read at once, and the total time."""
        self._begin()

    def at_once(self, file: SourceFile) -> bytes | None:
        """Return a whole small file if it can be read at once; else None.

        Files must be requested in order.
        """
        if self._at_once is None or file.key in self._begun or not _is_small(file):
            return None
        began = self._timer()
        body = self._at_once(file)
        self._seconds += self._timer() - began
        self._read_here += 1
        if body is None or self._seconds > max(WAITED_SECS, self._read_here * SLOW_SECS):
            self._at_once = None
        if body is not None:
            self._waiting[0].pop(0)
            if not self._waiting[0]:
                self._waiting.popleft()
        self._begin()
        return body

    def pieces(self, file: SourceFile) -> Generator[bytes]:
        """Yield the bytes of a file; download errors are raised here.

        Files must be requested in order. The next download begins once this generator ends or is
        closed.
        """
        if file.key not in self._begun:
            # The caller requests pieces of a small file, so it does not read files at once.
            self._at_once = None
            self._begin()
        lane = self._begun.pop(file.key)
        try:
            yield from lane.taken()
        finally:
            lane.abandon()
            if file.key in self._last:
                self._running[file.source] -= 1
                self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._waiting.clear()
        self._over.set()
        for lane in self._begun.values():
            lane.abandon()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _begin(self) -> None:
        """Start downloads up to the limits, strictly in order."""
        while self._waiting and self._running.total() < self._threads:
            if self._at_once is not None and _is_small(self._waiting[0][0]):
                return
            source = self._waiting[0][0].source
            if self._running[source] >= self._ahead[source]:
                return
            self._running[source] += 1
            self._begin_one(self._waiting.popleft())

    def _begin_one(self, files: list[SourceFile]) -> None:
        lanes = [_Lane(self._room) for _file in files]
        self._begun.update(zip((file.key for file in files), lanes, strict=True))
        self._last.add(files[-1].key)
        self._pool.submit(self._fetch, files, lanes)

    def _fetch(self, files: Sequence[SourceFile], lanes: Sequence["_Lane"]) -> None:
        for file, lane in zip(files, lanes, strict=True):
            if self._over.is_set():
                return
            _produce(self._resumed(file), lane)

    def _resumed(self, file: SourceFile) -> Iterator[bytes]:
        """Download a file; after a transient error, resume the same object at that byte."""
        received = 0
        for attempt in attempts(
            TRIES, BACKOFF, self._pause, retried=self._count_retry, never=ObjectChanged
        ):
            with attempt:
                for piece in self._open_at(file, received):
                    received += len(piece)
                    yield piece
                return

    def _count_retry(self) -> None:
        with self._lock:
            self.retries += 1


def _is_small(file: SourceFile) -> bool:
    return file.part is None and file.size <= SMALL_BYTES


def bundles(files: Sequence[SourceFile], threads: int) -> Iterator[list[SourceFile]]:
    """Bundle consecutive small files, unless that would leave threads idle."""
    most = min(max(1, len(files) // (threads * BUNDLES_PER_THREAD)), MOST_IN_A_BUNDLE)
    bundle: list[SourceFile] = []
    size = 0
    for file in files:
        if bundle and (len(bundle) == most or size + file.size > BUNDLE_BYTES):
            yield bundle
            bundle, size = [], 0
        bundle.append(file)
        size += file.size
    if bundle:
        yield bundle


def in_advance(pieces: Iterator[bytes]) -> Generator[bytes]:
    """Yield pieces that a separate thread produces a few pieces ahead.

    Errors of the thread are raised here. Closing this generator ends the thread.
    """
    lane = _Lane(DECOMPRESSED_AHEAD)
    thread = threading.Thread(target=_produce, args=(pieces, lane), name="decompress", daemon=True)
    thread.start()
    try:
        yield from lane.taken()
    finally:
        lane.abandon()
        thread.join()


def _produce(pieces: Iterator[bytes], lane: "_Lane") -> None:
    try:
        for piece in pieces:
            if not lane.put(piece):
                return
    except BaseException as error:  # noqa: BLE001 - raised again in the reading thread
        lane.put(panic_as_error(error))
    else:
        lane.put(None)


class _Lane:
    """The queue of one file, which its reader may abandon."""

    def __init__(self, room: int) -> None:
        self.waiting: queue.Queue[bytes | BaseException | None] = queue.Queue(max(2, room))
        self._abandoned = threading.Event()

    def taken(self) -> Iterator[bytes]:
        while (piece := self.waiting.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece

    def put(self, piece: bytes | BaseException | None) -> bool:
        """Wait for room in the queue; return False if the file was abandoned."""
        while not self._abandoned.is_set():
            try:
                self.waiting.put(piece, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def abandon(self) -> None:
        """Stop the download and drop its queued pieces."""
        self._abandoned.set()
        while True:
            try:
                self.waiting.get_nowait()
            except queue.Empty:
                return


class Stores(Protocol):
    """The stores of a worker."""

    def source(self, name: str) -> Reader:
        """Open a source of the pipeline."""

    def sink(self) -> Store:
        """Open the table's directory."""


@dataclass(slots=True)
class OpenedStores:
    """The stores of a batch, opened on first use."""

    work: Work
    _sources: dict[str, Reader] = field(default_factory=dict)
    _sink: Store | None = None

    def source(self, name: str) -> Reader:
        """Open a source of the pipeline."""
        if name not in self._sources:
            location = self.work.sources[name]
            self._sources[name] = Reader(location.uri, location.options)
        return self._sources[name]

    def sink(self) -> Store:
        """Open the table's directory."""
        if self._sink is None:
            self._sink = Store(self.work.sink.uri, self.work.sink.options, make_folder=True)
        return self._sink
