"""Entries that were read recently, so that they are not decoded again."""

import threading
from collections.abc import Callable

from lakebed.documents.entry import Entry, decode_entry, digest

KEPT_BYTES = 2 * 1024 * 1024
"""Bytes of entries as they are stored; in memory they take three times as much."""


class EntryCache:
    """The entries that were read last, by their digests.

    Every look reads the last one that is committed again, to be sure of it; its body is read, and
    what is known of the very same body is not worked out again. An entry never changes.
    """

    def __init__(
        self,
        most_bytes: int = KEPT_BYTES,
        *,
        decode: Callable[[bytes, str], Entry] = decode_entry,
    ) -> None:
        self._most_bytes = most_bytes
        self._decode = decode
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[Entry, int]] = {}
        self._bytes = 0

    def entry(self, body: bytes, where: str) -> tuple[Entry, str]:
        """Return an entry and its digest."""
        fingerprint = digest(body)
        with self._lock:
            known = self._take(fingerprint)
        entry = self._decode(body, where) if known is None else known
        with self._lock:
            self._take(fingerprint)  # another thread may have kept it meanwhile
            self._kept[fingerprint] = entry, len(body)
            self._bytes += len(body)
            while self._bytes > self._most_bytes:
                self._take(next(iter(self._kept)))
        return entry, fingerprint

    def _take(self, fingerprint: str) -> Entry | None:
        entry, size = self._kept.pop(fingerprint, (None, 0))
        self._bytes -= size
        return entry
