"""Entries that were read recently, so that they are not decoded again."""

import threading
from collections.abc import Callable

from lakebed.documents.entry import Entry, decode_entry, digest

KEPT_BYTES = 16 * 1024 * 1024
"""Of entries as they are stored; in memory they are some times as large."""


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

    def entry(self, body: bytes, where: str) -> tuple[Entry, str]:
        """Return an entry and its digest."""
        fingerprint = digest(body)
        with self._lock:
            known = self._kept.pop(fingerprint, None)
        entry = self._decode(body, where) if known is None else known[0]
        with self._lock:
            self._kept[fingerprint] = entry, len(body)
            while sum(size for _entry, size in self._kept.values()) > self._most_bytes:
                del self._kept[next(iter(self._kept))]
        return entry, fingerprint
