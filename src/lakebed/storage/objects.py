"""Read objects by name, whole or in part, never mixed with bytes of another version."""

import errno
import io
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore.exceptions import BaseError, PreconditionError

from lakebed.errors import DocumentUnreadable, LakeError, NameUnusable, ObjectChanged, ObjectMissing
from lakebed.layout import DELTA_LOG
from lakebed.listing.sort import is_usable, leads_elsewhere
from lakebed.storage.options import ObjectFacts, StorageOptions
from lakebed.storage.store_errors import is_no_object, translated

Answer = TypeVar("Answer")

DOWNLOAD_CHUNK = 1 << 20
FEW_BYTES = 4096
LARGEST_DOCUMENT = 1 << 28
"""The most bytes of an object that is read whole: journal entries, metas, quarantine."""
LARGEST_VERSION = 1 << 32
"""The most bytes of a version of a Delta log: that of an adoption names every file."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TOO_LONG = "File name too long"
_AZURE_ETAG = re.compile(r'"(0x[0-9A-F]+)"')
"""Other stores use digests, which never have this form."""


def facts_of(meta: Any) -> ObjectFacts:  # noqa: ANN401 - obstore's ObjectMeta is a TypedDict of a stub
    """Convert the library's metadata of an object.

    E-tags get the form of listings, so that listed and found ones can be compared: Azure's listings
    omit the quotes that its other answers have.
    """
    etag = meta["e_tag"]
    if etag is not None and (azure := _AZURE_ETAG.fullmatch(etag)):
        etag = azure[1]
    return ObjectFacts(
        path=meta["path"], size=meta["size"], etag=etag, modified=meta["last_modified"]
    )


def _local_etag(found: os.stat_result) -> str:
    """Return the e-tag of a local file in the library's form."""
    written = max(0, found.st_mtime_ns) // 1000
    # Called four times per file, and twice as fast as an f-string here.
    return '"%x-%x-%x"' % (found.st_ino, written, found.st_size)  # noqa: UP031


class ObjectReader:
    """A store whose objects can be read by name."""

    uri: str
    options: StorageOptions
    local_root: Path | None
    """The folder on this machine; None for a remote store."""
    _store: Any

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r})"

    def describe(self, path: str) -> str:
        """Return how messages name an object."""
        return f"{self.uri.rstrip('/')}/{path}"

    def get(self, path: str) -> bytes | None:
        """Read a whole object; None without one; raise for any other failure.

        An object larger than any document raises DocumentUnreadable, and is not read.
        """
        return self._if_there(path, lambda: self._whole(path)[0])

    def fetch(self, path: str) -> tuple[bytes, ObjectFacts] | None:
        """Read a whole object with the facts of the same version, in one request, or None."""
        return self._if_there(path, lambda: self._whole(path))

    def _whole(self, path: str) -> tuple[bytes, ObjectFacts]:
        found = obstore.get(self._store, path)
        facts = facts_of(found.meta)
        most = LARGEST_VERSION if path.startswith(f"{DELTA_LOG}/") else LARGEST_DOCUMENT
        if facts.size > most:
            raise DocumentUnreadable(
                f"this object has {facts.size:,} bytes, and a document has {most:,} at most",
                path=self.describe(path),
            )
        return bytes(found.bytes()), facts

    def get_range(self, path: str, *, start: int, length: int) -> bytes | None:
        """Read some bytes of an object, perhaps fewer at its end; None without one."""
        return self._if_there(
            path, lambda: bytes(obstore.get_range(self._store, path, start=start, length=length))
        )

    def head(self, path: str) -> ObjectFacts | None:
        """Return the facts of an object without reading it; None without one."""
        if self.local_root is not None and not leads_elsewhere(path):
            return self._stat(str(self.local_root), path)
        return self._if_there(path, lambda: facts_of(obstore.head(self._store, path)))

    def _if_there(self, path: str, ask: Callable[[], Answer]) -> Answer | None:
        """Return an answer about an object; None if it does not or cannot exist."""
        if not is_usable(path, remote=self.local_root is None):
            return None
        with self._translating(path):
            try:
                return ask()
            except (BaseError, OSError) as cause:
                is_none = isinstance(cause, FileNotFoundError) and is_no_object(cause)
                if not is_none and _TOO_LONG not in str(cause):
                    raise
        return None

    @contextmanager
    def _translating(self, path: str) -> Iterator[None]:
        """Translate errors of the library and of the disk to ours."""
        try:
            yield
        except (BaseError, OSError) as cause:
            raise self._translated(cause, path) from cause

    @contextmanager
    def _as_listed(self, path: str) -> Iterator[None]:
        """Raise ObjectMissing or ObjectChanged if the object is no longer the listed one."""
        with self._translating(path):
            try:
                yield
            except (IsADirectoryError, NotADirectoryError) as cause:
                raise self._gone(path) from cause
            except FileNotFoundError as cause:
                if not is_no_object(cause):
                    raise
                raise self._gone(path) from cause
            except PreconditionError as cause:
                # Some stores report a missing object as a failed precondition.
                gone = self.head(path) is None
                raise (self._gone(path) if gone else self._changed(path)) from cause

    def require_name(self, *paths: str) -> None:
        """Raise if a name is invalid below this root, before anything is written or deleted."""
        for path in paths:
            if not is_usable(path, remote=self.local_root is None):
                raise NameUnusable(
                    "this cannot be the name of an object here: it is absolute or too long, or has "
                    "a control character or a part that is empty, . or ..",
                    object=path[:200],
                    place=self.uri,
                )

    def _stat(self, root: str, path: str) -> ObjectFacts | None:
        """Return the facts of a local file, ten times as fast as the library."""
        try:
            found = os.stat(f"{root}/{path}")  # noqa: PTH116 - a Path takes three times as long
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as cause:
            if cause.errno == errno.ENAMETOOLONG:
                return None
            raise self._translated(cause, path) from cause
        if not stat.S_ISREG(found.st_mode):
            return None
        return ObjectFacts(
            path=path,
            size=found.st_size,
            etag=_local_etag(found),
            modified=_EPOCH + timedelta(microseconds=found.st_mtime_ns // 1000),
        )

    def holds(self, path: str) -> bool:
        """Whether no folder on the path of an object is a link that leads out of this store."""
        if self.local_root is None:
            return not leads_elsewhere(path)
        root = os.path.realpath(self.local_root)
        folder = os.path.realpath(self.local_root / path.rpartition("/")[0])
        inside = folder == root or folder.startswith(f"{root.rstrip('/')}/")
        return inside and not leads_elsewhere(path)

    def stream(self, path: str, *, size: int, etag: str | None, start: int = 0) -> Iterator[bytes]:
        """Read the listed object in pieces, from a byte on to its end.

        If it was replaced, grows or is shortened, even while being read, raise ObjectChanged: a
        part of a file never counts as the whole. Leaving early is fine.
        """
        if leads_elsewhere(path):
            raise self._gone(path)
        received = start
        with self._as_listed(path):
            for piece in self._pieces(path, size, etag, start):
                received += len(piece)
                yield piece
        if received != size:
            raise self._changed(path)
        self.require_unchanged(path, etag)

    def at_once(self, path: str, *, size: int, etag: str | None) -> bytes | None:
        """Read the listed file at once, if it is small and on a local disk.

        Return None in any doubt, and for a remote store: `stream` reads the same bytes, or raises.
        """
        if self.local_root is None or etag is None or leads_elsewhere(path):
            return None
        name = f"{self.local_root!s}/{path}"
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode) or _local_etag(found) != etag:
                    return None
                # One byte more than listed, to detect a file that has grown.
                body = os.read(descriptor, size + 1)
            finally:
                os.close(descriptor)
            # As after a stream: it may have changed, or been replaced, while it was read.
            is_same = _local_etag(os.stat(name)) == etag  # noqa: PTH116 - as in `_stat`
        except OSError:
            return None
        return body if is_same and len(body) == size else None

    def _pieces(self, path: str, size: int, etag: str | None, start: int) -> Iterator[bytes]:
        if self.local_root is not None:
            # Read with Python: obstore hangs forever on a file that is shortened while it is
            # streamed.
            yield from self._local_pieces(f"{self.local_root}/{path}", path, size, etag, start)
            return
        options: Any = {"if_match": etag} if etag else {}
        if start:
            options["range"] = {"offset": start}
        for piece in obstore.get(self._store, path, options=options).stream(
            min_chunk_size=DOWNLOAD_CHUNK
        ):
            yield bytes(piece)

    def _local_pieces(
        self, name: str, path: str, size: int, etag: str | None, start: int
    ) -> Iterator[bytes]:
        # Opening a pipe waits for a writer.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise self._gone(path)
            if etag is not None and _local_etag(found) != etag:
                raise self._changed(path)
            if start:
                os.lseek(descriptor, start, os.SEEK_SET)
            # Python allocates the requested size first: for a small file, request little.
            most = min(DOWNLOAD_CHUNK, size + FEW_BYTES)
            while piece := os.read(descriptor, most):
                yield piece
        finally:
            os.close(descriptor)

    def part(self, path: str, start: int, end: int, *, etag: str | None) -> bytes:
        """Read some bytes of the listed object, in one request.

        Raise ObjectChanged if it was replaced or shortened, ObjectMissing if it is gone: bytes of
        another object are never returned.
        """
        if leads_elsewhere(path):
            raise self._gone(path)
        with self._as_listed(path):
            body = self._some(path, start, end, etag)
        if len(body) != end - start:
            raise self._changed(path)
        if etag is not None:
            self.require_unchanged(path, etag)
        return body

    def _some(self, path: str, start: int, end: int, etag: str | None) -> bytes:
        if self.local_root is not None:
            with (self.local_root / path).open("rb") as file:
                file.seek(start)
                return file.read(end - start)
        options: Any = {"range": (start, end)}
        if etag:
            options["if_match"] = etag
        return bytes(obstore.get(self._store, path, options=options).bytes())

    def require_unchanged(self, path: str, etag: str | None) -> None:
        """Raise if a local file is not the listed one; elsewhere objects are immutable."""
        if self.local_root is not None:
            found = self.head(path)
            if found is None:
                raise self._gone(path)
            if etag is not None and found.etag != etag:
                raise self._changed(path)

    def _gone(self, path: str) -> ObjectMissing:
        return ObjectMissing(
            "the object has disappeared since it was listed", path=self.describe(path)
        )

    def _changed(self, path: str) -> ObjectChanged:
        return ObjectChanged(
            "the object changed after it was listed, or while it was being read; a source file is "
            "left for a later batch",
            path=self.describe(path),
        )

    def _translated(self, cause: Exception, path: str) -> LakeError:
        return translated(cause, self.describe(path), uri=self.uri, options=self.options)


Asked = TypeVar("Asked")

CONCURRENT = 16


class RandomAccessFile(io.RawIOBase):
    """A listed object as a file, of which Arrow reads only the byte ranges that it needs.

    Raise ObjectChanged if the object was replaced.
    """

    def __init__(self, store: ObjectReader, facts: ObjectFacts) -> None:
        self._store = store
        self._facts = facts
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position of the next read."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._facts.size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, in one request; fewer at the end."""
        end = self._facts.size if size < 0 else min(self._facts.size, self._at + size)
        if end <= self._at:
            return b""
        body = self._store.part(self._facts.path, self._at, end, etag=self._facts.etag)
        self._at = end
        return body


def ahead(
    ask: Callable[[Asked], Answer], questions: Iterable[Asked], concurrent: int = CONCURRENT
) -> Iterator[tuple[Asked, Answer]]:
    """Yield each question with its answer, in order; at most `concurrent` are pending."""
    waiting: deque[tuple[Asked, Future[Answer]]] = deque()
    with ThreadPoolExecutor(concurrent, thread_name_prefix="ahead") as pool:
        try:
            for question in questions:
                waiting.append((question, pool.submit(ask, question)))
                if len(waiting) >= concurrent:
                    asked, answer = waiting.popleft()
                    yield asked, answer.result()
            while waiting:
                asked, answer = waiting.popleft()
                yield asked, answer.result()
        finally:
            for _asked, answer in waiting:
                answer.cancel()
