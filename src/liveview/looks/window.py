"""The newest documents of a long row, read back as far as is needed, and never twice.

A row is a journal's entries or a log's versions. A first look reads back until the span of time is
covered, until there are enough, or until its time is up; the next look reads what is new and goes
on where the first one has stopped. So a look is never as long as the history.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

AT_ONCE = 8


class Dated(Protocol):
    """A document that says when it was written."""

    @property
    def at(self) -> float | None:
        """Return the seconds since the epoch; None where it does not say."""


Document = TypeVar("Document", bound=Dated)

Read = Callable[[int], Document | None]
"""Reads one document; None where there is none, or where it cannot be read."""


class Window(Generic[Document]):
    """What is known of the end of one row."""

    def __init__(
        self,
        *,
        most: int = 20_000,
        budget_secs: float = 1.5,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.documents: dict[int, Document] = {}
        self.missing: set[int] = set()
        """Numbers that were asked for and not had."""
        self.low = 0
        """The lowest number that was read; nothing is known of lower ones."""
        self.high = -1
        self.covered = False
        """Whether the whole span is known."""
        self.out_of_time = False
        """Whether the next look goes on where the last one has stopped."""
        self._most = most
        self._budget = budget_secs
        self._seconds = seconds

    def look(self, read: Read[Document], last: int, *, since: float) -> None:
        """Bring what is known up to the last number, and back to a time if there is time for it."""
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="live window") as pool:
            self._look(lambda numbers: _read(numbers, read, pool), last, since)

    def _look(
        self, read: Callable[[Sequence[int]], list[Document | None]], last: int, since: float
    ) -> None:
        end = self._seconds() + self._budget
        self.out_of_time = False
        if self.high < 0 or last < self.high or last - self.high > self._most:
            self.documents, self.missing = {}, set()
            self.low, self.high = last + 1, last
        if last > self.high:
            self._take(range(self.high + 1, last + 1), read)
            self.high = last
        while not self._reaches(since):
            if self.low <= 0 or len(self.documents) >= self._most:
                break
            if self._seconds() >= end:
                self.covered, self.out_of_time = False, True
                return
            first = max(0, self.low - AT_ONCE * 4)
            self._take(range(first, self.low), read)
            self.low = first
        self.covered = self._reaches(since) or self.low <= 0

    def since(self, at: float) -> list[Document]:
        """Return the documents from a time on, the oldest first."""
        found = (self.documents[number] for number in sorted(self.documents))
        return [one for one in found if one.at is not None and one.at >= at]

    def newest(self, before: int | None = None) -> Iterator[tuple[int, Document]]:
        """Yield the documents with lower numbers than one, the newest first."""
        for number in sorted(self.documents, reverse=True):
            if before is None or number < before:
                yield number, self.documents[number]

    def forget_before(self, number: int) -> None:
        """Let documents go, so that memory does not grow with time."""
        for old in [one for one in self.documents if one < number]:
            del self.documents[old]
        self.missing = {one for one in self.missing if one >= number}
        self.low = max(self.low, number)

    def trim(self) -> None:
        """Keep no more than so many."""
        if len(self.documents) > self._most:
            self.forget_before(sorted(self.documents)[-self._most])

    def _reaches(self, since: float) -> bool:
        for number in range(self.low, min(self.low + AT_ONCE, self.high + 1)):
            found = self.documents.get(number)
            if found is not None and found.at is not None:
                return found.at < since
        return False

    def _take(
        self, numbers: Sequence[int], read: Callable[[Sequence[int]], list[Document | None]]
    ) -> None:
        for number, found in zip(numbers, read(numbers), strict=True):
            if found is None:
                self.missing.add(number)
            else:
                self.documents[number] = found


def _read(
    numbers: Sequence[int], read: Read[Document], pool: ThreadPoolExecutor
) -> list[Document | None]:
    """Read some documents, a single one without the threads of the pool, which then never start."""
    if len(numbers) == 1:
        return [read(numbers[0])]
    return list(pool.map(read, numbers))
