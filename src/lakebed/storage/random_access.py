"""An object of a store as a file, so that Arrow reads only the byte ranges that it needs."""

import io

from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader


class RandomAccessFile(io.RawIOBase):
    """A listed object, read by byte ranges; raise ObjectChanged if it was replaced."""

    def __init__(self, store: Reader, facts: ObjectFacts) -> None:
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
