"""Read-ahead of source files by bounded threads through queues bounded in bytes.

When the reader of the pieces is slow, the queues fill and the downloads wait: memory is bounded by
settings, never by the size or the number of the files.
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
"""Pieces of about 1 MiB that wait for the reader, over all files together."""
PIECES_OF_A_FILE = 16
"""Those of one file: enough for the network to be busy while the reader is, too."""
DECOMPRESSED_AHEAD = 4
"""Pieces that are decompressed before the parser asks for them, where a thread does that."""
TRIES = 4
BACKOFF = Backoff(limit_secs=10)

SMALL_BYTES = 64 * 1024
"""Up to this size a file on a local disk is read where it is wanted."""
WAITED_SECS = 0.05
SLOW_SECS = 0.001
"""A disk that has been waited for that long, and takes that long for each of its small files, is
read by many threads at once, as a store is that is reached by a network."""

OpenAt = Callable[[SourceFile, int], Iterator[bytes]]
"""Opens a file, this many bytes after the place where its reader begins."""
AtOnce = Callable[[SourceFile], bytes | None]
"""Reads a small file that is on a local disk; None where it is not, or cannot be read so."""


class Downloads:
    """Reads files ahead, in their order; each file's pieces come out in order.

    `ahead` says for each source how many files of it are downloaded at a time; of all sources
    together there are no more than the most of these. A large file goes through a queue; small ones
    go in bundles, one after the other, as handing each to a thread would cost more than reading it.
    The next large file or bundle begins when the reader is done with one, so that small files do
    not pile up either.

    Small files that can be had `at_once` are read by the reader itself, as long as that is quick:
    of those that the machine has in its memory no thread could have any sooner. The first that
    cannot, or a disk that is waited for, leaves this one and all that follow to the threads.
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
        """How often a download went on after trouble."""
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
        """How many downloads of each source have begun that the reader is not done with."""
        self._begun: dict[str, _Lane] = {}
        self._last: set[str] = set()
        """The last file of each bundle."""
        self._at_once = at_once
        self._timer = timer
        self._read_here = 0
        self._seconds = 0.0
        """How many files were read at once, and how long that took."""
        self._begin()

    def at_once(self, file: SourceFile) -> bytes | None:
        """Return all of a file, if it is small and quick to be had; None if by its pieces only.

        Files are asked for in their order.
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
        """Yield the bytes of a file; an error of its download is raised here, in its place.

        Files are asked for in their order. Closing this before its end lets the rest go; until
        then the next download does not begin.
        """
        if file.key not in self._begun:
            # It is fetched in pieces though it is small: nothing reads at once here.
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
        """Begin what may run; the reader wants files in their order, so that none overtakes."""
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
            _make(self._tried(file), lane)

    def _tried(self, file: SourceFile) -> Iterator[bytes]:
        """Resume after transient trouble, from the byte where it occurred, in the same object."""
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
    """Put small files that follow each other together, unless that would leave threads idle."""
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
    """Yield pieces that a thread of their own makes, a few of them ahead.

    What goes wrong in them is raised here, in its place. When this is closed, the thread has ended
    and asks for no more.
    """
    lane = _Lane(DECOMPRESSED_AHEAD)
    thread = threading.Thread(target=_make, args=(pieces, lane), name="decompress", daemon=True)
    thread.start()
    try:
        yield from lane.taken()
    finally:
        lane.abandon()
        thread.join()


def _make(pieces: Iterator[bytes], lane: "_Lane") -> None:
    try:
        for piece in pieces:
            if not lane.put(piece):
                return
    except BaseException as error:  # noqa: BLE001 - it is raised again where the pieces are read
        lane.put(panic_as_error(error))
    else:
        lane.put(None)


class _Lane:
    """The queue of one file, and whether anybody still wants it."""

    def __init__(self, room: int) -> None:
        self.waiting: queue.Queue[bytes | BaseException | None] = queue.Queue(max(2, room))
        self._abandoned = threading.Event()

    def taken(self) -> Iterator[bytes]:
        while (piece := self.waiting.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece

    def put(self, piece: bytes | BaseException | None) -> bool:
        """Wait for room; return False once the file was abandoned."""
        while not self._abandoned.is_set():
            try:
                self.waiting.put(piece, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def abandon(self) -> None:
        """Stop reading this file, and drop what is queued."""
        self._abandoned.set()
        while True:
            try:
                self.waiting.get_nowait()
            except queue.Empty:
                return


class Stores(Protocol):
    """Where a worker gets its stores from."""

    def source(self, name: str) -> Reader:
        """Open a source of the pipeline."""

    def sink(self) -> Store:
        """Open the table's directory."""


@dataclass(slots=True)
class OpenedStores:
    """The stores of a batch, opened where they are used, once."""

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
