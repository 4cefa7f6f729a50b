"""The newest documents of a long row, read back as far as is needed, and never twice.

A row is a journal's entries or a log's versions. The first look reads back until the span of time
is covered, until there are enough, or until its time is up; the next one reads what is new and goes
on where the first one has stopped. So a look never takes as long as the history.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Generic, TypeVar

from lakebed.errors import LakeError
from liveview.model import DAY_SECS

AT_ONCE = 8

Document = TypeVar("Document")
Read = Callable[[int], Document | None]
"""Reads one document; None if it is not there. It may raise LakeError if it cannot be read."""


class DocumentWindow(Generic[Document]):
    """The known end of one row."""

    def __init__(
        self,
        at: Callable[[Document], float | None],
        *,
        most: int = 20_000,
        budget_secs: float = 1.5,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`at` returns when a document was written, in seconds since the epoch."""
        self.span_secs = DAY_SECS
        """How far back looks go: as far as any request did."""
        self.documents: dict[int, Document] = {}
        self.missing: set[int] = set()
        """Numbers that could not be read."""
        self.low = 0
        """The lowest number that was read."""
        self.covered = False
        """Whether the whole span is known."""
        self.out_of_time = True
        """Whether the next look goes on where the last one has stopped."""
        self._high = -1
        self._at = at
        self._most = most
        self._budget = budget_secs
        self._seconds = seconds

    def look(self, read: Read[Document], last: int, *, since: float) -> None:
        """Read up to the last number, and back to a time if there is time for it."""
        end = self._seconds() + self._budget
        self.out_of_time = False
        if self._high < 0 or last < self._high or last - self._high > self._most:
            self.documents, self.missing = {}, set()
            self.low, self._high = last + 1, last
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="live window") as pool:
            self._take(range(self._high + 1, last + 1), read, pool)
            self._high = last
            while not self._reaches(since) and self.low > 0 and len(self.documents) < self._most:
                self.out_of_time = self._seconds() >= end
                if self.out_of_time:
                    break
                first = max(0, self.low - AT_ONCE * 4)
                self._take(range(first, self.low), read, pool)
                self.low = first
        self.covered = not self.out_of_time and (self._reaches(since) or self.low <= 0)
        if len(self.documents) > self._most:
            self._forget_before(sorted(self.documents)[-self._most])

    def get(self, read: Read[Document], number: int) -> Document | None:
        """Return one document, read anew unless it is known; None if it cannot be read."""
        found = self.documents.get(number)
        with suppress(LakeError):
            return read(number) if found is None else found
        return None

    def since(self, at: float) -> list[Document]:
        """Return the documents from a time on, the oldest first."""
        found = (self.documents[number] for number in sorted(self.documents))
        return [one for one in found if (self._at(one) or 0.0) >= at]

    def forget(self) -> None:
        """Forget the row: another one has taken its place."""
        self._high = -1

    def _forget_before(self, number: int) -> None:
        self.documents = {at: one for at, one in self.documents.items() if at >= number}
        self.missing = {one for one in self.missing if one >= number}
        self.low = max(self.low, number)

    def _reaches(self, since: float) -> bool:
        for number in range(self.low, min(self.low + AT_ONCE, self._high + 1)):
            found = self.documents.get(number)
            at = None if found is None else self._at(found)
            if at is not None:
                return at < since
        return False

    def _take(self, numbers: Sequence[int], read: Read[Document], pool: ThreadPoolExecutor) -> None:
        known = partial(self.get, read)
        # A single document is read without the threads of the pool, which then never start.
        found = map(known, numbers) if len(numbers) == 1 else pool.map(known, numbers)
        for number, one in zip(numbers, found, strict=True):
            if one is None:
                self.missing.add(number)
            else:
                self.documents[number] = one
